//! Session records in memory.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::{RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError, VersionedRecord};

/// A [`SessionStore`] in memory, for tests and for several servers in one process.
///
/// Clones share the records.
#[derive(Clone, Default)]
pub struct MemorySessionStore(Arc<Mutex<Records>>);

#[derive(Default)]
struct Records {
    by_id: HashMap<SessionId, Record>,
    /// When records expire, in order; without those that never expire.
    ends: BTreeSet<(Instant, SessionId)>,
}

struct Record {
    found: VersionedRecord,
    end: Option<Instant>,
}

impl MemorySessionStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the records, after those that have expired were removed.
    fn unexpired(&self, now: Instant) -> MutexGuard<'_, Records> {
        let mut records = self.lock();
        records.expire(now);
        records
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessionStore").field("records", &self.lock().by_id.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl SessionStore for MemorySessionStore {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        Ok(self.unexpired(Instant::now()).by_id.get(&id).map(|record| record.found.clone()))
    }

    async fn save(
        &self,
        id: SessionId,
        record: SessionRecord,
        read: RecordVersion,
        time_to_live: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        let now = Instant::now();
        let mut records = self.unexpired(now);
        let there = records.by_id.get(&id).map(|record| &record.found);
        let version = there.map_or(RecordVersion::NONE, |found| found.version);
        if version != read {
            return Ok(SaveOutcome::Conflict(there.cloned().map(Box::new)));
        }
        let version = RecordVersion(version.0.saturating_add(1));
        let found = VersionedRecord { record, version };
        match records.by_id.get_mut(&id) {
            Some(record) => record.found = found,
            None => drop(records.by_id.insert(id, Record { found, end: Some(now) })),
        }
        records.extend(id, now.checked_add(time_to_live));
        Ok(SaveOutcome::Saved(version))
    }

    async fn touch(&self, id: SessionId, time_to_live: Duration) -> Result<bool, StoreError> {
        let now = Instant::now();
        Ok(self.unexpired(now).extend(id, now.checked_add(time_to_live)))
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        Ok(self.unexpired(Instant::now()).remove(id))
    }
}

impl Records {
    fn expire(&mut self, now: Instant) {
        while let Some((end, id)) = self.ends.first().copied()
            && end <= now
        {
            self.ends.pop_first();
            self.by_id.remove(&id);
        }
    }

    /// Extends the life of a record, which it never shortens. Returns whether there is one.
    fn extend(&mut self, id: SessionId, end: Option<Instant>) -> bool {
        let Some(record) = self.by_id.get_mut(&id) else { return false };
        let Some(before) = record.end else { return true };
        self.ends.remove(&(before, id));
        record.end = end.map(|end| end.max(before));
        self.ends.extend(record.end.map(|end| (end, id)));
        true
    }

    fn remove(&mut self, id: SessionId) -> bool {
        let Some(record) = self.by_id.remove(&id) else { return false };
        if let Some(end) = record.end {
            self.ends.remove(&(end, id));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_tests::{check_session_store, record};

    /// It passes the tests for all session stores.
    // covers: S4.115, S4.116, RB-54
    #[tokio::test(start_paused = true)]
    async fn records_are_kept() {
        check_session_store(async || MemorySessionStore::new()).await;
    }

    /// Expired and removed records take no memory, and a time to live without end is possible.
    // covers: RB-54
    #[tokio::test(start_paused = true)]
    async fn expired_records_take_no_memory() {
        let store = MemorySessionStore::new();
        let [short, long, never] = [(); 3].map(|()| SessionId::random().unwrap());
        let second = Duration::from_secs(1);
        for (id, time) in [(short, second), (long, 10 * second), (never, Duration::MAX)] {
            store.save(id, record(), RecordVersion::NONE, time).await.unwrap();
        }
        tokio::time::advance(second).await;
        assert_eq!(store.load(short).await, Ok(None));
        assert!(store.load(never).await.unwrap().is_some());
        assert!(store.touch(never, second).await.unwrap());
        assert!(store.remove(long).await.unwrap());
        tokio::time::advance(second).await;
        assert!(store.load(never).await.unwrap().is_some(), "it is not shortened");
        assert!(store.remove(never).await.unwrap());
        let records = store.lock();
        assert_eq!((records.by_id.len(), records.ends.len()), (0, 0));
    }
}
