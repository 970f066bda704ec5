//! The event stream of an HTTP+SSE session.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_server::Connection;

use super::session::SseSession;
use super::sessions::SseSessions;
use crate::clock::now;
use crate::event_stream::encode::{TOKEN_EXPIRED, write_named_event};
use crate::server::admission::Permit;
use crate::server::exchange::{EVENT_BATCH_BYTES, StreamPoll, aborted};
use crate::server::pacer::{Pace, Pacer};
use crate::server::teardown::spawn_teardown;

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
    pacer: Pacer,
    permit: Option<Permit>,
    pub(crate) is_over: bool,
}

impl SseStream {
    pub(crate) fn new(
        (session, connection): (Arc<SseSession>, Connection),
        sessions: &Arc<SseSessions>,
        pacer: Pacer,
        permit: Permit,
    ) -> Self {
        sessions.insert(&session);
        let sessions = Arc::clone(sessions);
        Self { session, connection, sessions, pacer, permit: Some(permit), is_over: false }
    }

    /// Returns a permit to hold until the last event is sent.
    pub(crate) fn take_permit(&self) -> Option<Permit> {
        self.permit.as_ref().map(Permit::additional)
    }

    /// Appends the events that are ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        loop {
            self.take(cx, events);
            if !events.is_empty() {
                self.pacer.sent();
                return Poll::Ready(StreamPoll::Events);
            }
            if self.is_over {
                return Poll::Ready(StreamPoll::End);
            }
            let news = ready!(self.poll_idle(cx));
            if self.pacer.take_token_expiry() {
                events.extend_from_slice(TOKEN_EXPIRED);
            }
            if let Some(news) = news {
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
            write_named_event(events, "message", &transmit.message);
        }
    }

    /// Waits for what else there is to do. After `None` there may be new messages.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamPoll>> {
        let deadline = self.connection.poll_timeout().map(|deadline| deadline.at);
        match ready!(self.pacer.poll(cx, deadline)) {
            Pace::KeepAlive => return Poll::Ready(Some(StreamPoll::Idle)),
            Pace::Abort => {
                self.session.drain();
                self.connection.abort_requests(&aborted());
                self.session.release();
            }
            Pace::Drain | Pace::Expire => self.session.drain(),
            Pace::Timeout => self.connection.handle_timeout(now()),
        }
        Poll::Ready(None)
    }
}

impl Drop for SseStream {
    fn drop(&mut self) {
        self.sessions.remove(&self.session.id);
        let (pacer, permit) = (&self.pacer, &mut self.permit);
        // The teardown counts as an open stream until it is done.
        spawn_teardown(&mut self.connection, || (pacer.work_guard.additional(), permit.take()));
        self.connection.handle_disconnect();
        self.session.end();
    }
}
