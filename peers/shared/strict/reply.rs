//! What the strict servers respond.

use serde::Serialize;
use serde_json::value::RawValue;

/// A response.
#[derive(Serialize)]
pub(crate) struct Reply<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

impl<'a, R> Reply<'a, R> {
    pub(crate) fn new(id: &'a RawValue, result: R) -> Self {
        Self { jsonrpc: "2.0", id, result }
    }
}

#[derive(Serialize)]
pub(crate) struct CallResult<'a> {
    content: [Content<'a>; 1],
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}

impl<'a> CallResult<'a> {
    pub(crate) fn new(text: &'a str, is_modern: bool) -> Self {
        Self {
            content: [Content { kind: "text", text }],
            kind: is_modern.then_some("complete"),
            meta: is_modern.then_some(ResultMeta { info: INFO }),
        }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Info,
}

#[derive(Serialize)]
struct Info {
    name: &'static str,
    version: &'static str,
}

/// The result of `initialize`.
#[derive(Serialize)]
pub(crate) struct Handshake<'a> {
    #[serde(rename = "protocolVersion")]
    version: &'a str,
    capabilities: Capabilities,
    #[serde(rename = "serverInfo")]
    info: Info,
}

impl<'a> Handshake<'a> {
    pub(crate) fn new(version: &'a str) -> Self {
        Self { version, capabilities: CAPABILITIES, info: INFO }
    }
}

/// The result of `server/discover`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Discovery<'a> {
    supported_versions: [&'a str; 1],
    capabilities: Capabilities,
    ttl_ms: u64,
    cache_scope: &'static str,
    result_type: &'static str,
}

impl<'a> Discovery<'a> {
    pub(crate) fn new(version: &'a str) -> Self {
        Self {
            supported_versions: [version],
            capabilities: CAPABILITIES,
            ttl_ms: 0,
            cache_scope: "private",
            result_type: "complete",
        }
    }
}

#[derive(Serialize)]
struct Capabilities {
    tools: ToolsCapability,
}

#[derive(Serialize)]
struct ToolsCapability {
    #[serde(rename = "listChanged")]
    list_changed: bool,
}

/// The result of `tools/list`.
#[derive(Serialize)]
pub(crate) struct ToolList<'a> {
    pub(crate) tools: &'a RawValue,
}

const INFO: Info = Info { name: "strict", version: "1.0" };

const CAPABILITIES: Capabilities = Capabilities { tools: ToolsCapability { list_changed: true } };
