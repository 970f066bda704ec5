//! One request, from what it asks to the last thing that is said about it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_kernel::{RequestKey, Route, Transmit};
use mcp_server::Connection;
use mcp_types::ErrorObject;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, sleep_until};

use super::admission::Permit;
use super::body::write_event;
use super::refusal::Refusal;
use super::shutdown::{Stage, StageWatch, WorkGuard};
use crate::clock::now;

/// A request that is worked on. It runs in whatever polls it, and costs no task; dropping it cancels it.
pub(crate) struct Exchange {
    connection: Connection,
    key: RequestKey,
    keep_alive_interval: Duration,
    work_guard: WorkGuard,
    /// When whoever asked may not hear any more.
    expiry: Option<Pin<Box<Sleep>>>,
    /// Most requests are answered without waiting, and never have this.
    waiting: Option<Waiting>,
    is_draining: bool,
    is_aborted: bool,
    is_over: bool,
    permit: Option<Permit>,
}

struct Waiting {
    end: StageWatch,
    silence: Pin<Box<Sleep>>,
}

/// What polling an event stream resulted in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamPoll {
    /// Events were appended to the buffer.
    Events,
    /// Nothing was sent for a keep-alive interval.
    Idle,
    /// The stream has ended.
    End,
}

/// How the response to a request begins.
pub(crate) enum ResponseStart {
    /// As one JSON message.
    Message(Transmit),
    /// As an event stream, whose first events are in the buffer.
    Stream(StreamPoll),
    /// As an error, because the session state that the request changed could not be saved.
    Refused(Refusal),
}

impl Exchange {
    pub(crate) fn new(
        connection: Connection,
        key: RequestKey,
        permit: Permit,
        work_guard: WorkGuard,
        keep_alive_interval: Duration,
    ) -> Self {
        Self {
            connection,
            key,
            keep_alive_interval,
            work_guard,
            expiry: None,
            waiting: None,
            is_draining: false,
            is_aborted: false,
            is_over: false,
            permit: Some(permit),
        }
    }

    /// Ends what listens at a time.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    /// Whether everything has been said.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the service had to end before the request did.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Takes the room of the request, to be held until its response is sent.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        self.tear_down(|permit| permit.as_ref().map(Permit::another));
        self.permit.take()
    }

    /// Does what handlers left to be done at the end, which counts as work until then. That is done once: afterwards there
    /// is no permit.
    fn tear_down(&mut self, hold: impl FnOnce(&mut Option<Permit>) -> Option<Permit>) {
        if self.permit.is_none() {
            return;
        }
        let Some(teardown) = self.connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT)) else { return };
        let held = (self.work_guard.another(), hold(&mut self.permit));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                teardown.await;
                drop(held);
            });
        }
    }

    /// Waits for the answer, or for the first thing that is said before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<ResponseStart> {
        loop {
            self.run(cx);
            match self.connection.poll_transmit() {
                Some(answer) if matches!(answer.route, Route::Reply(_)) => {
                    self.is_over = true;
                    return Poll::Ready(ResponseStart::Message(answer));
                }
                Some(transmit) => {
                    self.take(&transmit, events);
                    return self.poll(cx, events).map(ResponseStart::Stream);
                }
                None => {}
            }
            // An answer that is there after this is still an answer, and no event.
            if let Some(news) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(ResponseStart::Stream(news));
            }
        }
    }

    /// Appends what there is to say.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        loop {
            self.run(cx);
            while !self.is_over
                && events.len() < EVENT_BATCH_BYTES
                && let Some(transmit) = self.connection.poll_transmit()
            {
                self.take(&transmit, events);
            }
            if !events.is_empty() {
                if let Some(waiting) = &mut self.waiting {
                    waiting.silence.as_mut().reset(after(self.keep_alive_interval));
                }
                return Poll::Ready(StreamPoll::Events);
            }
            if let Some(news) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(news);
            }
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) {
        if !self.is_over {
            let _ = self.connection.poll(cx, now());
        }
    }

    fn take(&mut self, transmit: &Transmit, events: &mut Vec<u8>) {
        write_event(events, &transmit.message);
        // H-18
        self.is_over = matches!(transmit.route, Route::Reply(_));
    }

    /// Waits for something other than a message; without news there may be messages now.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamPoll>> {
        if self.is_over || !self.connection.is_open(self.key) {
            self.is_over = true;
            return Poll::Ready(Some(StreamPoll::End));
        }
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            end: self.work_guard.watch(),
            silence: Box::pin(sleep(self.keep_alive_interval)),
        });
        waiting.end.poll(cx, &self.work_guard);
        let stage = self.work_guard.stage();
        if stage == Stage::Aborting && !self.is_aborted {
            self.is_aborted = true;
            self.connection
                .abort_requests(&ErrorObject::internal_error("the server had to end before the request was done"));
            // What has no handler to give up, such as a stream for changes, is over by now or ends here.
            self.connection.drain();
            return Poll::Ready(None);
        }
        let is_expired = self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready());
        if !self.is_draining && (stage == Stage::Draining || is_expired) {
            self.is_draining = true;
            self.expiry = None;
            // Streams end with their result; handlers may finish.
            self.connection.drain();
            return Poll::Ready(None);
        }
        ready!(waiting.silence.as_mut().poll(cx));
        waiting.silence.as_mut().reset(after(self.keep_alive_interval));
        Poll::Ready(Some(StreamPoll::Idle))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.tear_down(Option::take);
    }
}

/// How long each thing may take that is left to be done at the end.
pub(crate) const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Some time from now, however long that is.
pub(crate) fn after(time: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    // Nobody waits for longer than that.
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}

/// How many bytes of events are sent together, unless one has more.
pub(crate) const EVENT_BATCH_BYTES: usize = 64 << 10;
