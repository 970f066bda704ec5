//! The connection as handlers see it.

use std::sync::{Arc, Weak};

use mcp_kernel::Change;
use mcp_types::{
    ClientCapabilities, ClientCapability, Implementation, LoggingLevel, LoggingMessageNotificationParams, Method,
    RawJson, RawObject, Revision,
};
use serde::Serialize;

use crate::connection::scratch::{NoLastingConnection, Scratch};
use crate::connection::shared::Shared;
use crate::serve::endpoint::BoxFuture;
use crate::serve::sent_notification::SentNotification;
use crate::visibility::audience::Audience;

/// The connection to one client, as handlers see it: values that last as long as the connection, and messages that belong to
/// no request.
///
/// Over HTTP, the connection of a request without a session lasts as long as the request, and [`scratch`](Self::scratch) is an
/// error.
#[derive(Clone)]
pub struct ConnectionHandle(pub(crate) Arc<Shared>);

impl ConnectionHandle {
    /// Returns the values that handlers keep for this connection: on stdio and sockets as long as the client is connected, over
    /// HTTP as long as the session of a legacy client.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection lasts for one request only, where the values would be lost: over HTTP for all modern
    /// clients, and for legacy clients without a session.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use mcp_server::{HandlerError, NoArguments, RequestContext, tool};
    ///
    /// let count = tool("count", async |ctx: RequestContext, _: NoArguments| {
    ///     let calls = ctx.connection().scratch()?.get_or_insert_with(AtomicU32::default);
    ///     Ok::<_, HandlerError>((calls.fetch_add(1, Ordering::Relaxed) + 1).to_string())
    /// });
    /// ```
    // S1.15
    pub fn scratch(&self) -> Result<&Scratch, NoLastingConnection> {
        self.0.scratch().ok_or(NoLastingConnection)
    }

    /// Adds a callback that runs when the connection ends: last in, first out, each for at most five seconds.
    // S1.16, S1.17
    pub fn on_close<F, Fut>(&self, teardown: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let teardown = Box::new(move || -> BoxFuture<()> { Box::pin(teardown()) });
        self.0.push_teardown(teardown);
    }

    /// Returns a unique name of the connection, for logs and as a key.
    // S2.6
    #[must_use]
    pub fn token(&self) -> &str {
        self.0.token()
    }

