//! Any text in a header.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method as Verb, Request};
use mcp_server::types::RawObject;
use mcp_server::{RequestContext, Server, Tool, raw_tool};
use mcp_transport_http::HttpService;
use mcp_transport_http::header_encoding::{decode, encode};
use mcp_types::ErrorCode;
use mcp_types::jsonrpc::{Limits, Message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::runtime;
use super::server_http::{BodyOf, exchange};

/// Any text can be put into a header, where it is visible ASCII without space at its ends, and comes out as it was; to a
/// server, a header agrees with a body that says the same, and with no other.
///
/// The lines are a text, another text, and the value of a header as it is; the rest is the object of arguments.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn header_encoding(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (text, other) = (String::from_utf8_lossy(next()), String::from_utf8_lossy(next()));
    let (value, arguments) = (next(), String::from_utf8_lossy(next()));
    survives(&text);
    runtime().block_on(async {
        agrees(&text, &text).await;
        agrees(&text, &other).await;
        is_read(value, &text, &arguments).await;
    });
}

fn survives(text: &str) {
    let encoded = encode(text);
    assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{encoded:?} is not visible ASCII");
    assert_eq!(encoded.trim_ascii(), encoded, "space at the ends gets lost on the way");
    assert_eq!(decode(&encoded).as_deref(), Some(text), "decoding inverts encoding");
    if let Some(decoded) = decode(text) {
        assert_eq!(decode(&encode(&decoded)).as_ref(), Some(&decoded), "what was decoded can be encoded");
    }
}

/// A header that holds one text agrees with a body that holds another one if they are the same.
async fn agrees(said: &str, held: &str) {
    let value = HeaderValue::from_str(&encode(held)).expect("what was encoded fits into a header");
    let json = serde_json::to_string(said).expect("a text is JSON");
    let expected = if said == held { Judgement::Agrees } else { Judgement::Differs };
    let mut calls = vec![Call::new(&json, "{}").header("mcp-name", &value)];
    for (tool, arguments) in [("flat", format!(r#"{{"a":{json}}}"#)), ("nested", format!(r#"{{"b":{{"a":{json}}}}}"#))]
    {
        let call = Call::new(&format!("\"{tool}\""), &arguments);
        calls.push(call.header("mcp-name", &HeaderValue::from_static(tool)).header("mcp-param-region", &value));
    }
    for call in calls {
        assert_eq!(call.judge().await, expected, "{said:?} in the body, {held:?} in the header");
    }
}

/// Whatever a header holds, it is judged; it agrees with nothing but what it says.
async fn is_read(value: &[u8], name: &str, arguments: &str) {
    let Ok(value) = HeaderValue::from_bytes(value) else { return };
    let said = value.to_str().ok().map(str::trim_ascii);
    let decoded = said.and_then(decode);
    let json = serde_json::to_string(name).expect("a text is JSON");
    let encoded = HeaderValue::from_str(&encode(name)).expect("what was encoded fits into a header");
    for (header, agrees) in [
        ("mcp-method", said == Some("tools/call")),
        ("mcp-protocol-version", said == Some("2026-07-28")),
        ("mcp-name", decoded.as_deref() == Some(name)),
    ] {
        let call = Call::new(&json, "{}").header("mcp-name", &encoded).header(header, &value);
        assert_eq!(call.judge().await == Judgement::Agrees, agrees, "{header} is compared");
    }
    if serde_json::from_str::<&RawValue>(arguments).is_err() {
        return;
    }
    for tool in ["flat", "nested"] {
        let call = Call::new(&format!("\"{tool}\""), arguments);
        let call = call.header("mcp-name", &HeaderValue::from_static(tool)).header("mcp-param-region", &value);
        if call.judge().await == Judgement::Agrees {
            let is_object = arguments.trim_ascii().starts_with('{');
            assert!(decoded.is_some() || !is_object, "a header that cannot be read agrees with nothing");
        }
    }
}

/// What a server says of the headers of a call.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Agrees,
    Differs,
    /// There is another fault with a header.
    Faulty,
    /// The body is refused before its headers are looked at.
    Unread,
}

/// A call of a tool, with headers that agree unless they are replaced.
struct Call(Request<BodyOf>);

impl Call {
    /// Calls a tool, whose name is JSON as its arguments are.
    fn new(name: &str, arguments: &str) -> Self {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{meta}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let mut request = Request::new(BodyOf(Some(Bytes::from(body))));
        *request.method_mut() = Verb::POST;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert("mcp-protocol-version", HeaderValue::from_static("2026-07-28"));
        headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
        Self(request)
    }

    fn header(mut self, name: &'static str, value: &HeaderValue) -> Self {
        self.0.headers_mut().insert(name, value.clone());
        self
    }

    async fn judge(self) -> Judgement {
        let reply = exchange(&mut SERVICE.clone(), self.0).await;
        let Ok(Message::Response(response)) = Message::parse(&reply.body, &Limits::default()) else {
            panic!("{} with {}", reply.status, String::from_utf8_lossy(&reply.body));
        };
        match response.outcome {
            Ok(_) => Judgement::Agrees,
            // There is no such tool, or it does not take such arguments.
            Err(error) if error.code == ErrorCode::INVALID_PARAMS => Judgement::Agrees,
            Err(error) if error.code == ErrorCode::HEADER_MISMATCH => match error.message.contains("differs") {
                true => Judgement::Differs,
                false => Judgement::Faulty,
            },
            Err(_) => Judgement::Unread,
        }
    }
}

/// A server with a parameter that is repeated in a header, one in an object and one in an object within.
static SERVICE: LazyLock<HttpService> = LazyLock::new(|| {
    let marked = json!({ "a": { "type": "string", "x-mcp-header": "Region" } });
    let nested = json!({ "b": { "type": "object", "properties": marked } });
    let server = Server::builder("server", "1.0").tool(tool("flat", &marked)).tool(tool("nested", &nested));
    HttpService::new(server.build().expect("a server"))
});

fn tool(name: &str, properties: &Value) -> Tool {
    let schema: RawObject =
        serde_json::from_value(json!({ "type": "object", "properties": properties })).expect("a schema");
    raw_tool(name, schema, async |_: RequestContext, _: RawObject| "done")
}
