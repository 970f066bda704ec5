//! The names of the headers and media types that the protocol defines or uses.

use http::HeaderName;

/// The header with the protocol version: `MCP-Protocol-Version`.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The header with the JSON-RPC method: `Mcp-Method`.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The header with the name of the tool or prompt, the URI of the resource, or the id of the task: `Mcp-Name`.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The prefix of headers that repeat tool arguments: `Mcp-Param-*`.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";

/// The header with the id of a legacy session: `Mcp-Session-Id`.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header with the id of the last event that a client received: `Last-Event-ID`.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The header with the proof that the sender has the key of its token: `DPoP`.
#[cfg(feature = "client")]
pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The header with the nonce that the next proof has to contain: `DPoP-Nonce`.
#[cfg(feature = "client")]
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// The media type of event streams.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
