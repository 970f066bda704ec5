//! Stores that fail.

use std::error::Error;
use std::sync::Arc;

/// The error of a store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be read or written at this time.
    #[error("{store} is not available: {reason}")]
    Unavailable {
        /// The store, for example the path of its file.
        store: String,
        /// What failed.
        reason: String,
        /// The cause.
        #[source]
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// The store has data that cannot be read. It is not overwritten.
    #[error("{store} is damaged and was left as it is: {reason}; repair or remove it, and log in again")]
    Damaged {
        /// The store, for example the path of its file.
        store: String,
        /// What is wrong, without the data.
        reason: String,
    },
    /// The store was written by a newer version of this library.
    #[error("{store} has version {found} of the format, and this program reads up to {supported}")]
    Newer {
        /// The store, for example the path of its file.
        store: String,
        /// The version in the store.
        found: u64,
        /// The latest version that is known.
        supported: u64,
    },
    /// The lock was not released in time.
    #[error("another process has not released the lock of {store} in time")]
    Locked {
        /// The store, for example the path of its file.
        store: String,
    },
}

impl StoreError {
    /// Creates the error of a store that is not available.
    pub fn unavailable(store: impl Into<String>, error: impl Error + Send + Sync + 'static) -> Self {
        let reason = error.to_string();
        Self::Unavailable { store: store.into(), reason, source: Some(Arc::new(error)) }
    }

    /// Creates the error of a store that has data that cannot be read. The reason must not contain the data.
    pub fn damaged(store: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { store: store.into(), reason: reason.into() }
    }
}
