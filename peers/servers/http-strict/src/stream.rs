//! A stream that stays open: what is to be sent, and the task that sends it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// The stream of a subscription or of a session. It is open as long as a response has it.
#[derive(Default)]
pub(crate) struct Stream(Mutex<State>);

#[derive(Default)]
struct State {
    events: VecDeque<Bytes>,
    reader: Option<Waker>,
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a response besides the table that the stream is in.
    pub(crate) fn is_open(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    pub(crate) fn send(&self, event: Bytes) {
        let reader = {
            let mut state = self.lock();
            state.events.push_back(event);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(crate) fn poll_event(&self, context: &Context<'_>) -> Poll<Bytes> {
        let mut state = self.lock();
        if let Some(event) = state.events.pop_front() {
            return Poll::Ready(event);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}
