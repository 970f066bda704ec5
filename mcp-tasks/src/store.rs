//! The trait of stores, which several processes can share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{TaskChanges, TaskId, TaskLimit, TaskLimits, TaskOwner, TaskPart};

/// What a store keeps of a task: a content that is opaque to it, and what it counts and lists tasks by.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct StoredTask {
    /// The owner, by which tasks are listed and counted; `None` for anonymous callers.
    pub owner: Option<TaskOwner>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// When the task expires, in milliseconds since the Unix epoch.
    pub expires: u64,
    /// Whether the status is final. A finished task is never replaced.
    pub is_finished: bool,
    /// The rest of the record, see [`TaskRecord::encode`](crate::TaskRecord::encode).
    pub content: Bytes,
}

/// Does not show the content.
impl fmt::Debug for StoredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTask")
            .field("owner", &self.owner)
            .field("tool", &self.tool)
            .field("expires", &self.expires)
            .field("is_finished", &self.is_finished)
            .field("bytes", &self.content.len())
            .finish()
    }
}

/// A task with what the store counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct VersionedTask {
    /// The task.
    pub task: StoredTask,
    /// The version: 1 at first; it grows with each replacement.
    pub version: u64,
    /// How often the task was claimed.
    pub run: u64,
}

/// A task to be inserted.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to store")]
pub struct NewTask {
    /// The id, which is random and therefore unique.
    pub id: TaskId,
    /// The task.
    pub task: StoredTask,
    /// Who runs it.
    pub start: TaskStart,
}

/// Who runs a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other beginnings")]
pub enum TaskStart {
    /// The worker that claims it first.
    Queued,
    /// The worker that inserts it, as if it had claimed it: the handler runs already.
    Claimed {
        /// The name of the worker.
        worker: Arc<str>,
        /// The time until another worker may take the task over.
        lease: Duration,
    },
}

/// The outcome of [`TaskStore::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct InsertedTask {
    /// The version of the task.
    pub version: u64,
    /// The ticket of its run, for [`TaskStart::Claimed`].
    pub ticket: Option<TaskTicket>,
}

/// The right to run a task, from a claim until the lease of that claim is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct TaskTicket {
    /// The task.
    pub id: TaskId,
    /// The number of the run: the ticket of an earlier run is not accepted.
    pub run: u64,
    /// A random number in stores that may lose their latest writes, for example by a failover: another claim may have the same
    /// number then. Others use 0.
    pub token: u64,
}

/// A request for a task to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores have to handle all of it")]
pub struct TaskClaim<'a> {
    /// The name of the worker, for operators only.
    pub worker: &'a str,
    /// The time until another worker may take the task over.
    pub lease: Duration,
    /// The tools that the worker has, or `None` for all of them. Tasks of other tools are left to other workers, and keep their
    /// places, until they are about to expire: in the last tenth of its life, but not earlier than one lease before its end, a task
    /// is claimed by any worker, which can say why it fails.
    pub tools: Option<&'a [&'a str]>,
}

impl<'a> TaskClaim<'a> {
    /// Creates a request for a task of any tool.
    #[must_use]
    pub fn new(worker: &'a str, lease: Duration) -> Self {
        Self { worker, lease, tools: None }
    }

    /// Sets the tools that the worker has.
    #[must_use]
    pub fn tools(self, tools: &'a [&'a str]) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Returns whether the worker has a tool.
    #[must_use]
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.is_none_or(|tools| tools.contains(&tool))
    }
}

/// A task that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct ClaimedTask {
    /// The ticket of this run.
    pub ticket: TaskTicket,
    /// The task.
    pub task: VersionedTask,
    /// Whether the lease of an earlier run has expired, so that its worker is probably dead. It is for operators only.
    pub is_taken_over: bool,
}

/// A replacement of a task. The owner, the tool and the time of expiry stay the same.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to replace")]
pub struct TaskWrite {
    /// The version that the new content was computed from.
    pub read: u64,
    /// The new content.
    pub content: Bytes,
    /// Whether the status is final now.
    pub is_finished: bool,
    /// What happens to the place of the task in the queue.
    pub queue: QueueAction,
    /// The ticket of the run that writes, or `None` for a write on behalf of a client, such as a cancellation.
    pub ticket: Option<TaskTicket>,
}

/// Does not show the content.
impl fmt::Debug for TaskWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWrite")
            .field("read", &self.read)
            .field("bytes", &self.content.len())
            .field("is_finished", &self.is_finished)
            .field("queue", &self.queue)
            .field("ticket", &self.ticket)
            .finish()
    }
}

/// What a replacement does to the place of a task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores have to handle each of them")]
pub enum QueueAction {
    /// It stays queued, or claimed, or neither.
    Keep,
    /// It is queued, unless it is queued or claimed already.
    Enqueue,
    /// It is neither queued nor claimed any more: the ticket of its run, if there is one, is no longer accepted. The same
    /// happens to a task that is finished.
    Done,
}

/// The outcome of [`TaskStore::replace`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other outcomes")]
pub enum ReplaceOutcome {
    /// The task was replaced, and has this version now.
    Replaced(u64),
    /// The version did not match, or the task is finished. This is the task in the store.
    Conflict(Box<VersionedTask>),
    /// The ticket is not accepted: the lease was lost, or the task is no longer claimed.
    LeaseLost,
    /// There is no such task.
    Gone,
}

