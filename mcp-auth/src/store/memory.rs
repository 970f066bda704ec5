//! Logins in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{StoreError, StoreKey, StoreLock, TokenStore};
use crate::Secret;

/// A store that keeps logins until the process ends. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    records: Mutex<BTreeMap<StoreKey, Secret>>,
    locks: Mutex<BTreeMap<StoreKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<StoreKey, Secret>> {
        self.shared.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TokenStore for MemoryStore {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        Ok(self.records().get(key).cloned())
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        self.records().insert(key.clone(), record.clone());
        Ok(())
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.records().remove(key);
        Ok(())
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        let lock = {
            let mut locks = self.shared.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(key.clone()).or_default())
        };
        Ok(StoreLock::new(lock.lock_owned().await))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
