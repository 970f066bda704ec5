//! What an operator sees of calls, named by the OpenTelemetry conventions for MCP.

use std::borrow::Cow;

use mcp_types::{Method, RawObject};
use serde::Deserialize;
use tracing::{Span, field};

use crate::error::Error;

/// How many characters of a name are shown: it may be one that a server made up.
const MOST_SHOWN: usize = 128;

/// Returns what is shown of a name.
pub(crate) fn excerpt(text: &str) -> &str {
    text.char_indices().nth(MOST_SHOWN).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The members that say what is called. What else there is, is passed over.
#[derive(Deserialize)]
struct Target<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
}

/// The span of a call; free where nobody looks.
pub(crate) fn span(method: &Method, params: Option<&RawObject>) -> Span {
    let span = tracing::info_span!(
        target: "mcp",
        "mcp.request",
        otel.name = method.as_str(),
        otel.kind = "client",
        mcp.method.name = method.as_str(),
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
    let target = params.and_then(|params| params.decode::<Target<'_>>().ok());
    let target = target.and_then(|target| if name == "mcp.resource.uri" { target.uri } else { target.name });
    if let Some(target) = target.as_deref().map(excerpt) {
        span.record(name, target);
        span.record("otel.name", format!("{method} {target}").as_str());
    }
    span
}

/// Notes how a call ended, where that is not well.
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
        Error::InvalidAnswer(_)
        | Error::TooLong { .. }
        | Error::Interrupted(_)
        | Error::Closed(_)
        | Error::Misuse(_)
        | Error::InvalidParams(_)
        | Error::Unanswered { .. }
        | Error::Rounds(_)
        | Error::ToolFailed(_)
        | Error::EndlessList
        | Error::ListTooLong(_) => {
            span.record("error.type", "_OTHER");
        }
    }
}
