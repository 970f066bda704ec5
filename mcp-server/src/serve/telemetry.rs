//! Spans and events, named by the OpenTelemetry conventions for MCP.

use std::time::{Duration, Instant};

use mcp_kernel::PeerMisbehaved;
use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::server::{Event, HandledMessage, RequestScope};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{ErrorCode, ErrorObject, Method, RequestId, Revision, gate};
use tracing::{Level, Span, field};

use crate::connection::shared::Shared;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::observed;
use crate::serve::response::Response;
use crate::server::Server;

/// The target of all spans and events here.
const TARGET: &str = "mcp";

/// The maximum number of characters of a client's text in spans and events.
const MAX_SHOWN_CHARS: usize = 128;

/// The beginning of a client's text, so that the memory per request is bounded.
fn excerpt(text: &str) -> &str {
    text.char_indices().nth(MAX_SHOWN_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The span of a request, which costs nothing if it is disabled.
///
/// Its name contains the name of a tool, prompt or resource only if that is registered, so that clients cannot create names.
/// All other text of a client is truncated.
pub(crate) fn span(scope: &RequestScope, params: &PayloadBuf, connection: &Shared, server: &Server) -> Span {
    targeted_span(scope, Some(scope.id()), params, connection, server)
}

/// The span of a run of a task, as that of the call. The id is that of the task, which gives access to it.
#[cfg(feature = "mrtr")]
pub(crate) fn run_span(scope: &RequestScope, params: &PayloadBuf, connection: &Shared, server: &Server) -> Span {
    targeted_span(scope, None, params, connection, server)
}

#[inline(always)]
fn targeted_span(
    scope: &RequestScope,
    id: Option<&RequestId>,
    params: &PayloadBuf,
    connection: &Shared,
    server: &Server,
) -> Span {
    let method = scope.method().as_str();
    let (revision, trace) = (Some(scope.revision()), scope.trace_context());
    let span = new_span(scope.method(), id, revision, trace, connection, server);
    if span.is_disabled() {
        return span;
    }
    let (member, name) = match method {
        "tools/call" => ("name", "gen_ai.tool.name"),
        "prompts/get" => ("name", "gen_ai.prompt.name"),
        "resources/read" => ("uri", "mcp.resource.uri"),
        _ => return span,
    };
    let Some(raw) = params.get(member).map(|raw| raw.get()) else { return span };
    if raw.len() > MAX_DECODED_BYTES {
        span.record(name, excerpt(raw.trim_start_matches('"')));
        return span;
    }
    let Ok(target) = serde_json::from_str::<String>(raw) else { return span };
    span.record(name, excerpt(&target));
    let registry = server.registry();
    let is_registered = match method {
        "tools/call" => registry.tools.get(&target).is_some(),
        "prompts/get" => registry.prompts.get(&target).is_some(),
        _ => registry.resources.get(&target).is_some(),
    };
    if is_registered {
        span.record("otel.name", format!("{method} {target}").as_str());
    }
    span
}

/// The span of a listen stream, which has no target.
pub(crate) fn listen_span(scope: &RequestScope, connection: &Shared, server: &Server) -> Span {
    let (revision, trace) = (Some(scope.revision()), scope.trace_context());
    new_span(scope.method(), Some(scope.id()), revision, trace, connection, server)
}

/// Creates the span of a message, without its target. It is a child of the client's span if the application connects them.
fn new_span(
    method: &Method,
    id: Option<&RequestId>,
    revision: Option<Revision>,
    trace: &TraceContext,
    connection: &Shared,
    server: &Server,
) -> Span {
    let span = message_span("server", method, id, revision, connection);
    if !span.is_disabled() {
        span.record("traceparent", trace.traceparent().map(excerpt));
        if let Some(set_parent) = &server.hooks().trace_parent {
            set_parent(&span, trace);
        }
    }
    span
}

/// Creates the span of a request or a notification to the client, in the current one.
pub(crate) fn sent_span(method: &Method, revision: Option<Revision>, connection: &Shared) -> Span {
    message_span("client", method, None, revision, connection)
}

/// Creates the span of the notifications of a change, in the current one. They go to many clients, or to none.
pub(crate) fn change_span(method: &Method) -> Span {
    tracing::info_span!(
        target: TARGET,
        "mcp.request",
        otel.name = method.as_str(),
        otel.kind = "client",
        mcp.method.name = method.as_str(),
    )
}

#[inline(always)]
fn message_span(
    kind: &'static str,
    method: &Method,
    id: Option<&RequestId>,
    revision: Option<Revision>,
    connection: &Shared,
) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "mcp.request",
        otel.name = span_name(method),
        otel.kind = kind,
        mcp.method.name = excerpt(method.as_str()),
        mcp.protocol.version = revision.map(Revision::as_str),
        jsonrpc.request.id = id.map(RequestId::to_string).as_deref().map(excerpt),
        network.transport = connection.network().transport_name(),
        network.protocol.name = connection.network().protocol_name(),
        gen_ai.tool.name = field::Empty,
        gen_ai.prompt.name = field::Empty,
        mcp.resource.uri = field::Empty,
        mcp.session.id = field::Empty,
        // For middleware, as the id of a session is a secret to some applications. S4.104
        mcp.transport.session.id = field::Empty,
        traceparent = field::Empty,
        rpc.response.status_code = field::Empty,
        error.type = field::Empty,
    );
    if !span.is_disabled() {
        span.record("mcp.session.id", connection.token());
    }
    span
}

