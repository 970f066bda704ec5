//! Functions that are called when a connection begins, and those that observe it.

use std::sync::Arc;

use mcp_kernel::observe::Observer;
use mcp_types::ErrorObject;
use mcp_types::meta::TraceContext;
use tracing::{Level, Span};

use crate::build::builder::ServerBuilder;
use crate::connection::handshake::{Handshake, HandshakeHandler};
use crate::connection::session::{SessionContext, SessionHandler};
use crate::server::Server;

/// The functions of a server that are called when a connection begins, and those that observe it.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) on_initialize: Option<HandshakeHandler>,
    pub(crate) on_session: Option<SessionHandler>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) trace_parent: Option<TraceParent>,
    pub(crate) trace_context: Option<TraceContextSource>,
}

/// Sets the parent of the span of a request.
pub(crate) type TraceParent = Arc<dyn Fn(&Span, &TraceContext) + Send + Sync>;

/// Returns the trace context of a request to the client.
pub(crate) type TraceContextSource = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

impl Hooks {
    /// Whether the connection has to know about the handshake before the kernel responds.
    pub(crate) fn intercept_initialize(&self) -> bool {
        self.on_initialize.is_some() || self.on_session.is_some()
    }
}

impl ServerBuilder {
    /// Sets a function that decides about the handshake of each legacy client, before the response to `initialize`. It sees the
    /// client's name, capabilities and revision and the caller, and returns the server for this connection, or an error with
    /// which the client is refused.
    ///
    /// Return [`Handshake::server`] to keep this server. The function of another server that is returned is not called. On
    /// stdio the choice holds for the whole connection; over HTTP, for the session, also when another process resumes it
    /// ([`Handshake::is_resumed`]). Without sessions the chosen server responds to `initialize` only. While the function
    /// decides, the connection reads no further messages.
    ///
    /// Modern clients have no handshake. Use what can look at each request instead: `HttpOptions::select_server` to choose a
    /// server, a `layer` to refuse requests, and [`RequestContext::supports`](crate::RequestContext::supports)
    /// and [`RequestContext::require`](crate::RequestContext::require) in handlers.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::types::ErrorObject;
    /// use mcp_server::{ClientCapability, Handshake, Server};
    ///
    /// let interactive = Server::builder("shop", "1.0").instructions("Ask before you order.").build()?;
    /// let server = Server::builder("shop", "1.0").on_initialize(move |handshake: Handshake| {
    ///     let interactive = interactive.clone();
    ///     async move {
    ///         if handshake.client_info().name == "crawler" {
    ///             return Err(ErrorObject::invalid_request("this shop is not for crawlers"));
    ///         }
    ///         let is_interactive = handshake.supports(ClientCapability::ElicitationForm);
    ///         Ok(if is_interactive { interactive } else { handshake.server().clone() })
    ///     }
    /// });
    /// let server = server.build()?;
    /// # Ok::<(), mcp_server::BuildError>(())
    /// ```
    pub fn on_initialize<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(Handshake) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Server, ErrorObject>> + Send + 'static,
    {
        self.hooks.on_initialize = Some(Arc::new(move |handshake| Box::pin(decide(handshake))));
        self
    }

    /// Sets a function that is called when a session of a legacy client begins: after the handshake on stdio and in an HTTP
    /// session, and when this process resumes a session of another one. Its future runs for as long as the session lasts,
    /// and is dropped when the session ends, before the callbacks of
    /// [`on_close`](crate::ConnectionHandle::on_close) run. It may end earlier, which does not end the session.
    ///
    /// The function is called in the task that runs its future, when the transport has created the session; not if that
    /// was refused or has ended already. The client can receive requests after
    /// [`initialized`](crate::ConnectionHandle::initialized). On stdio the future runs
    /// in the task of the connection; over HTTP it is a task for each session, which are otherwise without one. Modern
    /// clients have no sessions.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::{Change, Server, SessionContext};
    ///
    /// # async fn next_message(_: Option<&mcp_server::Principal>) -> String { std::future::pending().await }
    /// let server = Server::builder("news", "1.0").on_session(|session: SessionContext| async move {
    ///     let connection = session.connection();
    ///     if connection.initialized().await.is_err() {
    ///         return;
    ///     }
    ///     loop {
    ///         let message = next_message(session.principal()).await;
    ///         connection.log(mcp_server::types::LoggingLevel::Notice, &message);
    ///     }
    /// });
    /// let server = server.build()?;
    /// # Ok::<(), mcp_server::BuildError>(())
    /// ```
    // S4.66
    pub fn on_session<F, Fut>(mut self, run: F) -> Self
    where
        F: Fn(SessionContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.on_session = Some(Arc::new(move |session| Box::pin(run(session))));
        self
    }

    /// Sets what receives the metrics of the server and of its transports, such as that of the crate `mcp-telemetry`. By
    /// default nothing is measured.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.hooks.observer = Some(observer);
        self
    }

    /// Sets the level of the event that reports the end of each handler, with its outcome and duration: `INFO`, `DEBUG` or
    /// `TRACE`; others count as `DEBUG`. Defaults to `DEBUG`.
    pub fn request_log_level(mut self, level: Level) -> Self {
        self.settings.request_log_level = level;
        self
    }

    /// Sets a function that makes the span of each request a child of the client's span, which the trace context of the
    /// request names. It is called before the span is entered. The crate `mcp-telemetry` has one for OpenTelemetry.
    ///
    /// By default the `traceparent` is only a field of the span. With such a function, or with an
    /// [`observer`](Self::observer), there are also spans for requests to which the server responds without a handler, such
    /// as `initialize` and `ping`, and for notifications in both directions. The notifications of one change, such as
    /// `notifications/tools/list_changed`, have one span together, however many clients get them.
    pub fn trace_parent(mut self, set: impl Fn(&Span, &TraceContext) + Send + Sync + 'static) -> Self {
        self.hooks.trace_parent = Some(Arc::new(set));
        self
    }

    /// Sets a function that returns the W3C trace context of each request to a legacy client, such as an elicitation, and of
    /// notifications about progress, of log messages and of an application, which is sent with them. It is called in the span of
    /// the message, whose parent is the current one: with `tracing-opentelemetry`, return the context of
    /// [`tracing::Span::current`]. The crate `mcp-telemetry` has one for OpenTelemetry.
    ///
    /// Modern clients get no requests: what a handler asks them for is part of its result. Notifications of changes have no trace
    /// context, as one can stand for several changes.
    pub fn trace_context(mut self, source: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.hooks.trace_context = Some(Arc::new(source));
        self
    }
}
