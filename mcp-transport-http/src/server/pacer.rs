//! What a streamed response has to do while there is nothing to send.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_kernel::Time;
use tokio::time::{Sleep, sleep, sleep_until};

use super::shutdown::{Stage, StageWatch, WorkGuard};
use crate::clock::now;

/// The timers of a response: shutdown, expiry, the deadlines of its connection, and keep-alive.
pub(crate) struct Pacer {
    pub(crate) work_guard: WorkGuard,
    keep_alive_interval: Duration,
    /// The stage of the shutdown that was reported last.
    stage: Stage,
    expiry: Option<Pin<Box<Sleep>>>,
    deadline: Option<(Time, Pin<Box<Sleep>>)>,
    /// Created when the response has to wait, which most do not.
    waiting: Option<Waiting>,
}

struct Waiting {
    stage_watch: StageWatch,
    silence: Pin<Box<Sleep>>,
}

/// What a response has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The service shuts down: streams end, and requests may finish. Reported once.
    Drain,
    /// The drain timeout has expired: requests in flight are aborted. Reported once.
    Abort,
    /// The time at which the response has to end has come. Reported once.
    Expire,
    /// The deadline of the connection has passed.
    Timeout,
    /// Nothing was sent for a keep-alive interval.
    KeepAlive,
}

impl Pacer {
    pub(crate) fn new(work_guard: WorkGuard, keep_alive_interval: Duration) -> Self {
        let stage = Stage::Serving;
        Self { work_guard, keep_alive_interval, stage, expiry: None, deadline: None, waiting: None }
    }

    /// Sets when the response has to end.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    /// Restarts the keep-alive interval, as something was sent.
    pub(crate) fn sent(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.silence.as_mut().reset(after(self.keep_alive_interval));
        }
    }

    /// Waits for the next thing to do. `deadline` is the current deadline of the connection.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, deadline: Option<Time>) -> Poll<Pace> {
        let stage = self.poll_stage(cx);
        if stage > self.stage {
            self.stage = stage;
            return Poll::Ready(if stage == Stage::Draining { Pace::Drain } else { Pace::Abort });
        }
        if self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready()) {
            self.expiry = None;
            return Poll::Ready(Pace::Expire);
        }
        if self.poll_deadline(cx, deadline).is_ready() {
            return Poll::Ready(Pace::Timeout);
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.silence.as_mut().poll(cx));
        }
        self.sent();
        Poll::Ready(Pace::KeepAlive)
    }

    /// Returns the stage of the shutdown, and wakes the task when it changes.
    pub(crate) fn poll_stage(&mut self, cx: &mut Context<'_>) -> Stage {
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            stage_watch: self.work_guard.watch(),
            silence: Box::pin(sleep(self.keep_alive_interval)),
        });
        waiting.stage_watch.poll(cx, &self.work_guard);
        self.work_guard.stage()
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>, at: Option<Time>) -> Poll<()> {
        let Some(at) = at else {
            self.deadline = None;
            return Poll::Pending;
        };
        let armed = self.deadline.take().filter(|(armed, _)| *armed == at);
        let (_, timer) = self.deadline.insert(armed.unwrap_or_else(|| (at, Box::pin(sleep(at.duration_since(now()))))));
        timer.as_mut().poll(cx)
    }
}

/// Returns the time `time` from now, capped at a year if it overflows.
pub(crate) fn after(time: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}
