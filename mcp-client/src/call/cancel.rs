//! Cancelling a call from another task.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Cancels a call; created by [`Call::cancel_handle`](crate::Call::cancel_handle).
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Mutex<CancelState>>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: bool,
    waker: Option<Waker>,
}

impl CancelHandle {
    /// Cancels the call. No effect if it has completed.
    pub fn cancel(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_cancelled = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_cancelled {
            return Poll::Ready(());
        }
        state.waker = Some(waker.clone());
        Poll::Pending
    }
}
