//! The messages of a connection, apart from its handlers.

use std::sync::Arc;

use mcp_kernel::server::SessionState;
use mcp_kernel::{Deadline, RequestKey, Route, Time, Transmit};
use mcp_types::RawObject;
use mcp_types::jsonrpc::{Incoming, Message, Payload};

use crate::connection::Caller;
use crate::connection::shared::{Inbox, Shared, State};
use crate::server::Server;

/// The messages of a [`Connection`](crate::Connection), in and out, for transports where other tasks than the one that
/// runs the handlers read and write.
///
/// No method runs a handler or any other code of the application, and none waits for one that runs: the connection's lock
/// is held for moments. What is fed here begins when the connection is polled next, which is for the transport to see to.
///
/// Clones are the same port.
#[derive(Clone)]
pub struct ConnectionPort {
    server: Server,
    shared: Arc<Shared>,
}

impl ConnectionPort {
    pub(crate) fn new(server: Server, shared: Arc<Shared>) -> Self {
        Self { server, shared }
    }

    /// The server that it is a connection to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Takes a message that the transport has parsed; returns the handle under which it is answered, if it is.
    ///
    /// # Errors
    ///
    /// Returns an error, and takes nothing, if too much was fed since the connection was polled: more messages than
    /// [`Limits::outbox_messages`](crate::Limits::outbox_messages), or more than
    /// [`Limits::outbox_bytes`](crate::Limits::outbox_bytes). A message that is alone always fits.
    pub fn feed_parsed(
        &self,
        now: Time,
        incoming: Incoming<'_>,
        caller: &Caller,
    ) -> Result<Option<RequestKey>, InboxFull> {
        let (limits, bytes) = (&self.server.config().limits, size(&incoming));
        let mut state = self.shared.lock();
        let State { kernel, inbox, origins, .. } = &mut *state;
        let (messages, bytes) = (inbox.messages + 1, inbox.bytes.saturating_add(bytes));
        if inbox.messages > 0 && (messages > limits.outbox_messages || bytes > limits.outbox_bytes) {
            return Err(InboxFull);
        }
        *inbox = Inbox { messages, bytes };
        let key = kernel.handle_incoming(now, incoming, caller.principal.as_ref());
        let closed = origins.take_closed(|key| kernel.is_open(key));
        if let Some(key) = key.filter(|key| kernel.is_open(*key)) {
            origins.note(key, &caller.extensions);
        }
        drop(state);
        drop(closed);
        Ok(key)
    }

    /// The next message to send. If there was one, the connection has to be polled again: there may be room now for
    /// requests that had to wait for it.
    #[must_use]
    pub fn poll_transmit(&self) -> Option<Transmit> {
        self.shared.lock().kernel.poll_transmit()
    }

    /// Whether more may be fed: not while too much waits to be sent.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.lock().kernel.wants_input()
    }

    /// Keeps messages of a route back, because its reader does not read.
    pub fn block(&self, route: Route) {
        self.shared.lock().kernel.block(route);
    }

    /// Lets messages of a route go on.
    pub fn unblock(&self, route: Route) {
        self.shared.lock().kernel.unblock(route);
    }

    /// Takes note that nobody will come back for the answer to a request: its handler is dropped by the next poll of the
    /// connection.
    pub fn abandon(&self, request: RequestKey) {
        self.shared.lock().kernel.abandon(request);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.shared.lock().kernel.poll_timeout()
    }

    /// Takes note of the time; early calls do nothing.
    pub fn handle_timeout(&self, now: Time) {
        self.shared.lock().kernel.handle_timeout(now);
    }

    /// Prepares for the end: nothing more will be read, and handlers may finish.
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

    /// What a legacy client has settled, after its handshake.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        self.shared.lock().kernel.session_state()
    }

    /// Takes over what was settled elsewhere.
    pub fn refresh(&self, state: SessionState) {
        self.shared.lock().kernel.refresh(state);
    }

    /// Whether a request is still to be answered, or any of a batch.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.shared.lock().kernel.is_open(request)
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().kernel.is_closed()
    }
}

/// The error of a [`ConnectionPort`] that takes nothing more before its connection is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("as many messages wait for the handlers of this connection as it can keep")]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to say about it")]
pub struct InboxFull;

/// About how many bytes of a message are kept until it is acted on.
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