/// The name of the span of a message, which clients cannot create.
fn span_name(method: &Method) -> &str {
    if gate::method(method).is_some() { method.as_str() } else { "_OTHER" }
}

/// Begins the span of a connection for many requests, and reports it, if the server has an observer or connects traces.
pub(crate) fn session_started(server: &Server, connection: &Shared) {
    if server.config().observed {
        let span = tracing::info_span!(
            target: TARGET,
            // Whatever is current now ends long before the session.
            parent: None,
            "mcp.session",
            otel.kind = "server",
            mcp.session.id = field::Empty,
            mcp.protocol.version = field::Empty,
            network.transport = field::Empty,
            network.protocol.name = field::Empty,
            error.type = field::Empty,
        );
        if !span.is_disabled() {
            span.record("mcp.session.id", connection.token());
            connection.set_session_span(span);
        }
        observed::session_started(server, connection);
    }
}

/// Ends what [`session_started`] began.
pub(crate) fn session_ended(connection: &Shared) {
    // Dropped without a lock, as that runs code of the application.
    if let Some(span) = connection.take_session_span() {
        // Read before, as recording runs code of the application, which must not happen with the lock.
        let (network, revision) = (connection.network(), connection.lock().kernel.negotiated());
        span.record("mcp.protocol.version", revision.map(Revision::as_str));
        span.record("network.transport", network.transport_name());
        span.record("network.protocol.name", network.protocol_name());
        span.record("error.type", connection.end_error());
    }
    observed::session_ended(connection);
}

/// Traces and reports a message that the kernel handled by itself.
pub(crate) fn handled(server: &Server, connection: &Shared, message: &HandledMessage, received: Option<Stopwatch>) {
    let HandledMessage { method, id, revision, trace_context, error, .. } = message;
    let span = new_span(method, id.as_ref(), *revision, trace_context, connection, server);
    if !span.is_disabled() {
        if let Some(code) = error {
            record_error(&span, *code);
        }
        span.in_scope(|| tracing::trace!(target: TARGET, "handled without a handler"));
    }
    // It was handled while it was received, unless that is measured.
    let duration = received.map_or(Some(Duration::ZERO), Stopwatch::elapsed);
    observed::handled(server, connection, message, duration);
}

/// Records that a request was cancelled.
pub(crate) fn record_cancelled(span: &Span) {
    end_span(span, OperationOutcome::Cancelled);
}

/// Records the id of a request to the client, which it gets when it is sent.
pub(crate) fn record_id(span: &Span, id: Option<&RequestId>) {
    span.record("jsonrpc.request.id", id.map(RequestId::to_string).as_deref());
}

/// Records how a request ended.
pub(crate) fn end_span(span: &Span, outcome: OperationOutcome) {
    if span.is_disabled() {
        return;
    }
    if let Some(error) = outcome.error_type() {
        span.record("error.type", &*error);
        if let OperationOutcome::Error(_) = outcome {
            span.record("rpc.response.status_code", &*error);
        }
    }
}

fn record_error(span: &Span, code: ErrorCode) {
    end_span(span, OperationOutcome::Error(code));
}

