//! An MCP server behind the layer, with clients of both eras.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use mcp_auth::server::{BytesBody, Protected};
use mcp_server::extract::Extension;
use mcp_server::{AuthInfo, Principal, Server, tool_fn};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::issuer::{Key, claims, claims_with, now};
use crate::protected::{Answer, read, resource};

async fn whoami(auth: AuthInfo, user: Principal, Extension(parts): Extension<Parts>) -> String {
    assert_eq!(*auth.principal(), user);
    assert!(!parts.headers.contains_key("authorization"));
    format!("{} {:?}", auth.subject(), auth.scopes().collect::<Vec<_>>())
}

fn http_service(sessions: SessionMode) -> HttpService {
    async fn remove() -> &'static str {
        panic!("the handler must not be called")
    }
    let server = Server::builder("members", "1.0")
        .tool(tool_fn("whoami", whoami))
        .tool(tool_fn("write", async || "written").requires_scope("books:write"))
        .tool(tool_fn("remove", remove).requires_scope("books:remove").requires_scope("books:write"))
        .resource_subscriptions()
        .build()
        .expect("a server");
    let options = HttpOptions::default().allow_host("api.example.com").sessions(sessions);
    HttpService::with_options(server, options)
}

fn service(key: &Key, sessions: SessionMode) -> Protected<HttpService> {
    resource(key).layer().expect("a layer").layer(http_service(sessions))
}

async fn send(service: &Protected<HttpService>, request: http::request::Builder, body: &Value) -> Answer {
    let request = request
        .header("host", "api.example.com")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(BytesBody::from(Bytes::from(body.to_string())))
        .expect("a valid value");
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

// covers: AU-4, AU-6, AU-7, AU-15, MIS-2
#[tokio::test]
async fn mis_2_handlers_of_both_eras_get_what_the_token_says() {
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

/// The challenge comes before the handler is called, with all scopes of the operation, in the status of the response.
// covers: AU-8, AU-9, AU-12, AU-15
#[tokio::test]
async fn tools_with_scopes_are_challenged_in_both_eras() {
    let key = Key::es256("a");
    let bearer = |scope: &str| format!("Bearer {}", key.sign(&claims_with(json!({ "scope": scope }))));
    let stateless = service(&key, SessionMode::Stateless);
    let stateful = service(&key, SessionMode::Stateful);
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let (request, body) = legacy("initialize", &initialize);
    let started = send(&stateful, request.header("authorization", bearer("books:read")), &body).await;
    let session = started.headers["mcp-session-id"].clone();
    let in_session = |params: &Value| {
        let (request, body) = legacy("tools/call", params);
        (request.header("mcp-session-id", &session), body)
    };
    let params = |name: &str| json!({ "name": name, "arguments": {} });
    for (service, call) in [
        (&stateless, &(|params: &Value| modern("tools/call", params.clone())) as &dyn Fn(&Value) -> _),
        (&stateless, &|params: &Value| legacy("tools/call", params)),
        (&stateful, &in_session),
    ] {
        let (request, body) = call(&params("remove"));
        let answer = send(service, request.header("authorization", bearer("books:read")), &body).await;
        assert_eq!(answer.refusal(), (403, Some("insufficient_scope".to_owned())), "{answer:?}");
        let challenge = answer.challenge();
        assert_eq!(challenge.parameter("scope"), Some("books:remove books:write"));
        assert!(challenge.is_bearer() && challenge.resource_metadata().is_some());
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-32600)));
        let (request, body) = call(&params("write"));
        let answer = send(service, request.header("authorization", bearer("books:write")), &body).await;
        assert!(answer.status == 200 && answer.body.contains("written"), "{answer:?}");
    }
}

