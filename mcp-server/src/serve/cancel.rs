//! The cancellation of a request.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// A flag that is set once, and that tasks can wait for.
#[derive(Debug, Default)]
pub(crate) struct CancelSignal {
    is_set: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl CancelSignal {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            if self.is_set() {
                return Poll::Ready(());
            }
            // Cloned without the lock, and dropped without it if it is there already.
            let waker = cx.waker().clone();
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.iter().any(|other| other.will_wake(&waker)) {
                waiting.push(waker);
            }
            drop(waiting);
            // It may have been set before the waker was registered.
            if self.is_set() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn tasks_that_wait_are_woken() {
        let cancel = Arc::new(CancelSignal::default());
        let mut cx = std::task::Context::from_waker(Waker::noop());
        let waiting = Arc::clone(&cancel);
        let mut waiting = Box::pin(async move { waiting.wait().await });
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        cancel.set();
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
        assert!(cancel.is_set() && std::pin::pin!(cancel.wait()).poll(&mut cx).is_ready());
    }
}
