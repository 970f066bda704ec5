//! Tracing spans of messages and connections, with the attributes of the OpenTelemetry conventions for MCP.

use std::borrow::Cow;

use mcp_kernel::CallId;
use mcp_kernel::observe::{Network, OperationOutcome};
use mcp_types::meta::TraceContext;
use mcp_types::{Method, ObjectRef, RequestId, Revision, gate};
use serde::Deserialize;
use tracing::{Span, field};

use crate::state::Shared;

/// Maximum number of characters of a name in spans and events, because servers choose names.
const MAX_CHARS: usize = 128;

/// Truncates a name.
pub(crate) fn excerpt(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The parameters that identify what is called.
#[derive(Deserialize)]
struct CallTarget<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
}

/// Creates the span of a call, in the current one. Costs next to nothing if it is disabled.
pub(crate) fn span(method: &Method, params: Option<ObjectRef<'_>>, network: Network) -> Span {
    let span = sent_span(method, network);
    if span.is_disabled() {
        return span;
    }
    let name = match method.as_str() {
        "tools/call" => "gen_ai.tool.name",
        "prompts/get" => "gen_ai.prompt.name",
        "resources/read" => "mcp.resource.uri",
        _ => return span,
    };
    let target = params.and_then(|params| params.decode::<CallTarget<'_>>().ok());
    let target = target.and_then(|target| if name == "mcp.resource.uri" { target.uri } else { target.name });
    if let Some(target) = target.as_deref().map(excerpt) {
        span.record(name, target);
        span.record("otel.name", format!("{method} {target}").as_str());
    }
    span
}

/// Creates the span of a request or a notification to the server, in the current one, without its target.
pub(crate) fn sent_span(method: &Method, network: Network) -> Span {
    new_span("client", excerpt(method.as_str()), method, network)
}

/// Creates the span of a request or a notification of the server, as a child of the server's span if the application connects
/// them, and otherwise in that of the connection.
pub(crate) fn received_span(
    shared: &Shared,
    method: &Method,
    (id, revision): (Option<&RequestId>, Option<Revision>),
    trace: &TraceContext,
) -> Span {
    // The server chooses the method, but no name.
    let name = if gate::method(method).is_some() { method.as_str() } else { "_OTHER" };
    let span = shared.session_span().in_scope(|| new_span("server", name, method, shared.settings.network));
    if !span.is_disabled() {
        describe(&span, shared, id, revision);
        span.record("traceparent", trace.traceparent().map(excerpt));
        if let Some(set_parent) = &shared.settings.trace_parent {
            set_parent(&span, trace);
        }
    }
    span
}

fn new_span(kind: &'static str, name: &str, method: &Method, network: Network) -> Span {
    tracing::info_span!(
        target: "mcp",
        "mcp.request",
        otel.name = name,
        otel.kind = kind,
        mcp.method.name = excerpt(method.as_str()),
        mcp.protocol.version = field::Empty,
        mcp.session.id = field::Empty,
        jsonrpc.request.id = field::Empty,
        network.transport = network.transport_name(),
        network.protocol.name = network.protocol_name(),
        gen_ai.tool.name = field::Empty,
        gen_ai.prompt.name = field::Empty,
        mcp.resource.uri = field::Empty,
        traceparent = field::Empty,
        rpc.response.status_code = field::Empty,
        error.type = field::Empty,
    )
}

/// Creates the span of a connection, from the attempt to connect to its end.
pub(crate) fn session_span(shared: &Shared) -> Span {
    let network = shared.settings.network;
    let span = tracing::info_span!(
        target: "mcp",
        // Whatever is current now may end long before the session.
        parent: None,
        "mcp.session",
        otel.kind = "client",
        mcp.session.id = field::Empty,
        mcp.protocol.version = field::Empty,
        network.transport = network.transport_name(),
        network.protocol.name = network.protocol_name(),
        error.type = field::Empty,
    );
    if !span.is_disabled() {
        span.record("mcp.session.id", shared.token());
    }
    span
}

/// Records what is known of a call when it is sent: its id, its revision, and the name of the client that sent it.
pub(crate) fn sent(span: &Span, shared: &Shared, call: CallId, revision: Revision) {
    if !span.is_disabled() {
        let id = shared.read(|core| core.kernel.request_id(call).cloned());
        describe(span, shared, id.as_ref(), Some(revision));
    }
}

/// Records what is known of a message: its id, its revision, and the name of the client.
pub(crate) fn describe(span: &Span, shared: &Shared, id: Option<&RequestId>, revision: Option<Revision>) {
    if !span.is_disabled() {
        span.record("mcp.protocol.version", revision.map(Revision::as_str));
        span.record("jsonrpc.request.id", id.map(RequestId::to_string).as_deref().map(excerpt));
        span.record("mcp.session.id", shared.token());
    }
}

/// Returns the name of the tool or prompt that is called.
pub(crate) fn name_param(params: ObjectRef<'_>) -> Option<Cow<'_, str>> {
    params.decode::<CallTarget<'_>>().ok()?.name
}

/// Records how a request ended.
pub(crate) fn end(span: &Span, outcome: OperationOutcome) {
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

/// Returns the trace context of a message, which the application knows in its span.
pub(crate) fn trace_context(shared: &Shared, span: &Span) -> Option<TraceContext> {
    let trace = shared.settings.trace_context.as_ref()?;
    span.in_scope(|| trace())
}
