//! One request without a session, from its message to the end of its response.

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

/// A request in flight. Polling it runs its handler; dropping it cancels the request.
pub(crate) struct Exchange {
    connection: Connection,
    key: RequestKey,
    keep_alive_interval: Duration,
    work_guard: WorkGuard,
    /// When a listen stream has to end.
    expiry: Option<Pin<Box<Sleep>>>,
    /// Created when the request has to wait, which most do not.
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

    /// Ends a listen stream at a time.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    /// Whether the last message was sent.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the request was aborted by a shutdown.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Takes the permit of the request, to be held until its response is sent.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        self.tear_down(|permit| permit.as_ref().map(Permit::another));
        self.permit.take()
    }

    /// Spawns the teardown that handlers registered, which counts as in flight. This happens once: afterwards there is no
    /// permit.
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

    /// Waits for the response, or for the first message before it.
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
            // A response that is ready after this is still sent as JSON, not as an event.
            if let Some(news) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(ResponseStart::Stream(news));
            }
        }
    }

    /// Appends the events that are ready.
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

    /// Waits for the shutdown, the expiry or the keep-alive timer. After `None` there may be new messages.
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
                .abort_requests(&ErrorObject::internal_error("the server was shut down before the request finished"));
            // Listen streams have no handler to abort; draining ends them.
            self.connection.drain();
            return Poll::Ready(None);
        }
        let is_expired = self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready());
        if !self.is_draining && (stage == Stage::Draining || is_expired) {
            self.is_draining = true;
            self.expiry = None;
            // Listen streams end with their result; handlers may finish.
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

/// How long each teardown of a handler may take.
pub(crate) const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the time `time` from now, capped at a year if it overflows.
pub(crate) fn after(time: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}

/// The maximum size of events that are sent together, unless one event is larger.
pub(crate) const EVENT_BATCH_BYTES: usize = 64 << 10;
