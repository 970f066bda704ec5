//! The event stream of an HTTP+SSE session.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_kernel::Time;
use mcp_server::Connection;
use mcp_types::ErrorObject;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, sleep_until};

use super::session::SseSession;
use super::sessions::SseSessions;
use crate::clock::now;
use crate::server::admission::Permit;
use crate::server::body::write_event;
use crate::server::exchange::{EVENT_BATCH_BYTES, StreamPoll, TEARDOWN_TIMEOUT, after};
use crate::server::shutdown::{Stage, StageWatch, WorkGuard};

/// The event stream of a session. Polling it runs the connection, and dropping it ends the session.
///
/// ```text
/// open --drain, expiry--> closing --last response--> over
///   |                        |  \--drain timeout: requests are aborted--> over
///   \------- dropped --------/
/// ```
pub(crate) struct SseStream {
    session: Arc<SseSession>,
    connection: Connection,
    sessions: Arc<SseSessions>,
    keep_alive_interval: Duration,
    work_guard: WorkGuard,
    permit: Option<Permit>,
    end: StageWatch,
    silence: Pin<Box<Sleep>>,
    /// When the stream has to end.
    expiry: Option<Pin<Box<Sleep>>>,
    /// The next timeout of the connection.
    deadline: Option<(Time, Pin<Box<Sleep>>)>,
    is_closing: bool,
    is_aborted: bool,
    is_over: bool,
}

impl SseStream {
    pub(crate) fn new(
        (session, connection): (Arc<SseSession>, Connection),
        sessions: &Arc<SseSessions>,
        keep_alive_interval: Duration,
        work_guard: WorkGuard,
        permit: Permit,
    ) -> Self {
        sessions.insert(&session);
        Self {
            session,
            connection,
            sessions: Arc::clone(sessions),
            keep_alive_interval,
            end: work_guard.watch(),
            work_guard,
            permit: Some(permit),
            silence: Box::pin(sleep(keep_alive_interval)),
            expiry: None,
            deadline: None,
            is_closing: false,
            is_aborted: false,
            is_over: false,
        }
    }

    /// Ends the stream at a time.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    /// Whether the last message was sent.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns a permit to hold until the last event is sent.
    pub(crate) fn take_permit(&self) -> Option<Permit> {
        self.permit.as_ref().map(Permit::another)
    }

    /// Appends the events that are ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        loop {
            self.take(cx, events);
            if !events.is_empty() {
                self.silence.as_mut().reset(after(self.keep_alive_interval));
                return Poll::Ready(StreamPoll::Events);
            }
            if self.is_over {
                return Poll::Ready(StreamPoll::End);
            }
            if let Some(news) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(news);
            }
        }
    }

    fn take(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) {
        self.session.register(cx.waker());
        let _ = self.connection.poll(cx, now());
        self.session.release();
        while events.len() < EVENT_BATCH_BYTES {
            let Some(transmit) = self.connection.poll_transmit() else {
                self.is_over = self.session.is_over();
                return;
            };
            events.extend_from_slice(b"event: message\n");
            write_event(events, &transmit.message);
        }
    }

    /// Waits for the shutdown, the expiry, a timeout or the keep-alive timer. After `None` there may be new messages.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamPoll>> {
        self.end.poll(cx, &self.work_guard);
        let stage = self.work_guard.stage();
        if stage == Stage::Aborting && !self.is_aborted {
            self.is_aborted = true;
            self.is_closing = true;
            let why = ErrorObject::internal_error("the server was shut down before the request finished");
            self.session.drain();
            self.connection.abort_requests(&why);
            self.session.release();
            return Poll::Ready(None);
        }
        let is_expired = self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready());
        if !self.is_closing && (stage == Stage::Draining || is_expired) {
            self.is_closing = true;
            self.expiry = None;
            self.session.drain();
            return Poll::Ready(None);
        }
        if self.poll_deadline(cx).is_ready() {
            self.connection.handle_timeout(now());
            return Poll::Ready(None);
        }
        ready!(self.silence.as_mut().poll(cx));
        self.silence.as_mut().reset(after(self.keep_alive_interval));
        Poll::Ready(Some(StreamPoll::Idle))
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.connection.poll_timeout().map(|deadline| deadline.at) else {
            self.deadline = None;
            return Poll::Pending;
        };
        let now = now();
        if at <= now {
            return Poll::Ready(());
        }
        match &mut self.deadline {
            Some((other, sleep)) if *other == at => sleep.as_mut().poll(cx),
            deadline => deadline.insert((at, Box::pin(sleep(at.duration_since(now))))).1.as_mut().poll(cx),
        }
    }
}

impl Drop for SseStream {
    /// Spawns the teardown that handlers registered, which counts as an open stream until it is done.
    fn drop(&mut self) {
        self.sessions.remove(&self.session.id);
        let teardown = self.connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT));
        self.connection.handle_disconnect();
        self.session.end();
        let Some(teardown) = teardown else { return };
        let held = (self.work_guard.another(), self.permit.take());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                teardown.await;
                drop(held);
            });
        }
    }
}
