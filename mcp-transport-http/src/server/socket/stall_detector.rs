//! Ends connections and HTTP/2 streams whose client does not read.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::sync::Notify;
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

/// Spawns a task for each stream of an HTTP/2 connection, and resets streams whose client does not read.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    pub(crate) timeout: Duration,
    /// Signals that a response is stalled after its stream has ended, so that only its connection can be closed.
    pub(crate) stuck: Arc<Notify>,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let Self { timeout, stuck } = self.clone();
        tokio::spawn(async move {
            let unsent = Arc::new(UnsentFrames::of_stream());
            let mut stall = StallDetector::new(Arc::clone(&unsent), timeout);
            let is_done = {
                let mut stream = pin!(stream);
                let run = |cx: &mut Context<'_>| {
                    if unsent.count_during(|| stream.as_mut().poll(cx)).is_ready() {
                        return Poll::Ready(true);
                    }
                    stall.poll(cx).map(|()| false)
                };
                // Dropping the future drops its response, which resets the stream.
                poll_fn(run).await
            };
            if !is_done {
                tracing::debug!(target: "mcp", "stream reset: the client does not read");
                return;
            }
            let is_sent = poll_fn(|cx| match unsent.poll_empty(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => stall.poll(cx).map(|()| false),
            });
            if !is_sent.await {
                stuck.notify_one();
            }
        });
    }
}
