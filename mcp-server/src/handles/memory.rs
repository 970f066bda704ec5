//! Handles in memory.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::handles::store::{
    HandleKey, HandleOwner, HandleRecord, HandleStore, HandleStoreError, ReplaceOutcome, VersionedHandle,
};

/// The limits of a [`MemoryHandleStore`]. When one is reached, no further handles are minted until others expire or are
/// revoked; none is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryHandleLimits {
    /// The maximum number of handles. Defaults to 10,000.
    pub max_handles: usize,
    /// The maximum number of handles of one kind that a principal has. Defaults to 100. Anonymous callers share
    /// `max_handles`.
    pub max_handles_per_principal: usize,
    /// The maximum size of all values in bytes. Defaults to 64 MiB.
    pub max_bytes: usize,
}

impl Default for MemoryHandleLimits {
    fn default() -> Self {
        Self { max_handles: 10_000, max_handles_per_principal: 100, max_bytes: 64 * 1024 * 1024 }
    }
}

impl MemoryHandleLimits {
    /// Sets the maximum number of handles.
    #[must_use]
    pub fn max_handles(self, max_handles: usize) -> Self {
        Self { max_handles, ..self }
    }

    /// Sets the maximum number of handles of one kind that a principal has.
    #[must_use]
    pub fn max_handles_per_principal(self, max_handles_per_principal: usize) -> Self {
        Self { max_handles_per_principal, ..self }
    }

    /// Sets the maximum size of all values in bytes.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }
}

/// A [`HandleStore`] in memory, for a server in one process.
///
/// Clones share the records, so that servers of one process, or several kinds of handles, can share the limits.
#[derive(Clone, Default)]
pub struct MemoryHandleStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    limits: MemoryHandleLimits,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    by_key: HashMap<HandleKey, VersionedHandle>,
    by_owner: HashMap<HandleOwner, BTreeSet<HandleKey>>,
    by_expiry: BTreeSet<(u64, HandleKey)>,
    /// The size of all contents.
    bytes: usize,
}

