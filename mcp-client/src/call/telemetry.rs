//! Tracing spans of calls, with the attributes of the OpenTelemetry conventions for MCP.

use std::borrow::Cow;

use mcp_kernel::CallId;
use mcp_kernel::observe::Network;
use mcp_types::{Method, ObjectRef, Revision};
use serde::Deserialize;
use tracing::{Span, field};

use crate::error::Error;
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

/// Creates the span of a call. Costs next to nothing if it is disabled.
pub(crate) fn span(method: &Method, params: Option<ObjectRef<'_>>, network: Network) -> Span {
    let span = tracing::info_span!(
        target: "mcp",
        "mcp.request",
        otel.name = excerpt(method.as_str()),
        otel.kind = "client",
        mcp.method.name = excerpt(method.as_str()),
        mcp.protocol.version = field::Empty,
        mcp.session.id = field::Empty,
        jsonrpc.request.id = field::Empty,
        network.transport = network.transport_name(),
        network.protocol.name = network.protocol_name(),
        gen_ai.tool.name = field::Empty,
        gen_ai.prompt.name = field::Empty,
        mcp.resource.uri = field::Empty,
        rpc.response.status_code = field::Empty,
        error.type = field::Empty,
    );
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
        span.record("mcp.protocol.version", revision.as_str());
        if let Some(id) = shared.read(|core| core.kernel.request_id(call).cloned()) {
            span.record("jsonrpc.request.id", id.to_string().as_str());
        }
        span.record("mcp.session.id", shared.token());
    }
}

/// Returns the name of the tool or prompt that is called.
pub(crate) fn name_param(params: ObjectRef<'_>) -> Option<String> {
    params.decode::<CallTarget<'_>>().ok()?.name.map(Cow::into_owned)
}

/// Records the error of a call.
pub(crate) fn end(span: &Span, error: &Error) {
    match error {
        Error::Rejected(error) => {
            let code = error.code.to_string();
            span.record("rpc.response.status_code", code.as_str());
            span.record("error.type", code.as_str());
        }
        Error::Status { status, .. } => {
            span.record("error.type", status.to_string().as_str());
        }
        Error::TimedOut => {
            span.record("error.type", "timeout");
        }
        Error::Cancelled => {
            span.record("error.type", "cancelled");
        }
        Error::ToolFailed(_) => {
            span.record("error.type", "tool_error");
        }
        Error::InvalidResponse(_)
        | Error::ResponseTooLong { .. }
        | Error::Interrupted(_)
        | Error::Authorization(_)
        | Error::InvalidCertificate(_)
        | Error::Closed(_)
        | Error::Command(_)
        | Error::InvalidCapabilities(_)
        | Error::InvalidParams(_)
        | Error::InputRequestFailed { .. }
        | Error::Retry(_)
        | Error::EndlessList
        | Error::ListTooLong(_) => {
            span.record("error.type", "_OTHER");
        }
    }
}
