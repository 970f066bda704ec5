//! The messages of a connection, separate from its handlers.

use std::sync::Arc;

use mcp_kernel::server::{Connection, Route, SessionState, Transmit};
use mcp_kernel::{Deadline, RequestKey, Time};
use mcp_types::RawObject;
use mcp_types::jsonrpc::{Incoming, Message, Payload};

use crate::connection::caller::Caller;
use crate::connection::handle::ConnectionHandle;
use crate::connection::handshake::ChosenServer;
use crate::connection::request_origin::RequestOrigin;
use crate::connection::shared::{Inbox, Shared, State};
use crate::serve::telemetry;
use crate::server::Server;

/// The incoming and outgoing messages of a [`Connection`](crate::Connection), for transports that read and write on other
/// tasks than the one that runs the handlers.
///
/// No method runs a handler or other code of the application, or waits for one. Handlers of requests that are fed here are
/// called when the connection is polled next, which the transport has to ensure.
///
/// Clones share the connection.
#[derive(Clone)]
pub struct ConnectionPort {
    /// The server that the connection had when the port was created.
    server: Server,
    chosen: Option<ChosenServer>,
    shared: Arc<Shared>,
}

impl ConnectionPort {
    pub(crate) fn new(server: Server, chosen: Option<ChosenServer>, shared: Arc<Shared>) -> Self {
        Self { server, chosen, shared }
    }

    /// Returns the server, which [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) may have chosen.
    #[must_use]
    pub fn server(&self) -> &Server {
        self.chosen.as_ref().and_then(|chosen| chosen.get()).unwrap_or(&self.server)
    }

    /// Returns the handle that handlers get.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(Arc::clone(&self.shared))
    }

    /// Handles a message that the transport has parsed; returns the key of its response, if there will be one.
    ///
    /// # Errors
    ///
    /// Returns an error, and ignores the message, if too much was fed since the connection was last polled: more messages
    /// than [`Limits::max_outbox_messages`](crate::Limits::max_outbox_messages), or more bytes than
    /// [`Limits::max_outbox_bytes`](crate::Limits::max_outbox_bytes). The first message always fits.
    pub fn feed_parsed(
        &self,
        now: Time,
        incoming: Incoming<'_>,
        caller: Caller,
    ) -> Result<Option<RequestKey>, InboxFull> {
        let (config, bytes) = (self.server().config(), size(&incoming));
        let limits = &config.limits;
        let received = telemetry::stopwatch(self.server());
        if let Some(received) = received {
            self.shared.set_received(received);
        }
        let mut state = self.shared.lock();
        let State { kernel, inbox, origins, .. } = &mut *state;
        let (messages, bytes) = (inbox.messages + 1, inbox.bytes.saturating_add(bytes));
        if inbox.messages > 0 && (messages > limits.max_outbox_messages || bytes > limits.max_outbox_bytes) {
            return Err(InboxFull);
        }
        *inbox = Inbox { messages, bytes };
        let feed = |kernel: &mut Connection| kernel.handle_incoming(now, incoming, caller.principal.as_ref(), None);
        let (key, closed) = origins.feed(kernel, config.observed, feed);
        let open = key.filter(|key| kernel.is_open(*key));
        state.note_caller(key, &caller, &self.shared.has_joined);
        let mut extensions = Some(caller.extensions);
        if let Some(key) = open {
            let origin = RequestOrigin { extensions: extensions.take().unwrap_or_default(), received };
            state.origins.insert(key, origin);
        }
        drop(state);
        // Without the lock, as the values are the transport's.
        drop((closed, extensions));
        Ok(key)
    }

    /// Returns the next message to send. If there is one, the connection has to be polled again: there may be room now for
    /// requests that waited.
    #[must_use]
    pub fn poll_transmit(&self) -> Option<Transmit> {
        self.shared.lock().kernel.poll_transmit()
    }

    /// Returns whether more messages may be fed: not while too much is queued to be sent, nor while a
    /// [handshake is pending](Self::has_pending_handshake).
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.lock().kernel.wants_input()
    }

    /// Returns whether the connection does not have to be polled for messages to be sent: nothing has happened that handlers
    /// have to know, and no request waits for room.
    #[must_use]
    pub fn has_messages_only(&self) -> bool {
        let state = self.shared.lock();
        state.kernel.wants_input() && !state.kernel.has_event()
    }

    /// Returns whether [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) has yet to decide about the
    /// handshake. No message is wanted meanwhile.
    #[must_use]
    pub fn has_pending_handshake(&self) -> bool {
        self.shared.lock().kernel.has_pending_handshake()
    }

    /// Holds back messages of a route, because its stream is not read.
    pub fn block(&self, route: Route) {
        self.shared.lock().kernel.block(route);
    }

    /// Releases the messages of a route.
    pub fn unblock(&self, route: Route) {
        self.shared.lock().kernel.unblock(route);
    }

    /// Abandons a request whose client will not resume its stream: its handler is dropped by the next poll of the connection.
    pub fn abandon(&self, request: RequestKey) {
        self.shared.lock().kernel.abandon(request);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.shared.lock().kernel.poll_timeout()
    }

    /// Handles the deadlines that have passed; early calls do nothing.
    pub fn handle_timeout(&self, now: Time) {
        self.shared.lock().kernel.handle_timeout(now);
    }

    /// Begins a graceful shutdown: ends subscriptions and server-to-client requests, and lets handlers finish. The
    /// transport feeds no further messages.
    pub fn drain(&self) {
        self.shared.lock().kernel.drain();
    }

    /// Returns the parameters of `initialize`, after a handshake.
    #[must_use]
    pub fn initialize_params(&self) -> Option<RawObject> {
        self.shared.lock().kernel.initialize_params().cloned()
    }

    /// Returns how many bytes the client makes the connection keep between requests.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.shared.lock().kernel.kept_bytes()
    }

    /// Returns the state of a legacy session, after the handshake.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        self.shared.lock().kernel.session_state()
    }

    /// Replaces the state of the session by that of another process. Call [`wake_refreshed`](Self::wake_refreshed)
    /// afterwards.
    pub fn refresh(&self, state: SessionState) {
        self.shared.lock().kernel.refresh(state);
    }

    /// Wakes tasks that wait for what [`refresh`](Self::refresh) may have changed. The caller must hold no lock.
    pub fn wake_refreshed(&self) {
        self.shared.wake_handshake_waiters();
    }

    /// Returns whether the response to a request, or to any of a batch, is still due.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.shared.lock().kernel.is_open(request)
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().kernel.is_closed()
    }
}

/// The error of [`ConnectionPort::feed_parsed`] if too much was fed since the connection was last polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many messages wait for the handlers of this connection (`max_outbox_messages`, `max_outbox_bytes`)")]
#[expect(clippy::exhaustive_structs, reason = "it has no details")]
pub struct InboxFull;

/// The approximate size of a message in memory, in bytes.
fn size(incoming: &Incoming<'_>) -> usize {
    let length = |payload: &Payload<'_>| payload.as_str().len();
    let size = |message: &Message<'_>| match message {
        Message::Request(request) => request.params.as_ref().map_or(0, length),
        Message::Notification(notification) => notification.params.as_ref().map_or(0, length),
        Message::Response(response) => response.outcome.as_ref().map_or(0, length),
    };
    match incoming {
        Incoming::Single(message) => size(message),
        Incoming::Batch(messages) => messages.iter().flatten().map(size).fold(0, usize::saturating_add),
    }
}

impl std::fmt::Debug for ConnectionPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionPort").finish_non_exhaustive()
    }
}
