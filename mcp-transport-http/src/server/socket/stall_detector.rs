//! Detects clients that do not read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::server::pacer::after;
use crate::server::unsent::UnsentFrames;

/// Detects that no frame was sent for a while although frames are queued.
pub(crate) struct StallDetector {
    unsent: Arc<UnsentFrames>,
    timeout: Duration,
    /// The timer, and the number of frames that had been sent when it was set.
    timer: Option<(usize, Pin<Box<Sleep>>)>,
}

impl StallDetector {
    pub(crate) fn new(unsent: Arc<UnsentFrames>, timeout: Duration) -> Self {
        Self { unsent, timeout, timer: None }
    }

    /// Completes if there was no progress for the whole timeout. Most responses are sent at once and need no timer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.unsent.is_empty() {
            self.timer = None;
            return Poll::Pending;
        }
        let sent = self.unsent.sent();
        let (before, timer) = self.timer.get_or_insert_with(|| (sent, Box::pin(sleep(self.timeout))));
        loop {
            ready!(timer.as_mut().poll(cx));
            if *before == sent {
                return Poll::Ready(());
            }
            *before = sent;
            timer.as_mut().reset(after(self.timeout));
        }
    }
}
