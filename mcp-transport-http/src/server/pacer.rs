//! What a streamed response has to do while there is nothing to send.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use mcp_kernel::Time;
use pin_project_lite::pin_project;
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep};

use super::expiry::{Expiry, StreamEnd};
use super::shutdown::{Stage, StageWatch, WorkGuard};
use crate::clock::now;

/// The timers of a response: shutdown, expiry, the deadlines of its connection, and keep-alive.
pub(crate) struct Pacer {
    pub(crate) work_guard: WorkGuard,
    keep_alive_interval: Duration,
    /// The stage of the shutdown that was reported last.
    stage: Stage,
    expiry: Option<Pin<Box<Expiry>>>,
    /// Whether the response ends because its token has expired.
    is_token_expired: bool,
    deadline: Option<(Time, Pin<Box<Sleep>>)>,
    /// Created when the response has to wait, which most do not.
    waiting: Option<Pin<Box<Waiting>>>,
}

pin_project! {
    struct Waiting {
        // The task that all timers wake, once all of them were polled.
        task: Option<Waker>,
        #[pin]
        stage_watch: StageWatch,
        // Not reset for each event: when it expires, it is set to the time that is left.
        #[pin]
        silence: Sleep,
        silent_since: Instant,
    }
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
        let (expiry, is_token_expired, deadline, waiting) = (None, false, None, None);
        Self { work_guard, keep_alive_interval, stage, expiry, is_token_expired, deadline, waiting }
    }

    /// Sets when the response has to end.
    pub(crate) fn expire(&mut self, end: StreamEnd) {
        self.expiry = Expiry::new(end).map(Box::pin);
        self.forget_task();
    }

    /// Whether the response ends because its token has expired. Reported once.
    pub(crate) fn take_token_expiry(&mut self) -> bool {
        std::mem::take(&mut self.is_token_expired)
    }

    /// Restarts the keep-alive interval, as something was sent.
    pub(crate) fn sent(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            *waiting.as_mut().project().silent_since = Instant::now();
        }
    }

    /// Returns whether all timers wake this task. If not, the next poll registers it.
    pub(crate) fn wakes(&mut self, task: &Waker) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let registered = waiting.as_mut().project().task;
        registered.take_if(|other| !other.will_wake(task));
        registered.is_some()
    }

    /// Waits for the next thing to do. `deadline` is the current deadline of the connection.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, deadline: Option<Time>) -> Poll<Pace> {
        // A stream is polled again after each event, and then has nothing new to wait for.
        if self.wakes(cx.waker()) && !self.has_news(deadline) {
            return Poll::Pending;
        }
        let stage = self.poll_stage(cx);
        if stage > self.stage {
            self.stage = stage;
            return Poll::Ready(if stage == Stage::Draining { Pace::Drain } else { Pace::Abort });
        }
        if let Some(expiry) = &mut self.expiry
            && expiry.as_mut().poll(cx).is_ready()
        {
            self.is_token_expired = expiry.is_by_token();
            if self.is_token_expired {
                tracing::debug!(target: "mcp", "stream ended: its access token has expired");
            }
            self.expiry = None;
            return Poll::Ready(Pace::Expire);
        }
        if self.poll_deadline(cx, deadline).is_ready() {
            return Poll::Ready(Pace::Timeout);
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll_silence(cx, self.keep_alive_interval));
        }
        Poll::Ready(Pace::KeepAlive)
    }

    /// Whether a timer has expired, the stage has changed, or the deadline is another one.
    fn has_news(&self, deadline: Option<Time>) -> bool {
        let is_over = |timer: &Pin<Box<Sleep>>| timer.is_elapsed();
        self.work_guard.stage() != self.stage
            || self.deadline.as_ref().map(|(at, _)| *at) != deadline
            || self.deadline.as_ref().is_some_and(|(_, timer)| is_over(timer))
            || self.expiry.as_ref().is_some_and(|expiry| expiry.is_elapsed())
            || self.waiting.as_ref().is_none_or(|waiting| waiting.silence.is_elapsed())
    }

    /// Returns the stage of the shutdown, and wakes the task when it changes.
    pub(crate) fn poll_stage(&mut self, cx: &mut Context<'_>) -> Stage {
        self.forget_task();
        let waiting = self.waiting.get_or_insert_with(|| {
            Box::pin(Waiting {
                task: None,
                stage_watch: self.work_guard.watch(),
                silence: sleep(self.keep_alive_interval),
                silent_since: Instant::now(),
            })
        });
        waiting.as_mut().project().stage_watch.poll(cx, &self.work_guard);
        self.work_guard.stage()
    }

    /// Makes the next poll register its task with all timers.
    fn forget_task(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            *waiting.as_mut().project().task = None;
        }
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

