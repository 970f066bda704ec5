//! Statuses, codes and ids of answers.

use http::Method;
use mcp_server::types::Revision;
use mcp_server::types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use serde_json::{Value, json};

use crate::demo::{Demo, server};
use crate::raw_http::{MODERN, Post};

fn call() -> Post {
    Post::tool("hello", json!({}))
}

fn notification(method: &str) -> Post {
    Post::message(json!({ "jsonrpc": "2.0", "method": method })).header("mcp-protocol-version", MODERN)
}

/// A request that says everything about itself is answered.
// covers: H-1, H-14, H-34, S3.1, S3.4, S3.9, S3.15, S3.21, S3.F1, DU-10
#[tokio::test]
async fn a_modern_request_needs_nothing_before_it() {
    let service = Demo::default().service();
    let answer = call().id(json!("first")).json(&service, 200).await;
    assert_eq!((tool_text(&answer), &answer["id"]), ("hello", &json!("first")));
    assert_eq!(answer["result"]["resultType"], "complete");
}

/// Discovery is a request like others. It names the revisions that a request can be written in, which legacy ones
/// cannot although the server serves them.
// covers: S3.13, S3.14, S3.17, S3.18, S3.60, S3.67, DU-24
#[tokio::test]
async fn discovery_is_a_request() {
    let service = Demo::default().service();
    let answer = Post::modern("server/discover", json!({})).json(&service, 200).await;
    let result = &answer["result"];
    assert_eq!(result["supportedVersions"], json!([MODERN]), "{result}");
    assert!(result["capabilities"]["tools"].is_object(), "{result}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "demo");
}

/// The table of statuses, line by line.
// covers: H-3, H-11..H-13, H-30, H-32, H-42, H-44, H-45, H-52, S3.6..S3.8, S3.10, S3.11, S3.16, S3.19, S3.22, S3.26, S3.38, S3.F2, S3.F5, S3.F6, S3.F8, DU-15, DU-20, DU-21, E-6
#[tokio::test]
async fn every_situation_has_its_status() {
    let service = Demo::default().service();
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for (what, post, status, code) in [
        ("refused notification", notification("x").header("mcp-protocol-version", "v999"), 400, -32022),
        ("foreign origin", call().header("origin", "https://evil.example.com"), 403, -32600),
        ("no capabilities", call().meta(CLIENT_CAPABILITIES, Value::Null), 400, -32602),
        ("malformed capabilities", call().meta(CLIENT_CAPABILITIES, json!([])), 400, -32602),
        ("malformed version", call().meta(PROTOCOL_VERSION, json!(7)), 400, -32602),
        ("no envelope", call().meta(PROTOCOL_VERSION, Value::Null), 400, -32602),
        ("no version header", call().without("mcp-protocol-version"), 400, -32020),
        ("another version", call().header("mcp-protocol-version", "2025-11-25"), 400, -32020),
        ("two versions", call().more("mcp-protocol-version", MODERN), 400, -32020),
        ("bad characters", call().header("mcp-name", "hell\u{f6}"), 400, -32020),
        ("no method header", call().without("mcp-method"), 400, -32020),
        ("another method", call().header("mcp-method", "tools/list"), 400, -32020),
        ("no name header", call().without("mcp-name"), 400, -32020),
        ("another name", call().header("mcp-name", "other"), 400, -32020),
        ("bad Base64", call().header("mcp-name", "=?base64?aGVsbG8?="), 400, -32020),
        (
            "unsupported version",
            call().meta(PROTOCOL_VERSION, json!("v999")).header("mcp-protocol-version", "v999"),
            400,
            -32022,
        ),
        ("missing capability", Post::tool("ask", json!({})), 400, -32021),
        ("unknown method", Post::modern("no/such", json!({})), 404, -32601),
        ("not offered", Post::modern("prompts/list", json!({})), 404, -32601),
        ("GET", call().verb(Method::GET), 405, -32600),
        ("DELETE", call().verb(Method::DELETE), 405, -32600),
        ("no JSON", Post::text("{"), 400, -32700),
        ("nothing", Post::text(""), 400, -32700),
        ("no message", Post::text("7"), 400, -32600),
        ("array", Post::text("[]").header("mcp-protocol-version", MODERN), 400, -32600),
        ("response", Post::message(response.clone()).header("mcp-protocol-version", MODERN), 400, -32600),
        ("legacy response", Post::message(response).header("mcp-protocol-version", "2025-06-18"), 400, -32600),
        ("unknown tool", Post::tool("nobody", json!({})), 200, -32602),
        ("panic", Post::tool("fail", json!({})), 200, -32603),
        ("Accept", call().header("accept", "application/json"), 406, -32600),
        ("Content-Type", call().header("content-type", "text/plain"), 415, -32600),
    ] {
        let answer = post.json(&service, status).await;
        assert_eq!(error_code(&answer), code, "{what}: {answer}");
    }
    let reported =
        Post::tool("hello", json!({})).header("mcp-protocol-version", "v999").meta(PROTOCOL_VERSION, json!("v999"));
    let data = reported.json(&service, 400).await["error"]["data"].take();
    assert_eq!(data["requested"], "v999");
    assert_eq!(data["supported"], json!([MODERN]), "a modern client is told what it can use");
    let required = Post::tool("ask", json!({})).json(&service, 400).await["error"]["data"].take();
    assert!(required["requiredCapabilities"]["elicitation"].is_object(), "{required}");
}

/// What asks for nothing gets 202, and nothing else.
// covers: H-11, S3.F8, DU-22, B-33
#[tokio::test]
async fn notifications_are_accepted() {
    let service = Demo::default().service();
    for method in ["notifications/initialized", "notifications/cancelled", "no/such"] {
        let mut reply = notification(method).to(&service).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (202, None), "{method}");
        assert_eq!(reply.rest().await, "");
    }
}

