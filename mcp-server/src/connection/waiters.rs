//! Tasks that wait for a change of a connection.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The wakers of tasks that wait; absent until one does.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<Option<Box<Wakers>>>);

#[derive(Default)]
struct Wakers {
    last_number: u64,
    /// One for each future that waits, by its number.
    waiting: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Waits until `ready` returns a value. It is called at once, and after each [`wake_all`](Self::wake_all).
    pub(crate) async fn wait_for<T>(&self, ready: impl Fn() -> Option<T>) -> T {
        let mut waiter = Waiter { waiters: self, number: None };
        poll_fn(|cx| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            waiter.register(cx.waker());
            // It may have changed before the waker was registered.
            ready().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes all tasks, after a change.
    pub(crate) fn wake_all(&self) {
        let waiting = self.lock().as_mut().map(|wakers| std::mem::take(&mut wakers.waiting));
        waiting.into_iter().flat_map(BTreeMap::into_values).for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Wakers>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that waits. Its waker is removed with it, as the change may never come.
struct Waiter<'a> {
    waiters: &'a Waiters,
    /// Set when the future was polled first.
    number: Option<u64>,
}

impl Waiter<'_> {
    fn register(&mut self, waker: &Waker) {
        // Cloned without the lock, and the one that it replaces is dropped without it.
        let waker = waker.clone();
        let mut wakers = self.waiters.lock();
        let Wakers { last_number, waiting } = &mut **wakers.get_or_insert_default();
        let number = *self.number.get_or_insert_with(|| {
            *last_number += 1;
            *last_number
        });
        let replaced = waiting.insert(number, waker);
        drop(wakers);
        drop(replaced);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        // The waker is dropped without the lock.
        let waker = self.number.and_then(|number| self.waiters.lock().as_mut()?.waiting.remove(&number));
        drop(waker);
    }
}