impl MemoryHandleStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: MemoryHandleLimits) -> Self {
        Self(Arc::new(Shared { limits, records: Mutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the records, after those that have expired were removed.
    fn unexpired(&self, now: u64) -> MutexGuard<'_, Records> {
        let mut records = self.lock();
        while let Some((expires, key)) = records.by_expiry.first().copied()
            && expires <= now
        {
            records.remove(key);
        }
        records
    }

    fn check_bytes(&self, bytes: usize) -> Result<(), HandleStoreError> {
        let limit = self.0.limits.max_bytes;
        if bytes > limit { Err(full("max_bytes", limit)) } else { Ok(()) }
    }
}

fn full(setting: &str, limit: usize) -> HandleStoreError {
    HandleStoreError::Full(format!("`MemoryHandleLimits::{setting}` is {limit}"))
}

impl Records {
    fn insert(&mut self, key: HandleKey, handle: VersionedHandle) {
        self.bytes = self.bytes.saturating_add(handle.record.content.len());
        self.by_expiry.insert((handle.record.expires, key));
        if let Some(owner) = handle.record.owner {
            self.by_owner.entry(owner).or_default().insert(key);
        }
        self.by_key.insert(key, handle);
    }

    fn remove(&mut self, key: HandleKey) -> Option<VersionedHandle> {
        let removed = self.by_key.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(removed.record.content.len());
        self.by_expiry.remove(&(removed.record.expires, key));
        if let Some(owner) = removed.record.owner
            && let Some(keys) = self.by_owner.get_mut(&owner)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(removed)
    }
}

#[async_trait]
impl HandleStore for MemoryHandleStore {
    async fn insert(&self, now: u64, key: HandleKey, record: HandleRecord) -> Result<(), HandleStoreError> {
        let mut records = self.unexpired(now);
        let MemoryHandleLimits { max_handles, max_handles_per_principal, .. } = self.0.limits;
        if records.by_key.len() >= max_handles {
            return Err(full("max_handles", max_handles));
        }
        let own = record.owner.and_then(|owner| records.by_owner.get(&owner)).map_or(0, BTreeSet::len);
        if record.owner.is_some() && own >= max_handles_per_principal {
            return Err(full("max_handles_per_principal", max_handles_per_principal));
        }
        self.check_bytes(records.bytes.saturating_add(record.content.len()))?;
        records.insert(key, VersionedHandle { record, version: 1 });
        Ok(())
    }

    async fn load(&self, now: u64, key: HandleKey) -> Result<Option<VersionedHandle>, HandleStoreError> {
        Ok(self.unexpired(now).by_key.get(&key).cloned())
    }

    async fn replace(
        &self,
        now: u64,
        key: HandleKey,
        record: HandleRecord,
        read: u64,
    ) -> Result<ReplaceOutcome, HandleStoreError> {
        let mut records = self.unexpired(now);
        let Some(there) = records.by_key.get(&key) else { return Ok(ReplaceOutcome::Conflict(None)) };
        if there.version != read {
            return Ok(ReplaceOutcome::Conflict(Some(there.clone())));
        }
        let others = records.bytes.saturating_sub(there.record.content.len());
        self.check_bytes(others.saturating_add(record.content.len()))?;
        let (version, owner) = (read.saturating_add(1), there.record.owner);
        records.remove(key);
        records.insert(key, VersionedHandle { record: HandleRecord { owner, ..record }, version });
        Ok(ReplaceOutcome::Replaced(version))
    }

    async fn take(&self, now: u64, key: HandleKey) -> Result<Option<HandleRecord>, HandleStoreError> {
        Ok(self.unexpired(now).remove(key).map(|taken| taken.record))
    }

    async fn list(&self, now: u64, owner: HandleOwner) -> Result<Vec<(HandleKey, VersionedHandle)>, HandleStoreError> {
        let records = self.unexpired(now);
        let keys = records.by_owner.get(&owner).into_iter().flatten();
        Ok(keys.filter_map(|key| Some((*key, records.by_key.get(key)?.clone()))).collect())
    }
}

impl fmt::Debug for MemoryHandleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (handles, bytes) = {
            let records = self.lock();
            (records.by_key.len(), records.bytes)
        };
        f.debug_struct("MemoryHandleStore")
            .field("limits", &self.0.limits)
            .field("handles", &handles)
            .field("bytes", &bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;
    use crate::handles::store_tests::check_handle_store;

    fn record(owner: Option<u8>, bytes: usize, expires: u64) -> HandleRecord {
        HandleRecord { owner: owner.map(|owner| HandleOwner([owner; 32])), content: vec![0; bytes], expires }
    }

    fn key(number: u8) -> HandleKey {
        HandleKey([number; 32])
    }

    fn insert(store: &MemoryHandleStore, now: u64, number: u8, record: HandleRecord) -> Result<(), HandleStoreError> {
        store.insert(now, key(number), record).now_or_never().expect("it does not wait")
    }

    #[test]
    fn it_is_a_store_of_handles() {
        let now = Cell::new(1_000_000);
        let sleep = async |time: Duration| now.set(now.get() + time.as_secs());
        let check = check_handle_store(async || MemoryHandleStore::default(), || now.get(), sleep);
        check.now_or_never().expect("it does not wait");
    }

    #[test]
    fn limits_refuse_and_evict_nothing() {
        let limits = MemoryHandleLimits::default().max_handles(3).max_handles_per_principal(2).max_bytes(100);
        let store = MemoryHandleStore::new(limits);
        let refusal = |setting: &str, limit: usize| Err(full(setting, limit));
        assert_eq!(insert(&store, 0, 1, record(Some(1), 40, 10)), Ok(()));
        assert_eq!(insert(&store, 0, 2, record(Some(1), 40, 20)), Ok(()));
        assert_eq!(insert(&store, 0, 3, record(Some(1), 1, 20)), refusal("max_handles_per_principal", 2));
        assert_eq!(insert(&store, 0, 3, record(Some(2), 21, 20)), refusal("max_bytes", 100));
        assert_eq!(insert(&store, 0, 3, record(None, 20, 20)), Ok(()));
        assert_eq!(insert(&store, 0, 4, record(Some(2), 0, 20)), refusal("max_handles", 3));
        let replace = |bytes| {
            let replaced = store.replace(0, key(1), record(Some(1), bytes, 10), 1);
            replaced.now_or_never().expect("it does not wait")
        };
        assert_eq!(replace(41).map(drop), refusal("max_bytes", 100));
        assert_eq!(replace(30), Ok(ReplaceOutcome::Replaced(2)));
        // One has expired.
        assert_eq!(insert(&store, 10, 4, record(Some(1), 40, 20)), Ok(()));
        assert_eq!(store.lock().bytes, 100);
    }

    #[test]
    fn expired_records_take_no_memory() {
        let store = MemoryHandleStore::default();
        for number in 0..10 {
            insert(&store, 0, number, record(Some(number), 10, 10)).unwrap();
        }
        assert_eq!(store.load(10, key(1)).now_or_never(), Some(Ok(None)));
        let records = store.lock();
        assert_eq!(records.by_key.len() + records.by_owner.len() + records.by_expiry.len() + records.bytes, 0);
    }

    #[test]
    fn one_of_many_threads_takes_a_record() {
        for _ in 0..50 {
            let (store, winners) = (MemoryHandleStore::default(), AtomicUsize::new(0));
            insert(&store, 0, 1, record(None, 10, 10)).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        if let Some(Ok(Some(_))) = store.take(0, key(1)).now_or_never() {
                            winners.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(winners.into_inner(), 1);
        }
    }
}
