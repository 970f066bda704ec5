//! One request without a session, from its message to the end of its response.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use mcp_kernel::server::{Route, Transmit};
use mcp_kernel::{RequestKey, Time};
use mcp_server::{Connection, NextStep};
use mcp_types::ErrorObject;

use super::admission::Permit;
use super::pacer::{Pace, Pacer};
use super::refusal::Refusal;
use super::teardown::spawn_teardown;
use crate::clock::now;
use crate::event_stream::encode::{TOKEN_EXPIRED, write_event};

/// A request in flight. Polling it runs its handler; dropping it cancels the request.
pub(crate) struct Exchange {
    connection: Connection,
    key: RequestKey,
    pacer: Pacer,
    pub(crate) is_aborted: bool,
    pub(crate) is_over: bool,
    /// When the request was received, until it is polled.
    received: Option<Time>,
    permit: Option<Permit>,
    /// The head of the request.
    parts: Option<Arc<Parts>>,
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
    /// Creates the exchange of a request that the connection received just now.
    pub(crate) fn new(
        connection: Connection,
        (key, received): (RequestKey, Time),
        permit: Permit,
        pacer: Pacer,
        parts: Arc<Parts>,
    ) -> Self {
        let (received, permit, parts) = (Some(received), Some(permit), Some(parts));
        Self { connection, key, pacer, is_aborted: false, is_over: false, received, permit, parts }
    }

    /// Whether the request is a `subscriptions/listen`.
    pub(crate) fn is_listening(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::is_of_listen_stream)
    }

    /// Takes the head of a request that is over.
    pub(crate) fn take_parts(&mut self) -> Option<Arc<Parts>> {
        self.parts.take()
    }

    /// Takes the permit of the request, to be held until its response is sent.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        self.tear_down(|permit| permit.as_ref().map(Permit::additional));
        self.permit.take()
    }

    /// Spawns the teardown that handlers registered. This happens once: afterwards there is no permit.
    fn tear_down(&mut self, hold: impl FnOnce(&mut Option<Permit>) -> Option<Permit>) {
        if self.permit.is_some() {
            let (pacer, permit) = (&self.pacer, &mut self.permit);
            spawn_teardown(&mut self.connection, || (pacer.work_guard.additional(), hold(permit)));
        }
    }

    /// Waits for the response, or for the first message before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<ResponseStart> {
        loop {
            self.run(cx);
            match self.connection.poll_transmit() {
                Some(response) if matches!(response.route, Route::Reply(_)) => {
                    self.is_over = true;
                    return Poll::Ready(ResponseStart::Message(response));
                }
                Some(transmit) => {
                    events.reserve(USUAL_EVENT_BYTES);
                    self.take(&transmit, events);
                    return self.poll(cx, events).map(ResponseStart::Stream);
                }
                None => {}
            }
            // A response that is ready after this is still sent as JSON, not as an event.
            if let Some(news) = ready!(self.poll_idle(cx, false)) {
                return Poll::Ready(ResponseStart::Stream(news));
            }
        }
    }

    /// Appends the events that are ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        loop {
            let is_quiet = self.run(cx);
            while !is_quiet
                && !self.is_over
                && events.len() < EVENT_BATCH_BYTES
                && let Some(transmit) = self.connection.poll_transmit()
            {
                self.take(&transmit, events);
            }
            if !events.is_empty() {
                self.pacer.sent();
                return Poll::Ready(StreamPoll::Events);
            }
            let news = ready!(self.poll_idle(cx, is_quiet));
            if self.pacer.take_token_expiry() {
                events.extend_from_slice(TOKEN_EXPIRED);
            }
            if let Some(news) = news {
                return Poll::Ready(news);
            }
        }
    }

    /// Runs the handler. Returns whether nothing has happened since the timers were polled.
    fn run(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_over {
            return false;
        }
        // The timers and the connection have the same task. A listen stream has no handler to run.
        let step = if self.pacer.wakes(cx.waker()) { self.connection.next_step() } else { NextStep::Poll };
        if step == NextStep::Poll {
            // The first time, hardly any time has passed.
            let now = self.received.take().unwrap_or_else(now);
            let _ = self.connection.poll(cx, now);
        }
        step == NextStep::Wait
    }

    fn take(&mut self, transmit: &Transmit, events: &mut Vec<u8>) {
        write_event(events, &transmit.message);
        // H-18
        self.is_over = matches!(transmit.route, Route::Reply(_));
    }

    /// Waits for what else there is to do. After `None` there may be new messages. A request whose connection is quiet is
    /// still open.
    fn poll_idle(&mut self, cx: &mut Context<'_>, is_quiet: bool) -> Poll<Option<StreamPoll>> {
        if !is_quiet && (self.is_over || !self.connection.is_open(self.key)) {
            self.is_over = true;
            return Poll::Ready(Some(StreamPoll::End));
        }
        match ready!(self.pacer.poll(cx, None)) {
            Pace::KeepAlive => return Poll::Ready(Some(StreamPoll::Idle)),
            Pace::Abort => {
                self.is_aborted = true;
                self.connection.abort_requests(&aborted());
                // Listen streams have no handler to abort; draining ends them.
                self.connection.drain();
            }
            // Listen streams end with their result; handlers may finish.
            Pace::Drain | Pace::Expire => self.connection.drain(),
            Pace::Timeout => {}
        }
        Poll::Ready(None)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.tear_down(Option::take);
    }
}

/// The error of requests that a shutdown aborts.
pub(crate) fn aborted() -> ErrorObject {
    ErrorObject::internal_error("the server was shut down before the request finished")
}

/// The size of the first events of most streams: progress, and the response.
const USUAL_EVENT_BYTES: usize = 1 << 10;

/// The maximum size of events that are sent together, unless one event is larger.
pub(crate) const EVENT_BATCH_BYTES: usize = 64 << 10;
