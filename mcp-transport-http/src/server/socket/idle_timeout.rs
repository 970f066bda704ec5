//! Ends HTTP/1 connections whose client sends no request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::pacer::after;
use crate::server::unsent::UnsentFrames;

/// Detects that no request was received for a while, be it that the client is silent or that it sends the headers too
/// slowly. The time begins when the connection is accepted, and with the end of each response.
///
/// The timer is not reset for each request: when it expires, it is set to the time that is left.
pub(crate) struct IdleTimeout {
    connection: Arc<UnsentFrames>,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    is_polled: bool,
    /// After how many requests the connection became idle, unless one is in flight.
    idle_after: Option<usize>,
    /// When that changed.
    since: Instant,
}

impl IdleTimeout {
    /// Creates the timeout of a connection that was accepted at `since`.
    pub(crate) fn new(connection: Arc<UnsentFrames>, since: Instant, timeout: Duration) -> Self {
        let timer = Box::pin(sleep_until(since + timeout));
        Self { connection, timeout, timer, is_polled: false, idle_after: Some(0), since }
    }

    /// Completes if the client has sent no request in time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let idle_after = self.connection.idle_after();
        if idle_after != self.idle_after {
            self.idle_after = idle_after;
            self.since = Instant::now();
        }
        // The timer may expire meanwhile, which is noticed when the connection is idle again.
        if idle_after.is_none() {
            return Poll::Pending;
        }
        // The waker of the task stays the same, so it is enough to register it once.
        if self.is_polled && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let left = self.timeout.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(after(left));
        }
        // Without a budget the timer does not register the task, but wakes it to be polled again.
        self.is_polled = has_budget_remaining();
        Poll::Pending
    }
}
