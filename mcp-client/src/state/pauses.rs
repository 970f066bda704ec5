//! Pauses, in which the transport waits for something else than the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_kernel::{CallId, Time};

use super::timers::Sleep;
use super::waiters::{Waiter, Waiters};
use super::{Core, Phase, Shared};

/// The pauses of a client, and how long they lasted.
#[derive(Default)]
pub(crate) struct Pauses {
    /// How many there are.
    open: usize,
    /// Since when there are any.
    since: Time,
    /// How long there were any before.
    total: Duration,
    /// The timeouts that continue when there are none.
    pub(super) timeouts: Waiters,
}

impl Pauses {
    /// Returns the time without the pauses so far.
    pub(super) fn unpaused(&self, now: Time) -> Time {
        now - self.elapsed(now)
    }

    /// Returns how long there were any pauses.
    fn elapsed(&self, now: Time) -> Duration {
        if self.open > 0 { self.total + now.duration_since(self.since) } else { self.total }
    }
}

impl Core {
    /// Stops the timeouts of a call, or of all calls.
    pub(crate) fn pause(&mut self, now: Time, call: Option<CallId>) {
        if self.pauses.open == 0 {
            self.pauses.since = now;
        }
        self.pauses.open += 1;
        self.kernel.pause_timeouts(now, call);
    }

    /// Continues the timeouts that [`pause`](Self::pause) has stopped.
    pub(crate) fn resume(&mut self, now: Time, call: Option<CallId>) {
        self.kernel.resume_timeouts(now, call);
        if self.pauses.open == 1 {
            self.pauses.total = self.pauses.elapsed(now);
            let timeouts = self.pauses.timeouts.all();
            self.wake_each(timeouts);
        }
        self.pauses.open = self.pauses.open.saturating_sub(1);
        // There are deadlines again.
        self.wake_transport();
    }
}

/// Completes after a duration in which there is no pause, or when the client is closed.
///
/// It limits how long a call waits to be sent, which ends by itself if only the calls before it have timeouts; so the pauses
/// of other calls may count.
pub(crate) struct Timeout {
    shared: Arc<Shared>,
    /// When it completes if there is no pause from the start of the client.
    at: Time,
    sleep: Option<Sleep>,
    waiter: Waiter,
}

impl Timeout {
    pub(crate) fn new(shared: &Arc<Shared>, duration: Duration) -> Self {
        Self {
            shared: Arc::clone(shared),
            at: shared.with(|core, now| core.pauses.unpaused(now) + duration),
            sleep: None,
            waiter: Waiter::new(shared, |core| &mut core.pauses.timeouts),
        }
    }
}

impl Future for Timeout {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Self { shared, at, waiter, .. } = &mut *self;
            let deadline = shared.with(|core, now| {
                let deadline = *at + core.pauses.total;
                if let Phase::Closing | Phase::Closed(_) = core.phase {
                    return Poll::Ready(None);
                }
                if core.pauses.open > 0 {
                    waiter.wait(core, cx.waker());
                    return Poll::Pending;
                }
                Poll::Ready(Some(deadline).filter(|deadline| now < *deadline))
            });
            let Poll::Ready(deadline) = deadline else {
                self.sleep = None;
                return Poll::Pending;
            };
            let Some(deadline) = deadline else { return Poll::Ready(()) };
            // After a pause there is a new deadline.
            let sleep = match self.sleep.take() {
                Some(sleep) if sleep.deadline() == deadline => sleep,
                Some(_) | None => Sleep::until(&self.shared, deadline),
            };
            if Pin::new(self.sleep.insert(sleep)).poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