    /// Returns the session id of the transport, if there is one: over HTTP, that of a session. It gives access to the
    /// session, so keep it out of logs; [`token`](Self::token) is for those.
    // S1.24
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.0.session_id.get().map(|id| id.to_string())
    }

    /// Returns the revision that was negotiated by the handshake, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.0.lock().kernel.negotiated()
    }

    /// Returns the name and version that the client claimed in the handshake. They are not verified: use them for display
    /// and logs only.
    ///
    /// Each request of a modern client has its own: see
    /// [`RequestContext::client_info`](crate::RequestContext::client_info). This returns them only if the connection is for
    /// this request, as it is over HTTP, and as long as the request is in flight.
    // S1.12
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.0.lock().kernel.client_info()
    }

    /// Returns the capabilities that the client declared in the handshake, or `None` if they are not known. For modern
    /// clients the same holds as for [`client_info`](Self::client_info).
    // S1.12, S1.19
    #[must_use]
    pub fn capabilities(&self) -> Option<ClientCapabilities> {
        self.0.lock().kernel.client_capabilities()
    }

    /// Returns whether the client declared a capability. Returns `false` if its capabilities are not known.
    // S1.36, S1.37
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.0.lock().kernel.client_supports(capability)
    }

    /// Returns whether there is a channel for messages that belong to no request: on stdio and in sessions, until the
    /// connection ends. Over HTTP the client may not have opened its GET stream; messages are dropped then.
    ///
    /// A channel does not mean that requests may be sent on it: legacy clients have to complete the handshake first (see
    /// [`initialized`](Self::initialized)), and modern clients never get any.
    // S1.25
    #[must_use]
    pub fn has_standalone_channel(&self) -> bool {
        self.0.lock().kernel.has_standalone_channel()
    }

    /// Waits until a legacy client has sent `notifications/initialized`, after which it can receive requests and
    /// notifications. Returns at once if the connection is for one request, which has no handshake.
    ///
    /// A modern client on stdio never sends the notification, so this waits until the connection ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection ends before.
    // S1.13, S1.14
    pub async fn initialized(&self) -> Result<(), ConnectionClosed> {
        let state = || {
            let state = self.0.lock();
            match (state.kernel.is_initialized(), state.kernel.is_closed()) {
                (true, _) => Some(Ok(())),
                (false, true) => Some(Err(ConnectionClosed)),
                (false, false) => None,
            }
        };
        match state() {
            Some(outcome) => outcome,
            None => self.0.rare().handshake_waiters.wait_for(state).await,
        }
    }

    /// Sends a notification that belongs to no request. It is dropped if there is no stream for it.
    // S1.7
    pub fn notify(&self, method: &Method, params: &impl Serialize) {
        let Ok(mut params) = RawObject::new(params) else { return };
        let sent = SentNotification::start_standalone(&self.0, method);
        if let Some(traced) = sent.as_ref().and_then(|sent| sent.add_trace_to(&params)) {
            params = traced;
        }
        let delivery = self.0.run_command(None, |kernel| kernel.notify(None, method, &params));
        tracing::trace!(target: "mcp", method = method.as_str(), ?delivery, "notification");
    }

    /// Notifies this client of a change, if it subscribed to it: the same as
    /// [`Server::publish_to`](crate::Server::publish_to) with
    /// [`Audience::connection`].
    pub fn publish(&self, change: &Change) {
        // A connection without subscriptions need not know its server.
        if let Some(server) = self.0.server() {
            server.publish_to(&Audience::connection(self), change);
        }
    }

    /// Returns a handle that does not keep the values of the connection in memory, for collections of connections.
    #[must_use]
    pub fn downgrade(&self) -> WeakConnectionHandle {
        WeakConnectionHandle(Arc::downgrade(&self.0))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a log message that belongs to no request, to legacy clients only.
    // S1.35
    pub fn log<T: Serialize + ?Sized>(&self, level: LoggingLevel, data: &T) {
        if let Ok(data) = RawJson::new(data) {
            self.log_message(&LoggingMessageNotificationParams::new(level, data));
        }
    }

    /// Sends a log message with the name of a logger, to legacy clients only.
    // S1.35
    pub fn log_as<T: Serialize + ?Sized>(&self, logger: &str, level: LoggingLevel, data: &T) {
        if let Ok(data) = RawJson::new(data) {
            self.log_message(&LoggingMessageNotificationParams::new(level, data).logger(logger));
        }
    }

    /// Sends a log message with all members of the notification, `_meta` included, to legacy clients only.
    // S1.35
    pub fn log_message(&self, message: &LoggingMessageNotificationParams) {
        if !self.0.lock().kernel.may_log(None, message.level) {
            return;
        }
        let sent = SentNotification::start_standalone(&self.0, &Method::NOTIFICATIONS_MESSAGE);
        let traced = sent.as_ref().and_then(|sent| sent.add_trace_to_log(message));
        let message = traced.as_ref().unwrap_or(message);
        let _ = self.0.run_command(None, |kernel| kernel.log_message(None, message));
    }
}

/// The error of [`ConnectionHandle::initialized`] if the connection ends before the handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection ended before its handshake was complete")]
#[expect(clippy::exhaustive_structs, reason = "it has no details")]
pub struct ConnectionClosed;

impl std::fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandle").finish_non_exhaustive()
    }
}

/// A [`ConnectionHandle`] that does not keep the connection and its values in memory; created by
/// [`ConnectionHandle::downgrade`].
#[derive(Clone)]
pub struct WeakConnectionHandle(Weak<Shared>);

impl WeakConnectionHandle {
    #[cfg(feature = "mrtr")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }

    /// Returns the handle, unless the connection has ended.
    #[must_use]
    pub fn upgrade(&self) -> Option<ConnectionHandle> {
        let shared = self.0.upgrade()?;
        let is_closed = shared.lock().kernel.is_closed();
        (!is_closed).then_some(ConnectionHandle(shared))
    }
}

impl std::fmt::Debug for WeakConnectionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeakConnectionHandle").finish_non_exhaustive()
    }
}
