//! JSON-RPC messages of both eras as JSON values, for tests that send and receive raw messages.
//!
//! ```
//! use mcp_testkit::envelope;
//! use serde_json::json;
//!
//! let request = envelope::modern_request(1, "tools/list", json!({}));
//! assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
//! let handshake = envelope::initialize(1, "2025-11-25", json!({ "sampling": {} }));
//! assert_eq!(handshake["method"], "initialize");
//! ```

use mcp_types::base64;
use mcp_types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use mcp_types::{Method, Revision};
use serde_json::{Value, json};

/// Creates a request without metadata, as legacy clients and servers send it.
#[must_use]
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// Creates a request of a modern client that declares no capabilities. Keeps the entries of `_meta` in `params`.
#[must_use]
pub fn modern_request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    request(id, method, with_modern_meta(params, json!({})))
}

/// Adds the `_meta` of a modern request with these client capabilities to `params`. Keeps the entries of `_meta` that
/// `params` has already.
#[must_use]
pub fn with_modern_meta(mut params: Value, capabilities: Value) -> Value {
    let mut meta = json!({ PROTOCOL_VERSION: Revision::LATEST.as_str(), CLIENT_CAPABILITIES: capabilities });
    if let (Some(own), Some(all)) = (params.get("_meta").and_then(Value::as_object), meta.as_object_mut()) {
        all.extend(own.clone());
    }
    params["_meta"] = meta;
    params
}

/// Returns the HTTP headers with which a client posts a message: `Host` (`localhost`), `Content-Type` and `Accept`; for a
/// modern request also `MCP-Protocol-Version`, `Mcp-Method` and, if the request has a name, `Mcp-Name`.
///
/// A modern request is one with a protocol version in its `_meta`. There are no `Mcp-Param-*` headers, which depend on the
/// schema of the tool.
///
/// # Examples
///
/// ```
/// use mcp_testkit::envelope;
/// use serde_json::json;
///
/// let call = envelope::modern_request(1, "tools/call", json!({ "name": "count_words" }));
/// assert!(envelope::http_headers(&call).contains(&("Mcp-Name", "count_words".to_owned())));
/// ```
#[must_use]
pub fn http_headers(message: &Value) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Accept", "application/json, text/event-stream".to_owned()),
    ];
    let (method, params) = (&message["method"], &message["params"]);
    if let (Some(method), Some(version)) = (method.as_str(), params["_meta"][PROTOCOL_VERSION].as_str()) {
        headers.extend([("MCP-Protocol-Version", version.to_owned()), ("Mcp-Method", method.to_owned())]);
        let member = Method::from(method).name_member();
        let name = member.and_then(|member| params[member].as_str());
        headers.extend(name.map(|name| ("Mcp-Name", header_value(name))));
    }
    headers
}

/// Encodes text for a header: as Base64, if a header cannot hold it as it is.
fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim_ascii() == text;
    if is_plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", base64::encode(text.as_bytes()))
    }
}

/// Creates a notification.
#[must_use]
pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Creates the response to a request, with its result.
#[must_use]
pub fn response(id: impl Into<Value>, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

/// Creates the `initialize` request of a legacy client.
#[must_use]
pub fn initialize(id: impl Into<Value>, version: &str, capabilities: Value) -> Value {
    let client = json!({ "name": "test", "version": "1.0" });
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
    request(id, "initialize", params)
}

/// Creates the notification with which a legacy client completes the handshake.
#[must_use]
pub fn initialized() -> Value {
    notification("notifications/initialized", json!({}))
}

/// Creates the notification that cancels the request with this id.
#[must_use]
pub fn cancelled(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({ "requestId": id.into() }))
}

/// Creates the result of `initialize`.
#[must_use]
pub fn initialize_result(version: &str, capabilities: Value) -> Value {
    let server = json!({ "name": "test", "version": "1.0" });
    json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": server })
}

/// Creates the result of `server/discover`, which may not be cached.
#[must_use]
pub fn discover_result(capabilities: Value) -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": [Revision::LATEST.as_str()], "capabilities": capabilities,
    })
}

/// Creates a tool result with a text, for clients of either era.
#[must_use]
pub fn tool_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// Returns the text in the response to `tools/call`.
///
/// # Panics
///
/// Panics if the response has no text.
#[must_use]
#[track_caller]
pub fn tool_text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("there is no text: {response}"))
}

/// Returns the code of an error response.
///
/// # Panics
///
/// Panics if the response has no error.
#[must_use]
#[track_caller]
pub fn error_code(response: &Value) -> i64 {
    response["error"]["code"].as_i64().unwrap_or_else(|| panic!("there is no error: {response}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_headers_of_their_era() {
        let names = |message: &Value| http_headers(message).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let common = ["Host", "Content-Type", "Accept"];
        assert_eq!(names(&initialize(1, "2025-11-25", json!({}))), common);
        assert_eq!(names(&response(1, json!({}))), common);
        let list = modern_request(1, "tools/list", json!({ "name": "no name of a list" }));
        assert_eq!(
            http_headers(&list)[3..],
            [("MCP-Protocol-Version", "2026-07-28".to_owned()), ("Mcp-Method", "tools/list".to_owned())]
        );
    }

    #[test]
    fn names_are_those_of_the_method() {
        for (method, params, expected) in [
            ("tools/call", json!({ "name": "add" }), "add"),
            ("prompts/get", json!({ "name": "grüß" }), "=?base64?Z3LDvMOf?="),
            ("prompts/get", json!({ "name": "=?base64?YQ==?=" }), "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("resources/read", json!({ "uri": "notes://1" }), "notes://1"),
        ] {
            let headers = http_headers(&modern_request(1, method, params));
            assert_eq!(headers.last(), Some(&("Mcp-Name", expected.to_owned())));
        }
    }
}
