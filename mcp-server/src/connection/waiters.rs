//! Tasks that wait for a change of a connection.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// The wakers of tasks that wait.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    /// Waits until `ready` returns a value. It is called at once, and after each [`wake_all`](Self::wake_all).
    pub(crate) async fn wait_for<T>(&self, ready: impl Fn() -> Option<T>) -> T {
        poll_fn(|cx| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            // Cloned without the lock, and dropped without it if it is there already.
            let waker = cx.waker().clone();
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.iter().any(|other| other.will_wake(&waker)) {
                waiting.push(waker);
            }
            drop(waiting);
            // It may have changed before the waker was registered.
            ready().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes all tasks, after a change.
    pub(crate) fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}
