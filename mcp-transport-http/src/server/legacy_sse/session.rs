//! One client: a connection that lasts as long as its stream.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mcp_kernel::RequestKey;
use mcp_server::{Caller, Connection, ConnectionPort, Principal, Server};
use mcp_session::SessionId;
use mcp_types::jsonrpc::{Incoming, Message};

use crate::clock::now;
use crate::server::admission::Permit;

/// What the stream of a client and its POSTs share.
///
/// The connection belongs to the stream, and runs where that is polled. A POST only hands its message in: so a client that
/// does not read makes its own handlers wait, and nobody else's, and a handler that blocks its thread blocks no POST.
pub(crate) struct SseSession {
    pub(crate) id: SessionId,
    /// Who opened the stream, and nobody else may write to it.
    pub(crate) principal: Option<Principal>,
    /// The messages of the connection, in and out; which server it is to was settled when the stream began.
    pub(crate) connection: ConnectionPort,
    /// Held for moments, and never while a handler runs.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The requests that are not answered yet.
    open: Vec<OpenRequest>,
    /// The task of the stream.
    reader: Option<Waker>,
    /// Whether nothing more is taken in.
    is_closing: bool,
}

/// A request, which keeps its room until there is an answer to it, as no POST waits for that.
struct OpenRequest {
    key: RequestKey,
    bytes: usize,
    _permit: Permit,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedError {
    /// The stream is over.
    Ended,
    /// The client does not read what was said to it, or has asked for too much.
    Full,
}

impl SseSession {
    pub(crate) fn new(id: SessionId, principal: Option<Principal>, connection: &Connection) -> Self {
        Self { id, principal, connection: connection.port(), state: Mutex::default() }
    }

    /// The server that it is a client of.
    pub(crate) fn server(&self) -> &Server {
        self.connection.server()
    }

    /// Takes a message of so many bytes, and has the stream look at it.
    pub(crate) fn feed(
        &self,
        incoming: Incoming<'_>,
        bytes: usize,
        caller: &Caller,
        permit: Permit,
    ) -> Result<(), FeedError> {
        let mut state = self.lock();
        if state.is_closing || self.connection.is_closed() {
            return Err(FeedError::Ended);
        }
        state.release(&self.connection);
        let held: usize = state.open.iter().map(|open| open.bytes).sum();
        // One that is alone always fits, and what is no request is not kept.
        let fits = held == 0 || held + bytes <= self.server().config().limits.outbox_bytes;
        let is_kept = matches!(incoming, Incoming::Single(Message::Request(_)) | Incoming::Batch(_));
        if !self.connection.wants_input() || (is_kept && !fits) {
            return Err(FeedError::Full);
        }
        let key = self.connection.feed_parsed(now(), incoming, caller).map_err(|_| FeedError::Full)?;
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

    /// Has POSTs wake the task of the stream.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut reader = Some(waker.clone());
        std::mem::swap(&mut self.lock().reader, &mut reader);
    }

    /// Gives back the room of requests that are answered, or cancelled.
    pub(crate) fn release(&self) {
        self.lock().release(&self.connection);
    }

    /// Takes nothing more in; what is at work may finish.
    pub(crate) fn drain(&self) {
        self.lock().is_closing = true;
        self.connection.drain();
    }

    /// Whether nothing will be said any more, once what is queued has been.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        self.connection.is_closed() || (state.is_closing && state.open.is_empty())
    }

    /// Takes nothing more in, and gives back all room.
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
