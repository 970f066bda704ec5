//! Logins in a file.

mod document;
mod lock;
mod write;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::document::Document;
pub(super) use self::lock::lock;
use super::{StoreError, StoreKey, StoreLock, TokenStore};
use crate::Secret;

const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(600);
/// A change of the file takes milliseconds, unless the process is stopped in the middle of it.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Far above the size of some hundred logins.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A store that keeps logins in a file, for the processes of one user.
///
/// Only the user can read the file (mode 0600, also if it was created with another). It is replaced as a whole: a process that
/// is killed leaves the earlier file or the new one. Processes exclude each other with locks on files beside it, whose names begin
/// with that of the store and end with `.lock`; these are empty, and are left behind.
///
/// The file must be on a file system with working locks; network file systems often have none.
///
/// ```no_run
/// use mcp_auth::store::FileStore;
///
/// let store = FileStore::new("/home/ada/.config/example/logins.json");
/// ```
#[derive(Clone)]
pub struct FileStore {
    path: Arc<Path>,
    lock_timeout: Duration,
}

impl FileStore {
    /// Creates a store in a file, which is created with the first login, with the directories that it is in.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into(), lock_timeout: DEFAULT_LOCK_TIMEOUT }
    }

    /// Sets the time to wait for another process that refreshes the same login, or waits for its user to log in. Defaults to
    /// 10 minutes.
    #[must_use]
    pub const fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads the file.
    async fn read(&self) -> Result<Document, StoreError> {
        let path = Arc::clone(&self.path);
        blocking(self, move || read(&path)).await
    }

    /// Reads the file, changes it and writes it, while no other process does.
    async fn change(&self, change: impl FnOnce(&mut Document) + Send + 'static) -> Result<(), StoreError> {
        let held = lock(&self.lock_path("change"), CHANGE_TIMEOUT).await?;
        let path = Arc::clone(&self.path);
        // The lock moves along: if this future is dropped, it is released after the change, and not in the middle.
        blocking(self, move || {
            let mut document = read(&path)?;
            change(&mut document);
            let written = write::replace(&path, document.encode().expose().as_bytes());
            drop(held);
            written.map_err(|error| StoreError::unavailable(path.display().to_string(), error))
        })
        .await
    }

    /// Returns the path of a lock file.
    fn lock_path(&self, purpose: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{purpose}.lock"));
        self.path.with_file_name(name)
    }
}

#[async_trait]
impl TokenStore for FileStore {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        Ok(self.read().await?.record(key.as_str()))
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        let record = Document::parse_record(record).map_err(|reason| StoreError::damaged("the record", reason))?;
        let key = key.clone();
        self.change(move |document| document.insert(key.as_str(), record)).await
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        if self.load(key).await?.is_none() {
            return Ok(());
        }
        let key = key.clone();
        self.change(move |document| document.remove(key.as_str())).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        lock(&self.lock_path(&key.digest()), self.lock_timeout).await
    }
}

fn read(path: &Path) -> Result<Document, StoreError> {
    let name = || path.display().to_string();
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
            return Err(StoreError::damaged(name(), format!("it exceeds {MAX_FILE_BYTES} bytes")));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
        _ => {}
    }
    match fs::read(path) {
        Ok(content) => Document::decode(content, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Document::default()),
        Err(error) => Err(StoreError::unavailable(name(), error)),
    }
}

/// Runs file operations on a thread for them.
async fn blocking<T: Send + 'static>(
    store: &FileStore,
    operation: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let result = tokio::task::spawn_blocking(operation).await;
    result.unwrap_or_else(|error| Err(StoreError::unavailable(store.name(), error)))
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("path", &self.path).finish_non_exhaustive()
    }
}
