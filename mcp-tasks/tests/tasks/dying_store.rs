//! A process that loses its store, as if it had been killed, or some of its responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mcp_tasks::{
    ClaimedTask, InsertedTask, MemoryTaskStore, NewTask, ReplaceOutcome, TaskChanges, TaskClaim, TaskCursor, TaskId,
    TaskLimits, TaskOwner, TaskPage, TaskStore, TaskStoreError, TaskTicket, TaskUsage, TaskWrite, VersionedTask,
    async_trait,
};
use tokio::time::sleep;

/// A store that others share, and that does not respond to this process any more after its death.
#[derive(Clone)]
pub(crate) struct DyingStore {
    store: Arc<MemoryTaskStore>,
    is_dead: Arc<AtomicBool>,
    /// Whether the process dies when it wants to store an outcome.
    dies_at_the_end: Arc<AtomicBool>,
    /// Whether tasks are inserted without a response.
    loses_insertions: Arc<AtomicBool>,
    refuses_removals: Arc<AtomicBool>,
    /// Whether the response to the next replacement is lost.
    loses_replacement: Arc<AtomicBool>,
    /// How long the responses take, in milliseconds.
    insertion_delay: Arc<AtomicU64>,
    claim_delay: Arc<AtomicU64>,
}

impl DyingStore {
    pub(crate) fn new(store: &Arc<MemoryTaskStore>) -> Self {
        Self {
            store: Arc::clone(store),
            is_dead: Arc::default(),
            dies_at_the_end: Arc::default(),
            loses_insertions: Arc::default(),
            refuses_removals: Arc::default(),
            loses_replacement: Arc::default(),
            insertion_delay: Arc::default(),
            claim_delay: Arc::default(),
        }
    }

    pub(crate) fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn die_at_the_end(&self) {
        self.dies_at_the_end.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lose_insertions(&self) {
        self.loses_insertions.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lose_replacement(&self) {
        self.loses_replacement.store(true, Ordering::Relaxed);
    }

    pub(crate) fn refuse_removals(&self) {
        self.refuses_removals.store(true, Ordering::Relaxed);
    }

    pub(crate) fn delay_insertions(&self, seconds: u64) {
        self.insertion_delay.store(seconds * 1000, Ordering::Relaxed);
    }

    pub(crate) fn delay_claims(&self, seconds: u64) {
        self.claim_delay.store(seconds * 1000, Ordering::Relaxed);
    }

    async fn live(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl TaskStore for DyingStore {
    fn limits(&self) -> &TaskLimits {
        self.store.limits()
    }

    async fn insert(&self, now: u64, new: NewTask) -> Result<InsertedTask, TaskStoreError> {
        self.live().await;
        let inserted = self.store.insert(now, new).await;
        if self.loses_insertions.load(Ordering::Relaxed) {
            return Err(TaskStoreError::Failed("no response".to_owned()));
        }
        sleep(Duration::from_millis(self.insertion_delay.load(Ordering::Relaxed))).await;
        inserted
    }

    async fn load(&self, now: u64, id: TaskId) -> Result<Option<VersionedTask>, TaskStoreError> {
        self.live().await;
        self.store.load(now, id).await
    }

    async fn replace(&self, now: u64, id: TaskId, write: TaskWrite) -> Result<ReplaceOutcome, TaskStoreError> {
        if write.is_finished && self.dies_at_the_end.load(Ordering::Relaxed) {
            self.die();
        }
        self.live().await;
        let replaced = self.store.replace(now, id, write).await;
        if self.loses_replacement.swap(false, Ordering::Relaxed) {
            return Err(TaskStoreError::Failed("no response".to_owned()));
        }
        replaced
    }

    async fn claim(&self, now: u64, claim: TaskClaim<'_>) -> Result<Option<ClaimedTask>, TaskStoreError> {
        self.live().await;
        let claimed = self.store.claim(now, claim).await;
        sleep(Duration::from_millis(self.claim_delay.load(Ordering::Relaxed))).await;
        claimed
    }

    async fn renew(&self, now: u64, ticket: TaskTicket, lease: Duration) -> Result<bool, TaskStoreError> {
        self.live().await;
        self.store.renew(now, ticket, lease).await
    }

    async fn release(&self, now: u64, ticket: TaskTicket) -> Result<bool, TaskStoreError> {
        self.live().await;
        self.store.release(now, ticket).await
    }

    async fn list(
        &self,
        now: u64,
        owner: TaskOwner,
        after: Option<TaskCursor>,
        count: usize,
    ) -> Result<TaskPage, TaskStoreError> {
        self.live().await;
        self.store.list(now, owner, after, count).await
    }

    async fn remove(&self, now: u64, id: TaskId) -> Result<bool, TaskStoreError> {
        self.live().await;
        if self.refuses_removals.load(Ordering::Relaxed) {
            return Err(TaskStoreError::Failed("no response".to_owned()));
        }
        self.store.remove(now, id).await
    }

    async fn usage(&self, now: u64) -> Result<TaskUsage, TaskStoreError> {
        self.live().await;
        self.store.usage(now).await
    }

    fn changes(&self) -> TaskChanges {
        self.store.changes()
    }
}
