//! One client: a connection that lasts as long as its stream.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use mcp_kernel::{RequestKey, Transmit};
use mcp_server::{BoxFuture, Caller, Connection, Principal, SecondHandshake, Server};
use mcp_session::SessionId;
use mcp_types::ErrorObject;
use mcp_types::jsonrpc::{Incoming, Message};
use tokio::time::sleep;

use crate::server::admission::Permit;
use crate::server::exchange::{TEARDOWN, now};

/// What the stream of a client and its POSTs share.
///
/// The connection runs where the stream is polled. A POST only hands its message in: so a client that does not read
/// makes its own handlers wait, and nobody else's.
pub(crate) struct Client {
    pub(crate) id: SessionId,
    /// Who opened the stream, and nobody else may write to it (S4.114).
    pub(crate) principal: Option<Principal>,
    /// Which server it is was settled when the stream began.
    pub(crate) server: Server,
    state: Mutex<State>,
}

pub(crate) struct State {
    connection: Connection,
    /// The requests that are not answered yet.
    open: Vec<Open>,
    /// The task of the stream.
    reader: Option<Waker>,
    /// Whether nothing more is taken in.
    is_closing: bool,
}

/// A request, which keeps its room until there is an answer to it, as no POST waits for that (S4.94).
struct Open {
    key: RequestKey,
    bytes: usize,
    _permit: Permit,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The stream is over.
    Over,
    /// The client does not read what was said to it, or has asked for too much.
    Full,
}

impl Client {
    pub(crate) fn new(id: SessionId, principal: Option<Principal>, server: &Server) -> Self {
        let connection = Connection::for_loop(server).second_handshake(SecondHandshake::Repeat);
        let state = State { connection, open: Vec::new(), reader: None, is_closing: false };
        Self { id, principal, server: server.clone(), state: Mutex::new(state) }
    }

    /// Takes a message of so many bytes, and has the stream look at it.
    pub(crate) fn feed(
        &self,
        incoming: Incoming<'_>,
        bytes: usize,
        caller: &Caller,
        permit: Permit,
    ) -> Result<(), NotTaken> {
        let mut state = self.lock();
        if state.is_closing || state.connection.is_closed() {
            return Err(NotTaken::Over);
        }
        state.release();
        let held: usize = state.open.iter().map(|open| open.bytes).sum();
        // One that is alone always fits, and what is no request is not kept.
        let fits = held == 0 || held + bytes <= self.server.config().limits.outbox_bytes;
        let is_kept = matches!(incoming, Incoming::Single(Message::Request(_)) | Incoming::Batch(_));
        if !state.connection.wants_input() || (is_kept && !fits) {
            return Err(NotTaken::Full);
        }
        if let Some(key) = state.connection.feed_parsed(now(), incoming, caller) {
            state.open.push(Open { key, bytes, _permit: permit });
        }
        state.release();
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Runs the handlers.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => self.reader = Some(cx.waker().clone()),
        }
        let _ = self.connection.poll(cx, now());
        self.release();
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.connection.poll_transmit()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<std::time::Instant> {
        self.connection.poll_timeout().map(|deadline| deadline.at)
    }

    pub(crate) fn handle_timeout(&mut self) {
        self.connection.handle_timeout(now());
    }

    /// Takes nothing more in; what is at work may finish.
    pub(crate) fn drain(&mut self) {
        self.is_closing = true;
        self.connection.drain();
    }

    /// Gives up what is at work.
    pub(crate) fn give_up(&mut self, why: &ErrorObject) {
        self.drain();
        self.connection.give_up(why);
        self.release();
    }

    /// Whether nothing will be said any more, once what is queued has been.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_closed() || (self.is_closing && self.open.is_empty())
    }

    /// Ends everything; what handlers left to be done is to be run.
    pub(crate) fn end(&mut self) -> Option<BoxFuture<()>> {
        self.is_closing = true;
        self.reader = None;
        let teardown = self.connection.take_teardown(|| sleep(TEARDOWN));
        self.connection.handle_disconnect();
        self.open = Vec::new();
        teardown
    }

    /// Gives back the room of requests that are answered, or cancelled.
    fn release(&mut self) {
        self.open.retain(|open| self.connection.is_open(open.key));
    }
}
