//! One HTTP+SSE session, which lasts as long as its stream.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mcp_kernel::RequestKey;
use mcp_server::{Caller, Connection, ConnectionPort, Principal, Server};
use mcp_session::SessionId;
use mcp_types::jsonrpc::{Incoming, Message};

use crate::clock::now;
use crate::server::admission::Permit;

/// The state that a stream and its POSTs share.
///
/// The connection belongs to the stream, and runs when that is polled. A POST only passes its message on: a client that
/// does not read delays only its own handlers, and a handler that blocks its thread blocks no POST.
pub(crate) struct SseSession {
    pub(crate) id: SessionId,
    /// The principal that opened the stream. Others must not send messages.
    pub(crate) principal: Option<Principal>,
    /// The input and output of the connection.
    pub(crate) connection: ConnectionPort,
    /// Never locked while a handler runs.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The requests in flight.
    open: Vec<OpenRequest>,
    /// The waker of the stream's task.
    reader: Option<Waker>,
    /// Whether new messages are refused.
    is_closing: bool,
}

/// The error of passing a message to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedError {
    /// The session has ended, or ends.
    Ended,
    /// The application has not decided about the handshake yet.
    TooEarly,
    /// The client does not read the messages on its stream.
    Unread,
    /// The requests in flight are too large together.
    TooLarge,
    /// Too many messages wait for a handler that blocks its thread.
    Blocked,
}

/// A request in flight. It holds its permit until its response is queued, because its POST is accepted before.
struct OpenRequest {
    key: RequestKey,
    bytes: usize,
    _permit: Permit,
}

impl SseSession {
    pub(crate) fn new(id: SessionId, principal: Option<Principal>, connection: &Connection) -> Self {
        Self { id, principal, connection: connection.port(), state: Mutex::default() }
    }

    /// Returns the server that was selected for the session.
    pub(crate) fn server(&self) -> &Server {
        self.connection.server()
    }

    /// Passes a message to the connection, and wakes the stream's task.
    pub(crate) fn feed(
        &self,
        incoming: Incoming<'_>,
        bytes: usize,
        caller: Caller,
        permit: Permit,
    ) -> Result<(), FeedError> {
        let mut state = self.lock();
        if state.is_closing || self.connection.is_closed() {
            return Err(FeedError::Ended);
        }
        state.release(&self.connection);
        let held: usize = state.open.iter().map(|open| open.bytes).sum();
        // A single request always fits, and only requests are counted.
        let fits = held == 0 || held + bytes <= self.server().config().limits.max_outbox_bytes;
        let is_kept = matches!(incoming, Incoming::Single(Message::Request(_)) | Incoming::Batch(_));
        if self.connection.has_pending_handshake() {
            return Err(FeedError::TooEarly);
        }
        if !self.connection.wants_input() {
            return Err(FeedError::Unread);
        }
        if is_kept && !fits {
            return Err(FeedError::TooLarge);
        }
        let key = self.connection.feed_parsed(now(), incoming, caller).map_err(|_| FeedError::Blocked)?;
        if let Some(key) = key {
            state.open.push(OpenRequest { key, bytes, _permit: permit });
        }
        state.release(&self.connection);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Registers the waker of the stream's task.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut reader = Some(waker.clone());
        std::mem::swap(&mut self.lock().reader, &mut reader);
    }

    /// Releases the permits of requests that have a response or were cancelled.
    pub(crate) fn release(&self) {
        self.lock().release(&self.connection);
    }

    /// Refuses new messages; requests in flight may finish.
    pub(crate) fn drain(&self) {
        self.lock().is_closing = true;
        self.connection.drain();
    }

    /// Whether the stream ends after the queued messages.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        self.connection.is_closed() || (state.is_closing && state.open.is_empty())
    }

    /// Refuses new messages, and releases all permits.
    pub(crate) fn end(&self) {
        let ended = State { is_closing: true, ..State::default() };
        let before = std::mem::replace(&mut *self.lock(), ended);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn release(&mut self, connection: &ConnectionPort) {
        self.open.retain(|open| connection.is_open(open.key));
    }
}
