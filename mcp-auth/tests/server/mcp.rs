//! An MCP server behind the layer, with clients of both eras.

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use mcp_auth::server::{BytesBody, Protected};
use mcp_server::extract::Extension;
use mcp_server::{AuthInfo, Principal, Server, tool_fn};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use serde_json::{Value, json};
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::issuer::{Key, claims, claims_with};
use crate::protected::{Answer, read, resource};

async fn whoami(auth: AuthInfo, user: Principal, Extension(parts): Extension<Parts>) -> String {
    assert_eq!(*auth.principal(), user);
    assert!(!parts.headers.contains_key("authorization"));
    format!("{} {:?}", auth.subject(), auth.scopes().collect::<Vec<_>>())
}

fn service(key: &Key, sessions: SessionMode) -> Protected<HttpService> {
    let server = Server::builder("members", "1.0").tool(tool_fn("whoami", whoami)).build().unwrap();
    let options = HttpOptions::default().allow_host("api.example.com").sessions(sessions);
    resource(key).layer().unwrap().layer(HttpService::with_options(server, options))
}

async fn send(service: &Protected<HttpService>, request: http::request::Builder, body: &Value) -> Answer {
    let request = request
        .header("host", "api.example.com")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(BytesBody::from(Bytes::from(body.to_string())))
        .unwrap();
    let (parts, body) = service.clone().call(request).await.unwrap().into_parts();
    Answer { status: parts.status, headers: parts.headers, body: read(body).await }
}

fn modern(method: &str, mut params: Value) -> (http::request::Builder, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = Request::post("/mcp").header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    (request, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

fn legacy(method: &str, params: &Value) -> (http::request::Builder, Value) {
    let request = Request::post("/mcp").header("mcp-protocol-version", "2025-11-25");
    (request, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

// covers: AU-4, AU-6, AU-7, AU-15
#[tokio::test]
async fn handlers_of_both_eras_get_what_the_token_says() {
    let key = Key::es256("a");
    let service = service(&key, SessionMode::Stateless);
    let bearer = format!("Bearer {}", key.sign(&claims()));
    let expired = format!("Bearer {}", key.sign(&claims_with(json!({ "exp": 1000 }))));
    let params = json!({ "name": "whoami", "arguments": {} });
    for call in [|params: &Value| modern("tools/call", params.clone()), |params: &Value| legacy("tools/call", params)] {
        let (request, body) = call(&params);
        assert_eq!(send(&service, request, &body).await.refusal(), (401, None));
        let (request, body) = call(&params);
        let refused = send(&service, request.header("authorization", &expired), &body).await;
        assert_eq!(refused.refusal(), (401, Some("invalid_token".to_owned())));
        let (request, body) = call(&params);
        let answer = send(&service, request.header("authorization", &bearer), &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains(r#"alice [\"books:read\", \"books:write\"]"#), "{answer:?}");
    }
}

/// A session belongs to the user who started it, whichever of their tokens they use.
// covers: AU-4
#[tokio::test]
async fn sessions_belong_to_the_user_of_the_token() {
    let key = Key::es256("a");
    let service = service(&key, SessionMode::Stateful);
    let bearer =
        |user: &str, number: u32| format!("Bearer {}", key.sign(&claims_with(json!({ "sub": user, "jti": number }))));
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let (request, body) = legacy("initialize", &initialize);
    let started = send(&service, request.header("authorization", bearer("alice", 1)), &body).await;
    assert_eq!(started.status, 200, "{started:?}");
    let session = started.headers["mcp-session-id"].clone();
    let call = |authorization: Option<String>| {
        let (request, body) = legacy("tools/call", &json!({ "name": "whoami", "arguments": {} }));
        let mut request = request.header("mcp-session-id", &session);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let service = service.clone();
        async move { send(&service, request, &body).await }
    };
    assert!(call(Some(bearer("alice", 2))).await.body.contains("alice"));
    assert_eq!(call(Some(bearer("eve", 3))).await.status, 403);
    assert_eq!(call(None).await.status, 401);
}