/// A client that asks for the scopes of the challenge can use the tool: it names those of every request, too.
// covers: AU-8, AU-9
#[tokio::test]
async fn challenges_name_the_scopes_of_the_whole_server() {
    let key = Key::es256("a");
    let layer = resource(&key).scopes_required(["mcp:use"]).layer().expect("a layer");
    let service = layer.layer(http_service(SessionMode::Stateless));
    let params = json!({ "name": "write", "arguments": {} });
    let call = |scope: &str| {
        let bearer = format!("Bearer {}", key.sign(&claims_with(json!({ "scope": scope }))));
        let (request, body) = modern("tools/call", params.clone());
        let service = service.clone();
        async move { send(&service, request.header("authorization", bearer), &body).await }
    };
    let refused = call("mcp:use").await;
    assert_eq!(refused.refusal(), (403, Some("insufficient_scope".to_owned())));
    let scopes = refused.challenge().parameter("scope").map(str::to_owned);
    assert_eq!(scopes.as_deref(), Some("books:write mcp:use"));
    assert_eq!(call(&scopes.unwrap_or_default()).await.status, 200);
    assert_eq!(call("books:write").await.challenge().parameter("scope"), Some("mcp:use"));
    let (request, body) = modern("tools/call", params.clone());
    assert_eq!(send(&service, request, &body).await.challenge().parameter("scope"), Some("mcp:use"));
}

/// Opens a listen stream, and returns how long it stays open.
async fn listen(service: &Protected<HttpService>, token: &str) -> (String, Duration) {
    let filter = json!({ "notifications": { "resourceSubscriptions": ["books://1"] } });
    let (request, body) = modern("subscriptions/listen", filter);
    let start = Instant::now();
    let answer = send(service, request.header("authorization", format!("Bearer {token}")), &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    (answer.body, start.elapsed())
}

// covers: AU-4, AU-6
#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_token_unless_a_newer_one_came() {
    let key = Key::es256("a");
    let token = |seconds: u64, members: Value| {
        let mut members = members;
        members["exp"] = json!(now() + seconds);
        key.sign(&claims_with(members))
    };
    let is_about = |elapsed: Duration, seconds: u64| elapsed.as_secs().abs_diff(seconds) <= 5;
    let alone = service(&key, SessionMode::Stateless);
    let (body, elapsed) = listen(&alone, &token(60, json!({}))).await;
    // It stays open for another minute, as requests with the token may be accepted for so long.
    assert!(is_about(elapsed, 120), "{elapsed:?}");
    assert!(body.contains("acknowledged") && body.contains("\"result\""), "it ends with its result: {body}");
    // Whom a newer token has to belong to, and what it has to allow.
    for (newer, expected) in [
        (json!({}), 360),
        (json!({ "scope": "books:read books:write books:more" }), 360),
        (json!({ "scope": "books:read" }), 120),
        (json!({ "sub": "eve" }), 120),
        (json!({ "client_id": "another" }), 120),
    ] {
        let service = service(&key, SessionMode::Stateless);
        let renew = async {
            sleep(Duration::from_secs(30)).await;
            let (request, body) = modern("tools/list", json!({}));
            let bearer = format!("Bearer {}", token(300, newer.clone()));
            assert_eq!(send(&service, request.header("authorization", bearer), &body).await.status, 200);
        };
        let first = token(60, json!({}));
        let ((_, elapsed), ()) = tokio::join!(listen(&service, &first), renew);
        assert!(is_about(elapsed, expected), "{newer}: {elapsed:?}");
    }
}

/// A newer token that is refused does not extend a stream.
// covers: AU-4, AU-6
#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_token_if_the_newer_one_is_refused() {
    let key = Key::es256("a");
    let layer = resource(&key).scopes_required(["mcp:use"]).layer().expect("a layer");
    let token = |mut members: Value, seconds: u64| {
        members["exp"] = json!(now() + seconds);
        key.sign(&claims_with(members))
    };
    for (newer, scheme, status) in [
        // It is bound to a key, and there is no proof.
        (json!({ "scope": "mcp:use", "cnf": { "jkt": key.thumbprint() } }), "Bearer", 401),
        // The scheme is that of a bound token.
        (json!({ "scope": "mcp:use" }), "DPoP", 401),
    ] {
        let service = layer.layer(http_service(SessionMode::Stateless));
        let renew = async {
            sleep(Duration::from_secs(30)).await;
            let (request, body) = modern("tools/list", json!({}));
            let authorization = format!("{scheme} {}", token(newer.clone(), 600));
            let refused = send(&service, request.header("authorization", authorization), &body).await;
            assert_eq!(refused.status, status, "{newer}: {refused:?}");
        };
        let first = token(json!({ "scope": "mcp:use" }), 60);
        let ((_, elapsed), ()) = tokio::join!(listen(&service, &first), renew);
        assert!(elapsed < Duration::from_secs(300), "{newer}: {elapsed:?}");
    }
    // It counts once it is accepted.
    let service = layer.layer(http_service(SessionMode::Stateless));
    let renew = async {
        let newer = token(json!({ "scope": "mcp:use" }), 600);
        for (scheme, status) in [("DPoP", 401), ("Bearer", 200)] {
            let (request, body) = modern("tools/list", json!({}));
            let answer = send(&service, request.header("authorization", format!("{scheme} {newer}")), &body).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
    };
    let first = token(json!({ "scope": "mcp:use" }), 60);
    let ((_, elapsed), ()) = tokio::join!(listen(&service, &first), renew);
    assert!(elapsed > Duration::from_secs(500), "{elapsed:?}");
}

