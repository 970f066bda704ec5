//! Changes of the tasks of a store.

use std::fmt;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::TaskId;

/// A change in a store of tasks, whichever process made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "subscribers have to handle each of them")]
pub enum TaskChange {
    /// A task was replaced or removed.
    Changed(TaskId),
    /// A task may be claimed.
    Queued,
    /// Changes may be missing: read what you wait for again.
    Gap,
}

/// The changes of a store from the time of the subscription on, see [`TaskStore::changes`](crate::TaskStore::changes).
#[derive(Debug)]
pub struct TaskChanges(Receiver<TaskChange>);

impl TaskChanges {
    /// Waits for the next change. Returns `None` when the store was dropped.
    ///
    /// A subscriber that is too slow gets a [`TaskChange::Gap`] instead of the changes that it missed. This method is
    /// cancel-safe.
    pub async fn next(&mut self) -> Option<TaskChange> {
        match self.0.recv().await {
            Ok(change) => Some(change),
            Err(RecvError::Lagged(_)) => Some(TaskChange::Gap),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Distributes changes to the subscribers of a store, for implementations of [`TaskStore`](crate::TaskStore).
#[derive(Clone)]
pub struct TaskChangeHub(Sender<TaskChange>);

impl TaskChangeHub {
    /// Creates a hub that retains up to `capacity` changes for slow subscribers, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // The channel panics without room, or with more than half of the address space.
        Self(channel(capacity.clamp(1, MAX_CAPACITY)).0)
    }

    /// Sends a change to all subscribers. This does not wait, and wakes subscribers: call it without holding a lock.
    pub fn send(&self, change: TaskChange) {
        // Without subscribers there is nothing to do.
        let _ = self.0.send(change);
    }

    /// Subscribes to the changes from now on.
    #[must_use]
    pub fn subscribe(&self) -> TaskChanges {
        TaskChanges(self.0.subscribe())
    }
}

impl Default for TaskChangeHub {
    /// Creates a hub that retains up to 1,024 changes.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl fmt::Debug for TaskChangeHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskChangeHub").field("subscribers", &self.0.receiver_count()).finish_non_exhaustive()
    }
}

const MAX_CAPACITY: usize = 1 << 20;
