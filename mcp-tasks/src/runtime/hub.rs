//! What waits for changes of tasks in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::{TaskChange, TaskId};

/// Distributes the changes of a store to what waits for them. A process has one subscription.
#[derive(Default)]
pub(crate) struct Hub {
    waiting: Mutex<BTreeMap<TaskId, Waiting>>,
    /// There may be tasks to claim.
    pub(crate) queued: Notify,
}

struct Waiting {
    changed: watch::Sender<()>,
    count: usize,
}

impl Hub {
    /// Waits for changes of a task from now on.
    pub(crate) fn watch(self: &Arc<Self>, id: TaskId) -> TaskWatch {
        let mut waiting = self.lock();
        let entry = waiting.entry(id).or_insert_with(|| Waiting { changed: watch::Sender::new(()), count: 0 });
        entry.count += 1;
        TaskWatch { hub: Arc::clone(self), id, changed: entry.changed.subscribe() }
    }

    pub(crate) fn handle(&self, change: TaskChange) {
        match change {
            TaskChange::Changed(id) => {
                let changed = self.lock().get(&id).map(|waiting| waiting.changed.clone());
                // Without the lock, as this wakes tasks.
                if let Some(changed) = changed {
                    let _ = changed.send(());
                }
            }
            TaskChange::Queued => self.queued.notify_one(),
            TaskChange::Gap => {
                self.queued.notify_one();
                let all: Vec<_> = self.lock().values().map(|waiting| waiting.changed.clone()).collect();
                for changed in all {
                    let _ = changed.send(());
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes of one task.
pub(crate) struct TaskWatch {
    hub: Arc<Hub>,
    id: TaskId,
    changed: watch::Receiver<()>,
}

impl TaskWatch {
    /// Waits until the task has changed since the last call, or since the watch began.
    pub(crate) async fn changed(&mut self) {
        // The hub keeps the sender as long as there is a watch.
        let _ = self.changed.changed().await;
    }
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        let mut waiting = self.hub.lock();
        if let Some(entry) = waiting.get_mut(&self.id) {
            entry.count -= 1;
            if entry.count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches are forgotten when they are dropped.
    #[tokio::test]
    async fn watches_see_changes_and_leave_nothing() {
        let (hub, id) = (Arc::new(Hub::default()), TaskId::from_bytes([1; 32]));
        let (mut one, mut two) = (hub.watch(id), hub.watch(id));
        hub.handle(TaskChange::Changed(id));
        one.changed().await;
        two.changed().await;
        hub.handle(TaskChange::Gap);
        one.changed().await;
        drop(one);
        assert_eq!(hub.lock().len(), 1);
        drop(two);
        assert!(hub.lock().is_empty());
    }
}
