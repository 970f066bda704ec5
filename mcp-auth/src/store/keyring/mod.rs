//! Logins in the keyring of the operating system.

mod records;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use keyring::Entry;

use self::records::{Entries, Records};
use super::file::lock;
use super::{StoreError, StoreKey, StoreLock, TokenStore};
use crate::Secret;

const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(600);
/// A change takes milliseconds, unless the keyring has to be unlocked by the user.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// A store that keeps logins in the keyring: Keychain on macOS, Credential Manager on Windows, Secret Service elsewhere.
///
/// Keyrings have no locks that processes could exclude each other with, so lock files are created in a directory.
///
/// ```no_run
/// use mcp_auth::store::KeyringStore;
///
/// let store = KeyringStore::new("com.example.client", "/home/ada/.cache/example");
/// ```
#[derive(Clone)]
pub struct KeyringStore {
    service: Arc<str>,
    lock_directory: PathBuf,
    lock_timeout: Duration,
}

impl KeyringStore {
    /// Creates a store with the name of the application in the keyring, and a directory of the user for lock files.
    pub fn new(service: impl Into<Arc<str>>, lock_directory: impl Into<PathBuf>) -> Self {
        Self { service: service.into(), lock_directory: lock_directory.into(), lock_timeout: DEFAULT_LOCK_TIMEOUT }
    }

    /// Sets the time to wait for another process that refreshes the same login, or waits for its user to log in. Defaults to
    /// 10 minutes.
    #[must_use]
    pub const fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Changes the entries of a record, while no other process does.
    async fn change(
        &self,
        key: &StoreKey,
        change: impl FnOnce(&Records<SystemEntries>, &str) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let held = lock(&self.lock_path(&format!("{}.change", key.digest())), CHANGE_TIMEOUT).await?;
        let key = key.clone();
        // The lock moves along: if this future is dropped, it is released after the change, and not in the middle.
        self.blocking(move |records| {
            let changed = change(records, key.as_str());
            drop(held);
            changed
        })
        .await
    }

    /// Returns the path of a lock file.
    fn lock_path(&self, purpose: &str) -> PathBuf {
        self.lock_directory.join(format!("{}.{purpose}.lock", self.service))
    }

    /// Runs operations of the keyring on a thread for them, as it may ask the user for a password.
    async fn blocking<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Records<SystemEntries>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let records = Records(SystemEntries { service: Arc::clone(&self.service) });
        let result = tokio::task::spawn_blocking(move || operation(&records)).await;
        result.unwrap_or_else(|error| Err(StoreError::unavailable("the keyring", error)))
    }
}

#[async_trait]
impl TokenStore for KeyringStore {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        let key = key.clone();
        self.blocking(move |records| records.load(key.as_str())).await
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        let record = record.clone();
        self.change(key, move |records, key| records.save(key, &record)).await
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.change(key, |records, key| records.remove(key)).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        lock(&self.lock_path(&key.digest()), self.lock_timeout).await
    }
}

impl fmt::Debug for KeyringStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringStore").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The entries of an application in the keyring.
struct SystemEntries {
    service: Arc<str>,
}

impl Entries for SystemEntries {
    fn get(&self, name: &str) -> Result<Option<Secret>, StoreError> {
        // As bytes: Windows stores a password as UTF-16, which takes twice the space.
        match self.entry(name)?.get_secret() {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(Secret::new(text))),
                Err(_) => Err(StoreError::damaged(format!("the entry {name:?} of the keyring"), "it is no text")),
            },
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    fn set(&self, name: &str, text: &str) -> Result<(), StoreError> {
        self.entry(name)?.set_secret(text.as_bytes()).map_err(|error| unavailable(&error))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        match self.entry(name)?.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl SystemEntries {
    fn entry(&self, name: &str) -> Result<Entry, StoreError> {
        Entry::new(&self.service, name).map_err(|error| unavailable(&error))
    }
}

/// Describes an error of the keyring. Its `Debug` output can have the data of the entry, so it is no source.
fn unavailable(error: &keyring::Error) -> StoreError {
    StoreError::Unavailable { store: "the keyring".to_owned(), reason: error.to_string(), source: None }
}
