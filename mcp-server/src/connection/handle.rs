//! The connection as handlers see it.

use std::sync::{Arc, PoisonError, Weak};

use mcp_kernel::{Change, RequestKey};
use mcp_types::{EmptyResult, LoggingLevel, Method, RawJson, RawObject, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::error::AskError;
use crate::asking::options::AskOptions;
use crate::asking::server_requests;
use crate::connection::scratch::{NoLastingConnection, Scratch};
use crate::connection::shared::Shared;
use crate::serve::endpoint::BoxFuture;
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
        self.0.scratch.as_ref().ok_or(NoLastingConnection)
    }

    /// Adds a callback that runs when the connection ends: last in, first out, each for at most five seconds.
    // S1.16, S1.17
    pub fn on_close<F, Fut>(&self, teardown: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let teardown = Box::new(move || -> BoxFuture<()> { Box::pin(teardown()) });
        self.0.teardown.lock().unwrap_or_else(PoisonError::into_inner).push(teardown);
    }

    /// Returns a unique name of the connection, for logs and as a key.
    // S2.6
    #[must_use]
    pub fn token(&self) -> &str {
        self.0.token()
    }

    /// Returns the revision that was negotiated by the handshake, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.0.lock().kernel.negotiated()
    }

    /// Sends a notification that belongs to no request. It is dropped if there is no stream for it.
    // S1.7
    pub fn notify(&self, method: &Method, params: &impl Serialize) {
        let Ok(params) = RawObject::new(params) else { return };
        let delivery = self.0.run_command(None, |kernel| kernel.notify(None, method, &params));
        tracing::trace!(target: "mcp", method = method.as_str(), ?delivery, "notification");
    }

    /// Notifies this client of a change, if it subscribed to it: the same as
    /// [`Server::publish_to`](crate::Server::publish_to) with
    /// [`Audience::connection`].
    pub fn publish(&self, change: &Change) {
        // A connection without subscriptions need not know its server.
        if let Some(server) = self.0.server.get().and_then(|server| server.upgrade()) {
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
            let _ = self.0.run_command(None, |kernel| kernel.log(None, level, data, None));
        }
    }

    /// Sends a `ping` to a legacy client and waits for the response.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot be sent, or if there is no response.
    // S1.34
    pub async fn ping(&self) -> Result<(), AskError> {
        self.request::<EmptyResult>(Method::PING, &RawObject::empty(), AskOptions::default()).await.map(drop)
    }

    /// Sends a request to a legacy client, for example one that an extension defines.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot be sent, if there is no response, or if its result is not a `T`.
    // S1.27, S1.31
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        params: &RawObject,
        options: AskOptions,
    ) -> Result<T, AskError> {
        self.request_for(None, method, params.clone(), options).await
    }

    pub(crate) async fn request_for<T: DeserializeOwned>(
        &self,
        related: Option<RequestKey>,
        method: Method,
        params: RawObject,
        options: AskOptions,
    ) -> Result<T, AskError> {
        server_requests::ask(&self.0, related, method, params, options).await
    }
}

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
