//! The end of connections and streams whose client does not read.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use crate::server::exchange::after;
use crate::server::unsent::UnsentFrames;

/// Notices that nothing was sent for a while although there is something to send.
pub(crate) struct StallDetector {
    unsent: Arc<UnsentFrames>,
    timeout: Duration,
    /// How much had been sent when the timer was set.
    timer: Option<(usize, Pin<Box<Sleep>>)>,
}

impl StallDetector {
    pub(crate) fn new(unsent: Arc<UnsentFrames>, timeout: Duration) -> Self {
        Self { unsent, timeout, timer: None }
    }

    /// Polls something that sends, and counts what it takes to be sent.
    pub(crate) fn during<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.unsent.during(poll)
    }

    /// Ready if there was no progress for the whole time. Most responses are sent as soon as they are there, so most often
    /// there is no timer.
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

/// Runs the streams of one HTTP/2 connection, each in a task, and resets those whose client does not read.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    pub(crate) timeout: Duration,
    pub(crate) stuck: Arc<StuckStreams>,
}

/// Told if a response is stuck behind the end of its stream, which cannot be reset any more.
#[derive(Debug, Default)]
pub(crate) struct StuckStreams {
    /// Connections of HTTP/1 have no streams, and need not wait for this.
    has_streams: AtomicBool,
    told: Notify,
}

impl StuckStreams {
    pub(crate) fn has_streams(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    pub(crate) async fn wait(&self) {
        self.told.notified().await;
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let Self { timeout, stuck } = self.clone();
        stuck.has_streams.store(true, Ordering::Relaxed);
        tokio::spawn(async move {
            let unsent = Arc::new(UnsentFrames::of_stream());
            let mut stall = StallDetector::new(Arc::clone(&unsent), timeout);
            let is_done = {
                let mut stream = pin!(stream);
                let run = |cx: &mut Context<'_>| {
                    if stall.during(|| stream.as_mut().poll(cx)).is_ready() {
                        return Poll::Ready(true);
                    }
                    stall.poll(cx).map(|()| false)
                };
                // With the stream its response is dropped, which resets it.
                poll_fn(run).await
            };
            if !is_done {
                tracing::debug!(target: "mcp", "a stream was reset, because its client does not read");
                return;
            }
            let is_sent = poll_fn(|cx| match unsent.poll_empty(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => stall.poll(cx).map(|()| false),
            });
            if !is_sent.await {
                stuck.told.notify_one();
            }
        });
    }
}
