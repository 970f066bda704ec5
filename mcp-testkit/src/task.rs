//! Polls futures without a runtime.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A waker that remembers whether it was woken, for tests that call poll functions themselves.
#[derive(Debug, Default)]
pub struct WakeFlag(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl WakeFlag {
    /// Returns a waker that sets the flag.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    /// Returns whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Clears the flag, and returns whether it was set.
    pub fn take(&self) -> bool {
        self.0.0.swap(false, Ordering::SeqCst)
    }

    /// Returns the number of wakers that exist.
    #[must_use]
    pub fn waker_count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// A future that is polled by a test, without a runtime, and only after it was woken: a lost wake-up shows as a task that
/// stays pending.
pub struct Task<T> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    output: Option<T>,
    woken: WakeFlag,
}

impl<T> Task<T> {
    /// Creates a task, which is not polled yet.
    #[must_use]
    pub fn new(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> Self {
        let woken = WakeFlag::default();
        woken.waker().wake();
        Self { future: Some(Box::pin(future.into_future())), output: None, woken }
    }

    /// Creates a task and polls it. Panics if the future is ready at once.
    #[must_use]
    #[track_caller]
    pub fn start(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> Self {
        let mut task = Self::new(future);
        task.assert_pending();
        task
    }

    /// Polls the future if it was woken, and returns its output once it is ready.
    #[track_caller]
    pub fn poll(&mut self) -> Option<T> {
        self.run();
        self.output.take()
    }

    /// Polls the future if it was woken, and keeps its output for later.
    #[track_caller]
    pub(crate) fn run(&mut self) {
        if self.output.is_none() && self.woken.take() {
            let waker = self.woken.waker();
            let future = self.future.as_mut().expect("the task is pending");
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.future = None;
                self.output = Some(output);
            }
        }
    }

    /// Returns the output. Panics if the task is pending.
    #[track_caller]
    pub fn finish(&mut self) -> T {
        self.poll().expect("the task is ready")
    }

    /// Panics if the task is ready.
    #[track_caller]
    pub fn assert_pending(&mut self) {
        assert!(self.poll().is_none(), "the task is ready");
    }

    /// Returns the number of wakers of this task that exist.
    #[must_use]
    pub fn waker_count(&self) -> usize {
        self.woken.waker_count()
    }

    /// Drops the future, which cancels its work.
    pub fn cancel(&mut self) {
        self.future = None;
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("is_pending", &self.future.is_some()).field("woken", &self.woken).finish()
    }
}

/// Returns the output of a future that is ready at once.
///
/// # Panics
///
/// Panics if the future is pending.
#[track_caller]
pub fn expect_ready<T>(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> T {
    Task::new(future).finish()
}
