//! Who waits for a session.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// The tasks of all responses that a session has open. There are few, and whichever looks first does the work for all.
#[derive(Default)]
pub(crate) struct Readers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    tasks: Vec<(u64, Waker)>,
    last: u64,
}

impl Readers {
    /// A number for somebody who will wait.
    pub(crate) fn next(&self) -> u64 {
        let mut waiting = self.lock();
        waiting.last += 1;
        waiting.last
    }

    /// Notes who is to be woken.
    pub(crate) fn register(&self, reader: u64, waker: &Waker) {
        let is_it = |task: &(u64, Waker)| task.0 == reader;
        if self.lock().tasks.iter().any(|task| is_it(task) && task.1.will_wake(waker)) {
            return;
        }
        // Wakers are cloned and dropped without the lock.
        let mut waker = waker.clone();
        let mut waiting = self.lock();
        match waiting.tasks.iter_mut().find(|task| is_it(task)) {
            Some((_, task)) => std::mem::swap(task, &mut waker),
            None => waiting.tasks.push((reader, waker)),
        }
    }

    /// Forgets somebody who does not wait any more; returns whether nobody is left.
    pub(crate) fn leave(&self, reader: u64) -> bool {
        let mut waiting = self.lock();
        waiting.tasks.retain(|(other, _)| *other != reader);
        waiting.tasks.is_empty()
    }

    /// Wakes all; returns whether there was anybody.
    pub(crate) fn wake_all(&self) -> bool {
        let tasks: Vec<Waker> = self.lock().tasks.iter().map(|(_, task)| task.clone()).collect();
        let was_any = !tasks.is_empty();
        tasks.into_iter().for_each(Waker::wake);
        was_any
    }

    /// Wakes some.
    pub(crate) fn wake(&self, readers: &[u64]) {
        for reader in readers {
            let task = self.lock().tasks.iter().find(|(other, _)| other == reader).map(|(_, task)| task.clone());
            if let Some(task) = task {
                task.wake();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}