impl Waiting {
    /// Waits until nothing was sent for a keep-alive interval. The other timers were polled before.
    fn poll_silence(self: Pin<&mut Self>, cx: &mut Context<'_>, interval: Duration) -> Poll<()> {
        let mut this = self.project();
        while this.silence.as_mut().poll(cx).is_ready() {
            let silent = this.silent_since.elapsed();
            let is_due = silent >= interval;
            if is_due {
                *this.silent_since = Instant::now();
            }
            this.silence.as_mut().reset(after(if is_due { interval } else { interval - silent }));
            if is_due {
                return Poll::Ready(());
            }
        }
        // Timers that are polled without a budget do not register the task, but wake it to be polled again.
        if has_budget_remaining() {
            *this.task = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Returns the time `time` from now, capped at a year if it overflows.
pub(crate) fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::time::advance;

    use super::*;
    use crate::server::shutdown::Shutdown;

    const INTERVAL: Duration = Duration::from_secs(15);

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pacer() -> (Pacer, Arc<Shutdown>) {
        let shutdown = Arc::new(Shutdown::default());
        (Pacer::new(WorkGuard::new(&shutdown), INTERVAL), shutdown)
    }

    /// Events that are sent delay the keep-alive, and the response is woken no more often than that.
    #[tokio::test(start_paused = true)]
    async fn silence_begins_with_the_last_event() {
        let (mut pacer, _shutdown) = pacer();
        let begin = Instant::now();
        for _ in 0..3 {
            assert!(poll_fn(|cx| Poll::Ready(pacer.poll(cx, None))).await.is_pending());
            advance(Duration::from_secs(10)).await;
            pacer.sent();
        }
        for silent in [45, 60] {
            assert_eq!(poll_fn(|cx| pacer.poll(cx, None)).await, Pace::KeepAlive);
            assert_eq!(begin.elapsed().as_secs(), silent);
        }
    }

    /// A task that polls again wakes for everything, be it the same task or another one.
    #[tokio::test(start_paused = true)]
    async fn the_last_task_is_woken() {
        let (mut pacer, shutdown) = pacer();
        let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
        let wakers = wakes.clone().map(Waker::from);
        let poll =
            |pacer: &mut Pacer, task: usize, deadline| pacer.poll(&mut Context::from_waker(&wakers[task]), deadline);
        let woken = || wakes.clone().map(|wakes| wakes.0.swap(0, Ordering::Relaxed));
        assert!(poll(&mut pacer, 0, None).is_pending() && pacer.wakes(&wakers[0]));
        assert!(poll(&mut pacer, 0, None).is_pending() && poll(&mut pacer, 1, None).is_pending());
        advance(INTERVAL).await;
        assert_eq!(woken(), [0, 1]);
        assert_eq!(poll(&mut pacer, 1, None), Poll::Ready(Pace::KeepAlive));
        assert!(poll(&mut pacer, 1, None).is_pending() && pacer.wakes(&wakers[1]) && !pacer.wakes(&wakers[0]));
        // A deadline and an expiry that are set later.
        let deadline = Some(now() + Duration::from_secs(1));
        assert!(poll(&mut pacer, 0, deadline).is_pending() && poll(&mut pacer, 0, deadline).is_pending());
        pacer.expire(StreamEnd::At((Instant::now() + Duration::from_secs(2)).into()));
        assert!(poll(&mut pacer, 0, deadline).is_pending());
        advance(Duration::from_secs(1)).await;
        assert_eq!((woken(), poll(&mut pacer, 0, deadline)), ([1, 0], Poll::Ready(Pace::Timeout)));
        assert!(poll(&mut pacer, 0, None).is_pending());
        advance(Duration::from_secs(1)).await;
        assert_eq!((woken(), poll(&mut pacer, 0, None)), ([1, 0], Poll::Ready(Pace::Expire)));
        assert!(poll(&mut pacer, 0, None).is_pending() && poll(&mut pacer, 0, None).is_pending());
        let drained = tokio::spawn(async move { shutdown.drain(Duration::from_secs(1)).await });
        tokio::task::yield_now().await;
        assert_eq!((woken(), poll(&mut pacer, 0, None)), ([1, 0], Poll::Ready(Pace::Drain)));
        assert!(poll(&mut pacer, 0, None).is_pending() && poll(&mut pacer, 0, None).is_pending());
        assert_eq!(drained.await.expect("no panic").aborted, 1);
        assert_eq!((woken(), poll(&mut pacer, 0, None)), ([1, 0], Poll::Ready(Pace::Abort)));
    }
}
