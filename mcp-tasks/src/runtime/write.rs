//! Transitions of records in the store.

use std::sync::Arc;
use std::time::Duration;

use crate::runtime::Shared;
use crate::{
    QueueAction, ReplaceOutcome, TaskId, TaskRecord, TaskStoreError, TaskTicket, TaskWrite, TransitionError,
    VersionedTask,
};

/// A record as it was read from the store.
#[derive(Clone)]
pub(crate) struct ReadRecord {
    pub(crate) record: TaskRecord,
    pub(crate) version: u64,
}

impl ReadRecord {
    pub(crate) fn decode(id: TaskId, task: &VersionedTask) -> Result<Self, TaskStoreError> {
        Ok(Self { record: TaskRecord::decode(id, &task.task)?, version: task.version })
    }
}

/// Why a record was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The task does not exist any more, or another run has taken its place.
    Lost,
    /// The transition is not possible.
    Transition(TransitionError),
    /// The store refused the record.
    Store(TaskStoreError),
}

impl From<TransitionError> for WriteError {
    fn from(error: TransitionError) -> Self {
        Self::Transition(error)
    }
}

impl From<TaskStoreError> for WriteError {
    fn from(error: TaskStoreError) -> Self {
        Self::Store(error)
    }
}

/// What a transition does to a record in the store.
pub(crate) enum Change {
    /// Nothing.
    None,
    /// It is replaced.
    Write(QueueAction),
}

/// Applies a transition to a record, and again to what is in the store if that has changed meanwhile. Returns the new record.
pub(crate) async fn apply(
    shared: &Shared,
    mut read: ReadRecord,
    ticket: Option<TaskTicket>,
    transition: impl Fn(&mut TaskRecord, u64) -> Result<Change, TransitionError>,
) -> Result<ReadRecord, WriteError> {
    let id = read.record.id;
    loop {
        let now = shared.now();
        let mut record = read.record.clone();
        let queue = match transition(&mut record, now)? {
            Change::None => return Ok(read),
            Change::Write(queue) => queue,
        };
        let stored = record.encode(shared.store.limits())?;
        let write =
            TaskWrite { read: read.version, content: stored.content, is_finished: stored.is_finished, queue, ticket };
        read = match shared.store.replace(now, id, write).await? {
            ReplaceOutcome::Replaced(version) => return Ok(ReadRecord { record, version }),
            ReplaceOutcome::Conflict(task) => ReadRecord::decode(id, &task)?,
            ReplaceOutcome::LeaseLost | ReplaceOutcome::Gone => return Err(WriteError::Lost),
        };
    }
}

/// The time before an operation of a store that failed is repeated: it doubles.
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST_DELAY)
    }
}

impl Backoff {
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LAST_DELAY);
    }
}

const FIRST_DELAY: Duration = Duration::from_millis(50);
const LAST_DELAY: Duration = Duration::from_secs(2);

/// Loads a record. `None` if there is no such task.
pub(crate) async fn load(shared: &Arc<Shared>, id: TaskId) -> Result<Option<ReadRecord>, TaskStoreError> {
    let task = shared.store.load(shared.now(), id).await?;
    task.map(|task| ReadRecord::decode(id, &task)).transpose()
}
