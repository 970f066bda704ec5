//! Graceful shutdown of a service: counts its requests, and tells them when to finish or abort.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_server::BoxFuture;
use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// New requests are refused; those in flight may finish.
    Draining,
    /// Requests that are still in flight are aborted.
    Aborting,
}

/// The shutdown state that all requests of a service share.
#[derive(Default)]
pub(crate) struct Shutdown {
    stage: AtomicU8,
    changed: Arc<Notify>,
    in_flight: AtomicUsize,
    all_done: Notify,
}

/// How the requests that were in flight ended when a service was drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// The number of requests that finished in time, including streams that were closed with their result.
    pub finished: usize,
    /// The number of requests that were aborted because the drain timeout expired.
    pub aborted: usize,
}

impl Shutdown {
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::SeqCst) {
            0 => Stage::Serving,
            1 => Stage::Draining,
            _ => Stage::Aborting,
        }
    }

    fn enter(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Waits up to `timeout` for requests in flight, then aborts the rest.
    pub(crate) async fn drain(&self, timeout: Duration) -> Drained {
        self.enter(Stage::Draining);
        let begin = self.in_flight.load(Ordering::SeqCst);
        let cut = match tokio::time::timeout(timeout, self.finished()).await {
            Ok(()) => 0,
            Err(_) => self.in_flight.load(Ordering::SeqCst),
        };
        self.enter(Stage::Aborting);
        Drained { finished: begin.saturating_sub(cut), aborted: cut }
    }

    async fn finished(&self) {
        loop {
            let done = self.all_done.notified();
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return;
            }
            done.await;
        }
    }
}

/// Counts as work that the shutdown waits for, until it is dropped.
pub(crate) struct WorkGuard(Arc<Shutdown>);

impl WorkGuard {
    pub(crate) fn new(shutdown: &Arc<Shutdown>) -> Self {
        shutdown.in_flight.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shutdown))
    }

    /// Counts further work that was started by this.
    pub(crate) fn additional(&self) -> Self {
        Self::new(&self.0)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.0.stage()
    }

    /// Subscribes to changes of the stage.
    pub(crate) fn watch(&self) -> StageWatch {
        StageWatch { changed: Arc::clone(&self.0.changed).notified_owned() }
    }

    /// Waits for a future of the application or of a store, but not longer than a drain does. Returns `None`, and drops the
    /// future, when the drain timeout has expired.
    pub(crate) async fn or_abort<T>(&self, pending: impl Future<Output = T>) -> Option<T> {
        let (mut pending, mut stage_watch) = (pin!(pending), None);
        poll_fn(|cx| self.poll_or_abort(cx, pending.as_mut(), &mut stage_watch)).await
    }

    fn poll_or_abort<T>(
        &self,
        cx: &mut Context<'_>,
        pending: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        stage_watch: &mut Option<Pin<Box<StageWatch>>>,
    ) -> Poll<Option<T>> {
        if let Poll::Ready(outcome) = pending.poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        stage_watch.get_or_insert_with(|| Box::pin(self.watch())).as_mut().poll(cx, self);
        if self.stage() == Stage::Aborting { Poll::Ready(None) } else { Poll::Pending }
    }
}

/// A boxed future that does not outlast a drain; otherwise the same as [`WorkGuard::or_abort`].
pub(crate) struct Abortable<T> {
    pending: BoxFuture<T>,
    /// Created when the future has to wait.
    stage_watch: Option<Pin<Box<StageWatch>>>,
}

impl<T> Abortable<T> {
    pub(crate) fn new(pending: BoxFuture<T>) -> Self {
        Self { pending, stage_watch: None }
    }

    /// Returns `None` when the drain timeout has expired. The future must be dropped then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, work_guard: &WorkGuard) -> Poll<Option<T>> {
        work_guard.poll_or_abort(cx, self.pending.as_mut(), &mut self.stage_watch)
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        // A drain that begins after the stage was read finds nothing in flight, and does not wait.
        if self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 && self.stage() != Stage::Serving {
            self.0.all_done.notify_waiters();
        }
    }
}

pin_project! {
    /// Wakes the task that polls it when the [stage](WorkGuard::stage) changes.
    pub(crate) struct StageWatch {
        #[pin]
        changed: OwnedNotified,
    }
}

impl StageWatch {
    /// Registers the task. The stage has to be read after that.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>, work_guard: &WorkGuard) {
        let mut this = self.project();
        while this.changed.as_mut().poll(cx).is_ready() {
            this.changed.set(work_guard.watch().changed);
        }
    }
}
