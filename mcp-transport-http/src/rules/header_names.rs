//! The names of the headers that the protocol defines or uses.

use http::HeaderName;

/// The header with the protocol version: `MCP-Protocol-Version`.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The header with the JSON-RPC method: `Mcp-Method`.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The header with the name of the tool or prompt, the URI of the resource, or the id of the task: `Mcp-Name`.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The prefix of headers that repeat tool arguments: `Mcp-Param-*`.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// The header with the id of a legacy session: `Mcp-Session-Id`.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header with the id of the last event that a client received: `Last-Event-ID`.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The header that tells nginx whether to buffer a response: `X-Accel-Buffering`.
pub const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Returns the name of a header that repeats the body, as the specification writes it.
pub(super) fn display(name: &HeaderName) -> &'static str {
    match name.as_str() {
        "mcp-protocol-version" => "MCP-Protocol-Version",
        "mcp-method" => "Mcp-Method",
        "mcp-name" => "Mcp-Name",
        _ => "Mcp-Param",
    }
}
