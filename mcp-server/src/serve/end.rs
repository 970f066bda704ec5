//! The end of a request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_types::ErrorObject;

use crate::serve::response::Response;

/// How a request ended: see [`RequestContext::on_end`](crate::RequestContext::on_end).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a request can end in these four ways")]
pub enum Outcome {
    /// With a result.
    Completed,
    /// With input requests. A modern client retries the request with its responses, and the retry is another request.
    InputRequired,
    /// With an error, with a tool result that has `isError`, or because a handler or middleware panicked.
    Failed,
    /// Without a response of the handler: the client cancelled the request or disconnected, its session ended, or the server
    /// stopped waiting for it.
    Cancelled,
}

impl Outcome {
    /// Returns the outcome that a response means, for middleware.
    #[must_use]
    pub fn of(served: &Result<Response, ErrorObject>) -> Self {
        match served {
            Ok(Response::InputRequired(_)) => Self::InputRequired,
            Ok(Response::ToolCall(result)) if result.is_error == Some(true) => Self::Failed,
            Ok(_) => Self::Completed,
            Err(_) => Self::Failed,
        }
    }

    /// Returns the name of the outcome in snake case, as for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::InputRequired => "input_required",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The outcome of a request, which is set once, and for which tasks and callbacks can wait.
#[derive(Default)]
pub(crate) struct EndSignal {
    /// [`OPEN`], or an outcome. Each request sets it, which costs less than with a `OnceLock`.
    outcome: AtomicU8,
    /// Absent as long as nothing waits, as for most requests.
    waiting: Mutex<Option<Box<Waiting>>>,
}

/// The request has not ended. The default of [`EndSignal`].
const OPEN: u8 = 0;
const COMPLETED: u8 = 1;
const INPUT_REQUIRED: u8 = 2;
const FAILED: u8 = 3;
const CANCELLED: u8 = 4;

#[derive(Default)]
struct Waiting {
    wakers: Vec<Waker>,
    callbacks: Vec<Box<dyn FnOnce(Outcome) + Send>>,
}

impl EndSignal {
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.outcome.load(Ordering::Acquire) {
            OPEN => None,
            COMPLETED => Some(Outcome::Completed),
            INPUT_REQUIRED => Some(Outcome::InputRequired),
            FAILED => Some(Outcome::Failed),
            _ => Some(Outcome::Cancelled),
        }
    }

    /// Sets the outcome, unless the request has ended before.
    pub(crate) fn set(&self, outcome: Outcome) {
        let number = match outcome {
            Outcome::Completed => COMPLETED,
            Outcome::InputRequired => INPUT_REQUIRED,
            Outcome::Failed => FAILED,
            Outcome::Cancelled => CANCELLED,
        };
        if self.outcome.compare_exchange(OPEN, number, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        // Taken, as both run code of the application, which must not happen with the lock.
        let Some(waiting) = self.lock().take() else { return };
        let Waiting { wakers, callbacks } = *waiting;
        wakers.into_iter().for_each(Waker::wake);
        for callback in callbacks {
            call(callback, outcome);
        }
    }

    /// Calls a function with the outcome: at the end, or at once if the request has ended.
    pub(crate) fn on_end(&self, callback: Box<dyn FnOnce(Outcome) + Send>) {
        let mut waiting = self.lock();
        match self.outcome() {
            // Callbacks are taken after the outcome was set, so this one cannot be missed.
            None => waiting.get_or_insert_default().callbacks.push(callback),
            Some(outcome) => {
                drop(waiting);
                call(callback, outcome);
            }
        }
    }

    /// Is ready when the request has ended.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        if self.outcome().is_some() {
            return Poll::Ready(());
        }
        // Cloned without the lock, and dropped without it if it is there already.
        let waker = cx.waker().clone();
        let mut waiting = self.lock();
        let wakers = &mut waiting.get_or_insert_default().wakers;
        if !wakers.iter().any(|other| other.will_wake(&waker)) {
            wakers.push(waker);
        }
        drop(waiting);
        // It may have been set before the waker was registered.
        if self.outcome().is_some() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a function of the application; a panic must not keep the others from being called.
fn call(callback: Box<dyn FnOnce(Outcome) + Send>, outcome: Outcome) {
    if catch_unwind(AssertUnwindSafe(|| callback(outcome))).is_err() {
        tracing::error!(target: "mcp", "a callback at the end of a request panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn tasks_that_wait_are_woken() {
        let end = Arc::new(EndSignal::default());
        let cx = Context::from_waker(Waker::noop());
        assert!(end.poll(&cx).is_pending());
        end.set(Outcome::Cancelled);
        assert!(end.poll(&cx).is_ready());
    }

    /// Each callback is called once, with the first outcome, whenever it was added and whatever the others do.
    #[test]
    fn callbacks_are_called_once() {
        let (end, outcomes) = (EndSignal::default(), Arc::new(Mutex::new(Vec::new())));
        let note = |outcomes: &Arc<Mutex<Vec<Outcome>>>| {
            let outcomes = Arc::clone(outcomes);
            Box::new(move |outcome| outcomes.lock().unwrap().push(outcome))
        };
        end.on_end(note(&outcomes));
        end.on_end(Box::new(|_| panic!("this is what the test wants")));
        end.on_end(note(&outcomes));
        end.set(Outcome::Failed);
        end.set(Outcome::Completed);
        end.on_end(note(&outcomes));
        assert_eq!(*outcomes.lock().unwrap(), [Outcome::Failed; 3]);
    }
}
