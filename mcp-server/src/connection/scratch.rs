//! Values that handlers keep for a connection.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::extensions::Extensions;

/// Values that last as long as the connection, by their type: see [`ConnectionHandle::scratch`](crate::ConnectionHandle::scratch).
// Allocated for the first value, as most connections have none.
#[derive(Default)]
pub struct Scratch(Mutex<Option<Box<Extensions>>>);

impl Scratch {
    /// Returns the value of a type.
    // S1.15
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.lock().as_ref()?.share()
    }

    /// Returns the value of a type, and creates it if there is none.
    pub fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.get() {
            return value;
        }
        // Created without the lock, as this runs code of the application. If two do so at once, the second value is dropped,
        // without the lock as well.
        let made = Arc::new(make());
        let mut values = self.lock();
        let values = values.get_or_insert_default();
        values.share().unwrap_or_else(|| {
            values.insert_shared(Arc::clone(&made));
            Arc::clone(&made)
        })
    }

    /// Stores a value, and replaces one of the same type.
    pub fn insert<T: Any + Send + Sync>(&self, value: T) {
        let value = Arc::new(value);
        let old = self.lock().get_or_insert_default().insert_shared(value);
        // Dropped without the lock, as it runs code of the application.
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Extensions>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// The error of [`ConnectionHandle::scratch`](crate::ConnectionHandle::scratch) for requests that have no lasting connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the connection lasts for this request only, so its values would be lost: return a state handle that the client sends with \
     its next call, or, for legacy clients, enable sessions (`HttpOptions::sessions`)"
)]
#[expect(clippy::exhaustive_structs, reason = "it has no details")]
pub struct NoLastingConnection;
