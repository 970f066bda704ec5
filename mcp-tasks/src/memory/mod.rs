//! Tasks in memory.

mod tables;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    ClaimedTask, InsertedTask, NewTask, ReplaceOutcome, TaskChange, TaskChangeHub, TaskChanges, TaskClaim, TaskCursor,
    TaskId, TaskLimits, TaskOwner, TaskPage, TaskPart, TaskStart, TaskStore, TaskStoreError, TaskTicket, TaskUsage,
    TaskWrite, VersionedTask,
};
use tables::{Start, Tables, compact};

/// A [`TaskStore`] in memory, for a server in one process: its tasks end with it.
///
/// Clones share the tasks, so that servers of one process can share the limits. Tasks that have expired are removed by the
/// next call of any method.
#[derive(Clone, Default)]
pub struct MemoryTaskStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    limits: TaskLimits,
    tables: Mutex<Tables>,
    changes: TaskChangeHub,
}

impl MemoryTaskStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: TaskLimits) -> Self {
        Self(Arc::new(Shared { limits, ..Shared::default() }))
    }

    /// Locks the tables, after the tasks that have expired were removed.
    fn unexpired(&self, now: u64) -> MutexGuard<'_, Tables> {
        let mut tables = self.0.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.sweep(now);
        tables
    }

    fn check_size(&self, bytes: usize) -> Result<(), TaskStoreError> {
        let max = self.0.limits.max_record_bytes();
        if bytes > max { Err(TaskStoreError::TooLarge { part: TaskPart::Record, bytes, max }) } else { Ok(()) }
    }
}

/// The end of a lease.
fn until(now: u64, lease: Duration) -> u64 {
    now.saturating_add(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

// No change is sent while the tables are locked, as that wakes those who wait for it.
#[async_trait]
impl TaskStore for MemoryTaskStore {
    fn limits(&self) -> &TaskLimits {
        &self.0.limits
    }

    async fn insert(&self, now: u64, new: NewTask) -> Result<InsertedTask, TaskStoreError> {
        let NewTask { id, mut task, start } = new;
        self.check_size(task.content.len())?;
        task.content = compact(&task.content);
        let is_finished = task.is_finished;
        let start = match start {
            TaskStart::Queued => Start::Queued,
            TaskStart::Claimed { lease, .. } => Start::Claimed(until(now, lease)),
        };
        self.unexpired(now).insert(&self.0.limits, now, id, task, &start)?;
        let mut inserted = InsertedTask { version: 1, ticket: None };
        match start {
            _ if is_finished => {}
            Start::Queued => self.0.changes.send(TaskChange::Queued),
            Start::Claimed(_) => inserted.ticket = Some(TaskTicket { id, run: 1, token: 0 }),
        }
        Ok(inserted)
    }

    async fn load(&self, now: u64, id: TaskId) -> Result<Option<VersionedTask>, TaskStoreError> {
        Ok(self.unexpired(now).load(id))
    }

    async fn replace(&self, now: u64, id: TaskId, mut write: TaskWrite) -> Result<ReplaceOutcome, TaskStoreError> {
        self.check_size(write.content.len())?;
        write.content = compact(&write.content);
        let (outcome, is_queued) = self.unexpired(now).replace(&self.0.limits, id, write)?;
        if let ReplaceOutcome::Replaced(_) = outcome {
            self.0.changes.send(TaskChange::Changed(id));
        }
        if is_queued {
            self.0.changes.send(TaskChange::Queued);
        }
        Ok(outcome)
    }

    async fn claim(&self, now: u64, claim: TaskClaim<'_>) -> Result<Option<ClaimedTask>, TaskStoreError> {
        Ok(self.unexpired(now).claim(now, until(now, claim.lease), &claim))
    }

    async fn renew(&self, now: u64, ticket: TaskTicket, lease: Duration) -> Result<bool, TaskStoreError> {
        Ok(self.unexpired(now).renew(ticket, until(now, lease)))
    }

    async fn release(&self, now: u64, ticket: TaskTicket) -> Result<bool, TaskStoreError> {
        let is_released = self.unexpired(now).release(ticket);
        if is_released {
            self.0.changes.send(TaskChange::Queued);
        }
        Ok(is_released)
    }

    async fn list(
        &self,
        now: u64,
        owner: TaskOwner,
        after: Option<TaskCursor>,
        count: usize,
    ) -> Result<TaskPage, TaskStoreError> {
        Ok(self.unexpired(now).list(owner, after, count))
    }

    async fn remove(&self, now: u64, id: TaskId) -> Result<bool, TaskStoreError> {
        let is_removed = self.unexpired(now).remove(id);
        if is_removed {
            self.0.changes.send(TaskChange::Changed(id));
        }
        Ok(is_removed)
    }

    async fn usage(&self, now: u64) -> Result<TaskUsage, TaskStoreError> {
        Ok(self.unexpired(now).usage())
    }

    fn changes(&self) -> TaskChanges {
        self.0.changes.subscribe()
    }
}

impl fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usage = self.0.tables.lock().unwrap_or_else(PoisonError::into_inner).usage();
        f.debug_struct("MemoryTaskStore").field("limits", &self.0.limits).field("usage", &usage).finish()
    }
}

#[cfg(test)]
mod tests;
