//! Handlers that are pending.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use mcp_kernel::RequestKey;
use mcp_kernel::server::{Responder, Route};
use mcp_types::ErrorObject;

#[cfg(feature = "mrtr")]
use crate::asking::round_slot::{PollScope, RoundWaiter};
#[cfg(feature = "mrtr")]
use crate::asking::rounds;
use crate::connection::catch_panic::CatchPanic;
use crate::connection::shared::RouteWaker;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::response::Response;
use crate::serve::telemetry;

/// The pending handlers of one connection, by request. Only those that were woken are polled.
#[derive(Default)]
pub(crate) struct RunningHandlers {
    open: BTreeMap<RequestKey, RunningHandler>,
    /// Created with the first pending handler, as most handlers are ready at once.
    woken: Option<Arc<Woken>>,
}

/// A pending handler, and the responder for its request.
pub(crate) struct RunningHandler {
    pub(crate) handler: CatchPanic,
    pub(crate) responder: Responder,
    pub(crate) ctx: RequestContext,
}

impl RunningHandler {
    /// Polls the handler. One that has requested input is ready with its input requests, and must not be polled again.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response, ErrorObject>> {
        #[cfg(feature = "mrtr")]
        let _scope = PollScope::enter(self.ctx.round());
        let served = Pin::new(&mut self.handler).poll(cx);
        #[cfg(feature = "mrtr")]
        if served.is_pending() && rounds::poll_ending(&self.ctx, &mut RoundWaiter::outermost(), cx).is_ready() {
            return Poll::Ready(rounds::finish(&self.ctx));
        }
        served
    }

    /// Drops the handler.
    fn cancel(self) {
        let span = self.handler.span();
        self.ctx.end(Outcome::Cancelled);
        drop(self.handler);
        telemetry::cancelled(&span, &self.ctx);
    }
}

/// The handlers that were woken, and the task to wake for them.
#[derive(Default)]
struct Woken {
    ready: Mutex<Vec<Arc<HandlerWaker>>>,
    driver: DriverWaker,
    route_waker: Option<Arc<dyn RouteWaker>>,
}

struct HandlerWaker {
    key: RequestKey,
    is_ready: AtomicBool,
    /// Weak, as it holds the wakers of woken handlers, and a connection may end before it polls them.
    woken: Weak<Woken>,
}

impl Wake for HandlerWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::AcqRel) {
            let Some(woken) = self.woken.upgrade() else { return };
            let key = self.key;
            woken.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self);
            match &woken.route_waker {
                Some(waker) => waker.wake_route(Some(Route::Related(key))),
                None => woken.driver.wake(),
            }
        }
    }
}

impl RunningHandlers {
    /// Adds a handler, which is polled next time.
    pub(crate) fn push(&mut self, task: RunningHandler, route_waker: Option<&Arc<dyn RouteWaker>>) {
        let key = task.responder.key();
        self.open.insert(key, task);
        let woken = self
            .woken
            .get_or_insert_with(|| Arc::new(Woken { route_waker: route_waker.map(Arc::clone), ..Woken::default() }));
        let woken = Arc::downgrade(woken);
        Arc::new(HandlerWaker { key, is_ready: AtomicBool::new(false), woken }).wake();
    }

    /// Polls the handlers that were woken, each once; returns those that have finished.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Vec<(RunningHandler, Result<Response, ErrorObject>)> {
        let mut done = Vec::new();
        let Some(woken) = &self.woken else { return done };
        woken.driver.register(cx.waker());
        let ready = std::mem::take(&mut *woken.ready.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in ready {
            // Wakes from here on are for the next poll.
            waker.is_ready.store(false, Ordering::Release);
            let key = waker.key;
            let Some(task) = self.open.get_mut(&key) else { continue };
            let waker = Waker::from(waker);
            if let Poll::Ready(outcome) = task.poll(&mut Context::from_waker(&waker))
                && let Some(task) = self.open.remove(&key)
            {
                done.push((task, outcome));
            }
        }
        done
    }

    /// Drops a handler and sets its cancellation; returns whether there was one.
    pub(crate) fn cancel(&mut self, key: RequestKey) -> bool {
        let task = self.open.remove(&key);
        let is_there = task.is_some();
        task.into_iter().for_each(RunningHandler::cancel);
        is_there
    }

    pub(crate) fn cancel_all(&mut self) {
        self.take_all().for_each(RunningHandler::cancel);
    }

    /// Removes all handlers without cancelling them.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = RunningHandler> + use<> {
        std::mem::take(&mut self.open).into_values()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

impl Drop for RunningHandlers {
    fn drop(&mut self) {
        if !self.open.is_empty() {
            self.cancel_all();
        }
    }
}

/// The waker of the task that drives a connection.
#[derive(Default)]
pub(crate) struct DriverWaker(Mutex<Option<Waker>>);

impl DriverWaker {
    pub(crate) fn register(&self, waker: &Waker) {
        if self.lock().as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            return;
        }
        // Wakers are cloned and dropped without the lock.
        let mut driver = Some(waker.clone());
        std::mem::swap(&mut *self.lock(), &mut driver);
    }

    pub(crate) fn wake(&self) {
        let driver = self.lock().clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
