//! Where logins are kept.
//!
//! | store | shared between | kept |
//! |---|---|---|
//! | [`MemoryStore`] | clones of it | until the process ends |
//! | [`FileStore`] | processes of one user | in a file that only the user can read |
//! | `KeyringStore` (feature `keyring`) | processes of one user | in the keyring of the operating system |

mod error;
mod file;
mod key;
#[cfg(feature = "keyring")]
mod keyring;
mod memory;

use std::any::Any;
use std::fmt;

use async_trait::async_trait;

pub use self::error::StoreError;
pub use self::file::FileStore;
pub use self::key::StoreKey;
#[cfg(feature = "keyring")]
pub use self::keyring::KeyringStore;
pub use self::memory::MemoryStore;
use crate::Secret;

/// A store of logins, implemented with [`async_trait`](macro@async_trait).
///
/// A record is a JSON object as text. Stores do not look inside, and show nothing of it in errors or logs.
///
/// # Locks
///
/// Authorization servers replace a refresh token when it is used, and many of them end the login if the old one is used again.
/// So a login is refreshed by one task of one process at a time: it takes the [lock](Self::lock), loads the record again,
/// refreshes if no other process has, saves, and releases the lock.
#[async_trait]
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the record of a key, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the store is not available or damaged.
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError>;

    /// Saves the record of a key, and replaces an earlier one. Other processes see the earlier record or this one, never a
    /// part of it, and after the future is ready the record survives the end of the process.
    ///
    /// # Errors
    ///
    /// Returns an error if the record was not saved. The earlier one is kept.
    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError>;

    /// Removes the record of a key, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the record was not removed.
    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError>;

    /// Waits for the lock of a key, and holds it until the result is dropped, or the process ends in whatever way.
    ///
    /// Records can be loaded and saved without it. Dropping the future stops waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if the store has no locks at this time.
    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError>;
}

/// The lock of a key in a [`TokenStore`], which is released when it is dropped.
pub struct StoreLock {
    _held: Box<dyn Any + Send>,
}

impl StoreLock {
    /// Creates a lock from a value that releases it when it is dropped.
    #[must_use]
    pub fn new(held: impl Send + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}