/// A legacy client keeps its stream as long as it sends requests with newer tokens.
// covers: AU-4, AU-6
#[tokio::test(start_paused = true)]
async fn the_stream_of_a_session_ends_with_its_token_unless_a_newer_one_came() {
    let key = Key::es256("a");
    let bearer = |seconds: u64| format!("Bearer {}", key.sign(&claims_with(json!({ "exp": now() + seconds }))));
    for (is_renewed, expected) in [(false, 120), (true, 360)] {
        let service = service(&key, SessionMode::Stateful);
        let initialize = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let (request, body) = legacy("initialize", &initialize);
        let started = send(&service, request.header("authorization", bearer(60)), &body).await;
        let session = started.headers["mcp-session-id"].clone();
        let get = Request::get("/mcp").header("mcp-session-id", &session).header("authorization", bearer(60));
        let listen = async {
            let start = Instant::now();
            let answer = send(&service, get, &Value::Null).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.body.ends_with(": the access token has expired\n\n"), "{answer:?}");
            start.elapsed()
        };
        let renew = async {
            sleep(Duration::from_secs(30)).await;
            let (request, body) = legacy("tools/list", &json!({}));
            let bearer = bearer(if is_renewed { 300 } else { 40 });
            let request = request.header("mcp-session-id", &session).header("authorization", bearer);
            assert_eq!(send(&service, request, &body).await.status, 200);
        };
        let (elapsed, ()) = tokio::join!(listen, renew);
        assert!(elapsed.as_secs().abs_diff(expected) <= 5, "{elapsed:?}");
    }
}

/// Sends one request over a connection of its own.
async fn send_over_socket(address: SocketAddr, head: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "{head}\r\nhost: api.example.com\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("a request");
    let mut response = String::new();
    socket.read_to_string(&mut response).await.expect("a response");
    response
}

// covers: AU-1, AU-2, AU-4
#[tokio::test]
async fn a_server_with_the_layer_serves_metadata_and_refuses_others() {
    let key = Key::es256("a");
    let listener = HttpServer::bind("127.0.0.1:0").await.unwrap().layer(resource(&key).layer().unwrap());
    let address = listener.address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let service = http_service(SessionMode::Stateless);
    let serving = tokio::spawn(listener.serve(service, async { drop(stopped.await) }));
    let metadata = send_over_socket(address, "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1", "").await;
    assert!(metadata.starts_with("HTTP/1.1 200 ") && metadata.contains("https://issuer.example.com"), "{metadata}");
    let (_, call) = legacy("tools/call", &json!({ "name": "whoami", "arguments": {} }));
    let head = "POST /mcp HTTP/1.1\r\nmcp-protocol-version: 2025-11-25";
    let refused = send_over_socket(address, head, &call.to_string()).await;
    assert!(refused.starts_with("HTTP/1.1 401 ") && refused.contains("www-authenticate: Bearer "), "{refused}");
    let head = format!("{head}\r\nauthorization: Bearer {}", key.sign(&claims()));
    let served = send_over_socket(address, &head, &call.to_string()).await;
    assert!(served.starts_with("HTTP/1.1 200 ") && served.contains("alice"), "{served}");
    let elsewhere = send_over_socket(address, &head.replace("/mcp", "/other"), "{}").await;
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
    drop(stop);
    assert_eq!(serving.await.unwrap().aborted, 0);
}