/// A position in the tasks of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a number with a meaning")]
pub struct TaskCursor(pub u64);

/// Some tasks of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct TaskPage {
    /// The tasks, in the order of their creation.
    pub tasks: Vec<(TaskId, VersionedTask)>,
    /// The position of the next page, if there may be one.
    pub next: Option<TaskCursor>,
}

/// How many tasks a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct TaskUsage {
    /// All tasks.
    pub kept: usize,
    /// Those that are not finished.
    pub unfinished: usize,
    /// Those that can be claimed, without those whose lease has expired.
    pub queued: usize,
    /// Those that are claimed.
    pub claimed: usize,
    /// The bytes of all contents.
    pub bytes: usize,
}

/// The error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// A limit is reached: try again when other tasks have finished, or have expired.
    #[error("the store of tasks is full: `TaskLimits::{limit}` is {max}")]
    Full {
        /// The limit.
        limit: TaskLimit,
        /// Its value.
        max: usize,
    },
    /// A part of a record is too large.
    #[error("the {part} of the task has {bytes} bytes, and `TaskLimits::max_{part}_bytes` is {max}")]
    TooLarge {
        /// The part.
        part: TaskPart,
        /// Its size in bytes.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The store has invalid data.
    #[error("the store of tasks has invalid data: {0}")]
    Invalid(String),
    /// The store does not respond, or refuses.
    #[error("the store of tasks failed: {0}")]
    Failed(String),
}

/// A store for tasks and their queue, implemented with [`macro@async_trait`].
///
/// Times are in milliseconds since the Unix epoch; `now` is the current time of the caller. A task whose time is over is as
/// good as removed, and a task is never removed earlier. A store that several processes share has its own clock: it derives
/// how long a task lives from the difference of `expires` and `now`, so that their clocks may differ.
///
/// Each method is atomic: a task that is inserted is queued, and no other call sees one without the other. A task has at
/// most one place in the queue, and is claimed by at most one worker at a time. All workers should use the same lease.
///
/// # Effects of a worker
///
/// A ticket keeps a worker that has lost its lease from writing. Nothing keeps it from other effects, such as a step that the next
/// worker has completed meanwhile. Before an effect that must not be repeated, a worker therefore makes sure that its lease lasts:
/// it measures the lease by a clock that does not jump, from before the call of [`claim`](Self::claim) or [`renew`](Self::renew),
/// and renews the lease if it may have expired. It also renews the lease after [`TaskStoreError::Failed`], as the write whose
/// outcome is unknown may have ended its run.
///
/// Implementations can be tested with `mcp_tasks::store_tests` (feature `store-tests`).
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Returns the limits, which the store enforces.
    fn limits(&self) -> &TaskLimits;

    /// Inserts a task as version 1, and queues it or claims it.
    ///
    /// # Errors
    ///
    /// Returns an error if a limit is reached, if the content is too large, or if the store does not respond. After
    /// [`TaskStoreError::Failed`] the task may have been inserted.
    async fn insert(&self, now: u64, new: NewTask) -> Result<InsertedTask, TaskStoreError>;

    /// Returns a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has invalid data.
    async fn load(&self, now: u64, id: TaskId) -> Result<Option<VersionedTask>, TaskStoreError>;

    /// Replaces a task if it has the version that was read, is not finished, and if the ticket, if there is one, is that of
    /// its current run.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is too large, if it is larger than before and all contents together, or those of the owner,
    /// would exceed their limit (by more than [`TaskLimits::FINAL_BYTES`] with the last write of a task), or if the store does not
    /// respond. After [`TaskStoreError::Failed`] the task may have been replaced.
    async fn replace(&self, now: u64, id: TaskId, write: TaskWrite) -> Result<ReplaceOutcome, TaskStoreError>;

    /// Claims the task of the worker's tools that has been queued for the longest time, or one whose lease has expired, and
    /// increments its run.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has invalid data.
    async fn claim(&self, now: u64, claim: TaskClaim<'_>) -> Result<Option<ClaimedTask>, TaskStoreError>;

    /// Extends the lease of a claimed task, unless its ticket is no longer accepted; returns whether it was extended.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn renew(&self, now: u64, ticket: TaskTicket, lease: Duration) -> Result<bool, TaskStoreError>;

    /// Queues a claimed task again, at once; returns whether its ticket was accepted.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn release(&self, now: u64, ticket: TaskTicket) -> Result<bool, TaskStoreError>;

    /// Returns up to `count` tasks of an owner in the order of their creation, after a position. Tasks that are created or
    /// removed meanwhile move no other task to another page.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has invalid data.
    async fn list(
        &self,
        now: u64,
        owner: TaskOwner,
        after: Option<TaskCursor>,
        count: usize,
    ) -> Result<TaskPage, TaskStoreError>;

    /// Removes a task, whatever its status; returns whether there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn remove(&self, now: u64, id: TaskId) -> Result<bool, TaskStoreError>;

    /// Returns how many tasks there are.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn usage(&self, now: u64) -> Result<TaskUsage, TaskStoreError>;

    /// Subscribes to the changes from now on. A process needs one subscription. Changes are hints: one may be reported more
    /// than once, and after a [`TaskChange::Gap`](crate::TaskChange::Gap) any task may have changed. Tasks that expire, and
    /// leases that do, are not reported.
    fn changes(&self) -> TaskChanges;
}
