//! Notifications to clients, as traces see them.

use mcp_kernel::Change;
#[cfg(feature = "mrtr")]
use mcp_kernel::RequestKey;
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingMessageNotificationParams, Method, NotificationMeta, RawObject, Revision};
use tracing::Span;

use crate::connection::shared::Shared;
use crate::serve::telemetry;
use crate::server::Server;

/// A notification to a client that is being sent, if the server takes part in traces; its span ends when it is dropped.
pub(crate) struct SentNotification {
    _span: Span,
    trace: Option<TraceContext>,
}

impl SentNotification {
    /// Begins the span of a notification in the current one.
    pub(crate) fn start(
        server: &Server,
        connection: &Shared,
        method: &Method,
        revision: Option<Revision>,
    ) -> Option<Self> {
        if !is_traced(server) {
            return None;
        }
        let span = telemetry::sent_span(method, revision, connection);
        let trace = server.hooks().trace_context.as_ref().and_then(|trace| span.in_scope(|| trace()));
        Some(Self { _span: span, trace })
    }

    /// Begins the span of a notification that belongs to no request, which only a legacy client can get. The connection knows its
    /// server only if it may be notified of changes.
    pub(crate) fn start_standalone(connection: &Shared, method: &Method) -> Option<Self> {
        let server = connection.server().filter(is_traced)?;
        let revision = connection.lock().kernel.negotiated()?;
        Self::start(&server, connection, method, Some(revision))
    }

    /// Begins the span of a notification on a listen stream, in the span of that stream.
    #[cfg(feature = "mrtr")]
    pub(crate) fn start_on_stream(connection: &Shared, stream: RequestKey, method: &Method) -> Option<Self> {
        let server = connection.server().filter(is_traced)?;
        let stream = connection.lock().listen_streams.get(stream)?;
        let _stream = stream.span.get().map(Span::enter);
        Self::start(&server, connection, method, Some(stream.scope.revision()))
    }

    /// Returns parameters with the trace context.
    pub(crate) fn add_trace_to(&self, params: &RawObject) -> Option<RawObject> {
        self.trace.as_ref()?.add_to(params).ok()
    }

    /// Returns a log message with the trace context, unless it has one of its own.
    pub(crate) fn add_trace_to_log(
        &self,
        message: &LoggingMessageNotificationParams,
    ) -> Option<LoggingMessageNotificationParams> {
        let (trace, mut traced) = (self.trace.as_ref()?, message.clone());
        let meta = traced.meta.get_or_insert_default();
        if meta.trace_context().traceparent().is_some() {
            return None;
        }
        meta.set_trace_context(trace);
        Some(traced)
    }

    /// Returns metadata with the trace context.
    pub(crate) fn meta(&self) -> Option<NotificationMeta> {
        let mut meta = NotificationMeta::default();
        meta.set_trace_context(self.trace.as_ref()?);
        Some(meta)
    }
}

/// Begins the span of all notifications of one change, if the server takes part in traces.
pub(crate) fn publish_span(server: &Server, change: &Change) -> Span {
    if is_traced(server) { telemetry::change_span(&change.method()) } else { Span::none() }
}

/// Whether there are spans for more than requests with a handler.
fn is_traced(server: &Server) -> bool {
    server.config().observed || server.hooks().trace_context.is_some()
}