/// The maximum length of a name or URI that is decoded for a span, in bytes.
const MAX_DECODED_BYTES: usize = 1024;

/// Measures how long a request takes; nothing else depends on it.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Option<Instant>);

/// Starts a stopwatch, if there is an observer or the event that reports its time is enabled.
pub(crate) fn stopwatch(server: &Server) -> Option<Stopwatch> {
    (is_logged(server) || server.observer().is_some()).then(Stopwatch::start)
}

/// Whether the event that reports the end of a handler is enabled.
fn is_logged(server: &Server) -> bool {
    match server.settings().request_log_level {
        Level::INFO => tracing::enabled!(target: TARGET, Level::INFO),
        Level::TRACE => tracing::enabled!(target: TARGET, Level::TRACE),
        _ => tracing::enabled!(target: TARGET, Level::DEBUG),
    }
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        // Reading the clock panics on wasm32-unknown-unknown, where the standard library has none.
        #[expect(clippy::disallowed_methods, reason = "the driver's time stands still while a handler computes")]
        Self(cfg!(not(all(target_family = "wasm", target_os = "unknown"))).then(Instant::now))
    }

    /// The time since the start, where there is a clock.
    pub(crate) fn elapsed(self) -> Option<Duration> {
        self.0.map(|start| start.elapsed())
    }
}

/// Traces that a handler was dropped because its request was cancelled.
pub(crate) fn cancelled(span: &Span, ctx: &RequestContext) {
    trace_handler_end(span, ctx, Outcome::Cancelled);
    record_cancelled(span);
    observed::ended(ctx, Outcome::Cancelled, None);
}

fn trace_handler_end(span: &Span, ctx: &RequestContext, outcome: Outcome) {
    // An observer needs the stopwatch as well.
    let Some(stopwatch) = ctx.stopwatch().filter(|_| is_logged(ctx.server())) else { return };
    let (method, outcome, duration) =
        (excerpt(ctx.method().as_str()), outcome.as_str(), stopwatch.elapsed().map(|elapsed| elapsed.as_secs_f64()));
    match ctx.server().settings().request_log_level {
        Level::INFO => tracing::info!(target: TARGET, parent: span, method, outcome, duration, "handler ended"),
        Level::TRACE => tracing::trace!(target: TARGET, parent: span, method, outcome, duration, "handler ended"),
        _ => tracing::debug!(target: TARGET, parent: span, method, outcome, duration, "handler ended"),
    }
}

/// Traces how a request ended, and records errors in its span.
pub(crate) fn end(span: &Span, ctx: &RequestContext, outcome: Outcome, served: &Result<Response, ErrorObject>) {
    trace_handler_end(span, ctx, outcome);
    observed::ended(ctx, outcome, Some(served));
    record_end(span, served);
}

/// Records the error of a request in its span.
pub(crate) fn record_end(span: &Span, served: &Result<Response, ErrorObject>) {
    match served {
        Ok(Response::ToolCall(result)) if result.is_error == Some(true) => {
            end_span(span, OperationOutcome::ToolError);
        }
        Ok(_) => {}
        Err(error) => record_error(span, error.code),
    }
}

/// Traces the events of the kernel that need no action.
#[expect(clippy::wildcard_enum_match_arm, reason = "the connection handles the others")]
pub(crate) fn trace_event(event: &Event) {
    match event {
        Event::PeerMisbehaved(what @ PeerMisbehaved::IdAsText(_)) => {
            tracing::warn!(target: TARGET, %what, "the client changed the type of an id, which is tolerated");
        }
        Event::PeerMisbehaved(what) => {
            tracing::debug!(target: TARGET, what = excerpt(&what.to_string()), "the client violated the protocol");
        }
        Event::Stripped { revision, members } => {
            tracing::trace!(target: TARGET, revision = revision.as_str(), ?members, "members were removed from a result for the client's revision");
        }
        Event::NotExpressible { what, .. } => {
            tracing::warn!(target: TARGET, ?what, "a result cannot be expressed in the client's revision");
        }
        Event::Dropped { count, .. } => {
            tracing::debug!(target: TARGET, count, "notifications were dropped because the client reads too slowly")
        }
        Event::Cancelled { reason, .. } => {
            tracing::debug!(target: TARGET, reason = reason.as_deref().map(excerpt), "the client cancelled a request");
        }
        _ => {}
    }
}