/// What the revision removed does not exist, also where legacy clients have it.
// covers: H-33, DU-14, S3.54, S3.55, S3.58, S3.59
#[tokio::test]
async fn removed_methods_are_not_found() {
    let service = Demo::default().service();
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let answer = Post::modern(method, json!({ "level": "info" })).id(json!(method)).json(&service, 404).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32601, &json!(method)));
    }
}

/// What is wrong in several ways is refused for the first of them.
// covers: H-42, H-45, H-55, DU-13, DU-16, DU-18, DU-24, S3.7
#[tokio::test]
async fn checks_have_an_order() {
    let service = Demo::default().service();
    let v999 = || call().meta(PROTOCOL_VERSION, json!("v999"));
    let legacy = "2025-11-25";
    for (what, post, code) in [
        (
            "metadata before the version header",
            call().meta(CLIENT_CAPABILITIES, json!(1)).header("mcp-protocol-version", "x"),
            -32602,
        ),
        ("metadata before other headers", call().meta(CLIENT_CAPABILITIES, Value::Null).without("mcp-method"), -32602),
        ("a different header before the version", v999().without("mcp-method"), -32020),
        (
            "the version before missing headers",
            v999().header("mcp-protocol-version", "v999").without("mcp-method"),
            -32022,
        ),
        ("the version before its missing header", v999().without("mcp-protocol-version"), -32022),
        (
            "a legacy version in an envelope",
            call().meta(PROTOCOL_VERSION, json!(legacy)).header("mcp-protocol-version", legacy),
            -32022,
        ),
        ("headers before the method", Post::modern("no/such", json!({})).header("mcp-method", "x"), -32020),
        ("headers before the parameters", call().header("mcp-name", "x"), -32020),
        ("the handshake under a modern header", Post::legacy(Some(MODERN), "initialize", json!({})), -32020),
        ("JSON before headers", Post::text("{").header("mcp-protocol-version", "v999"), -32700),
        (
            "JSON before repeated headers",
            Post::text("{").more("mcp-protocol-version", "a").more("mcp-protocol-version", "b"),
            -32700,
        ),
        ("the shape before headers", Post::text(r#"{"jsonrpc":"1.0"}"#).header("mcp-protocol-version", "v999"), -32600),
    ] {
        let answer = post.json(&service, 400).await;
        assert_eq!(error_code(&answer), code, "{what}: {answer}");
    }
    let refused =
        call().meta(PROTOCOL_VERSION, json!(legacy)).header("mcp-protocol-version", legacy).json(&service, 400).await;
    assert_eq!(refused["error"]["data"]["supported"], json!([MODERN]));
    // Without a name there is nothing to repeat: then the parameters are wrong, which is no matter of headers.
    let nameless = Post::modern("tools/call", json!({})).json(&service, 200).await;
    assert_eq!(error_code(&nameless), -32602, "{nameless}");
}

/// An error repeats the id of what it is about, of either kind and size.
// covers: H-34, S3.F7
#[tokio::test]
async fn errors_repeat_the_id() {
    let full = HttpService::with_options(Demo::default().server(), HttpOptions::default().max_in_flight(0));
    let service = Demo::default().service();
    for id in [json!("one"), json!(""), json!("7"), json!(7), json!(-1), json!(0), json!(9_007_199_254_740_993_u64)] {
        for (post, status) in [
            (call().without("mcp-method"), 400),
            (call().meta(CLIENT_CAPABILITIES, Value::Null), 400),
            (call().meta(PROTOCOL_VERSION, json!("v999")).header("mcp-protocol-version", "v999"), 400),
            (call().meta(PROTOCOL_VERSION, Value::Null), 400),
            (Post::modern("no/such", json!({})), 404),
            (Post::tool("ask", json!({})), 400),
            (Post::tool("fail", json!({})), 200),
            (Post::legacy(Some("v999"), "tools/list", json!({})), 400),
            (Post::legacy(Some("2025-06-18"), "no/such", json!({})), 200),
        ] {
            let answer = post.id(id.clone()).json(&service, status).await;
            assert_eq!((&answer["id"], answer["error"].is_object()), (&id, true), "{answer}");
        }
        let answer = call().id(id.clone()).json(&full, 503).await;
        assert_eq!(answer["id"], id, "{answer}");
    }
}

/// Without a readable id there is none, which older revisions write as `null`.
// covers: H-12, H-34, DU-25
#[tokio::test]
async fn unreadable_requests_have_no_id() {
    let service = Demo::default().service();
    for (version, expected) in [
        (Some(MODERN), None),
        (Some("2025-11-25"), None),
        (Some("2025-06-18"), Some(Value::Null)),
        (Some("2025-03-26"), Some(Value::Null)),
        (None, Some(Value::Null)),
    ] {
        for text in
            ["{", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#]
        {
            let post = Post::text(text);
            let post = version.into_iter().fold(post, |post, version| post.header("mcp-protocol-version", version));
            let answer = post.json(&service, 400).await;
            assert_eq!(answer.get("id").cloned(), expected, "{version:?} {text}");
        }
        let post = Post::text(r#"{"jsonrpc":"2.0","id":5,"method":7}"#);
        let post = version.into_iter().fold(post, |post, version| post.header("mcp-protocol-version", version));
        assert_eq!(post.json(&service, 400).await["id"], 5, "what can be read is repeated");
    }
}

/// A server without legacy clients refuses them, and says what it speaks.
// covers: H-30, H-44, S3.54, DU-17, DU-19
#[tokio::test]
async fn legacy_clients_may_be_turned_away() {
    let demo = Demo::default();
    let modern = server(|builder| demo.tools(builder).revisions([Revision::LATEST]));
    let off = HttpService::with_options(demo.server(), HttpOptions::default().sessions(SessionMode::Off));
    for service in [HttpService::new(modern), off] {
        assert_eq!(tool_text(&call().json(&service, 200).await), "hello");
        for version in [None, Some("2025-11-25"), Some("2025-03-26")] {
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
            let answer = Post::legacy(version, "initialize", params).json(&service, 400).await;
            assert_eq!(answer["error"]["data"]["supported"], json!([MODERN]), "{version:?}: {answer}");
            let answer = Post::legacy_tool(version, "hello").json(&service, 400).await;
            assert!([-32602, -32020, -32022].contains(&error_code(&answer)), "{answer}");
        }
        let unnamed = notification("notifications/initialized").without("mcp-protocol-version");
        assert_eq!(error_code(&unnamed.json(&service, 400).await), -32020);
        assert_eq!(error_code(&Post::text("[]").json(&service, 400).await), -32600);
        call().verb(Method::GET).json(&service, 405).await;
    }
}

/// A server without modern revisions says which there are.
// covers: DU-10, S3.8
#[tokio::test]
async fn modern_clients_may_be_turned_away() {
    let demo = Demo::default();
    let legacy = server(|builder| demo.tools(builder).revisions([Revision::V2025_06_18, Revision::V2025_11_25]));
    let service = HttpService::new(legacy);
    let answer = call().json(&service, 400).await;
    assert_eq!((error_code(&answer), &answer["id"]), (-32022, &json!(1)));
    assert_eq!(answer["error"]["data"]["supported"], json!(["2025-11-25", "2025-06-18"]));
    let named = Post::legacy_tool(Some(MODERN), "hello").json(&service, 400).await;
    assert_eq!(error_code(&named), -32022);
    // Whoever names no revision gets the newest, as the one that is meant is not there.
    let unnamed = Post::legacy_tool(None, "revision").json(&service, 200).await;
    assert_eq!(tool_text(&unnamed), "2025-11-25");
}
