//! Stores that fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport_http::session::{
    MemorySessionStore, RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError,
    VersionedRecord, async_trait,
};

/// A store that does not answer, or not any more once it has saved so much.
#[derive(Default)]
pub(crate) struct Gone {
    before: Option<MemorySessionStore>,
    saves: AtomicUsize,
}

impl Gone {
    pub(crate) fn after(before: MemorySessionStore, saves: usize) -> Self {
        Self { before: Some(before), saves: AtomicUsize::new(saves) }
    }
}

fn unavailable() -> StoreError {
    StoreError("unavailable".to_owned())
}

#[async_trait]
impl SessionStore for Gone {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        let is_there = self.saves.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        self.before.as_ref().filter(|_| is_there).ok_or_else(unavailable)?.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.remove(id).await
    }
}

/// A store that is asked and never answers.
#[derive(Clone, Default)]
pub(crate) struct Silent(pub(crate) Arc<AtomicUsize>);

#[async_trait]
impl SessionStore for Silent {
    async fn load(&self, _: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }

    async fn save(
        &self,
        _: SessionId,
        _: SessionRecord,
        _: RecordVersion,
        _: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        std::future::pending().await
    }

    async fn touch(&self, _: SessionId, _: Duration) -> Result<bool, StoreError> {
        std::future::pending().await
    }

    async fn remove(&self, _: SessionId) -> Result<bool, StoreError> {
        std::future::pending().await
    }
}

/// A store that does some things, and fails at others as soon as it is told to.
#[derive(Default)]
pub(crate) struct Faulty {
    pub(crate) store: MemorySessionStore,
    /// Saving does not come to an end.
    pub(crate) hangs_at_save: AtomicBool,
    /// How often that was tried.
    pub(crate) hanging: AtomicUsize,
    /// Records cannot be removed.
    pub(crate) fails_at_remove: AtomicBool,
    /// Nothing is said about a session that is in use.
    pub(crate) hangs_at_touch: Mutex<Option<SessionId>>,
}

#[async_trait]
impl SessionStore for Faulty {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.store.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        if self.hangs_at_save.load(Ordering::SeqCst) {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            return std::future::pending().await;
        }
        self.store.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        if *self.hangs_at_touch.lock().expect("no panic") == Some(id) {
            return std::future::pending().await;
        }
        self.store.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        if self.fails_at_remove.load(Ordering::SeqCst) { Err(unavailable()) } else { self.store.remove(id).await }
    }
}

/// A store that is slow, and in which records go while they are used.
pub(crate) struct Leaky(pub(crate) MemorySessionStore);

#[async_trait]
impl SessionStore for Leaky {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        if !new.subscriptions.is_empty() {
            self.0.remove(id).await?;
        }
        self.0.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        self.0.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.remove(id).await
    }
}
