//! The life of a session: how it begins, who finds it, and how it ends.

use http::Method as Verb;
use mcp_session::{EndReason, SessionError};
use mcp_testkit::envelope::{error_code, tool_text};
use serde_json::json;

use crate::demo::Demo;
use crate::raw_http::{LEGACY, Post};
use crate::session_client::{Client, NEWEST, Shop, initialize, metrics, settle, stateful};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};

/// Each revision gets a session, with a name that nobody can guess.
// covers: S4.1, S4.25, S4.34, S4.47, DU-11, B-15
#[tokio::test]
async fn a_session_begins_with_initialize() {
    let service = Shop::default().service();
    let mut names = Vec::new();
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        assert!(client.id.len() == 64 && client.id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", client.id);
        assert_eq!(client.call("revision").await, version);
        names.push(client.id);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), metrics(&service).live, metrics(&service).created), (4, 4, 4));
}

/// What is answered has no name of a session in it but once.
// covers: S4.25, S4.34
#[tokio::test]
async fn only_the_handshake_names_the_session() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    for post in [client.tool("hello"), client.get(), client.delete(), client.delete()] {
        assert_eq!(post.to(&service).await.header("mcp-session-id"), None);
    }
}

/// A handshake that is refused leaves nothing behind.
// covers: S4.34, RB-35, RB-53
#[tokio::test]
async fn what_is_refused_is_no_session() {
    let service = Shop::default().service();
    let missing = Post::legacy(None, "initialize", json!({ "capabilities": {} }));
    let wrong = Post::legacy(None, "initialize", json!({ "protocolVersion": 7, "capabilities": [], "clientInfo": 1 }));
    let text = Post::text(r#"{"jsonrpc":"2.0","id":1,"method":"initialize""#);
    let notification = Post::message(json!({ "jsonrpc": "2.0", "method": "initialize", "params": {} }));
    let modern = initialize(NEWEST, json!({})).header("mcp-protocol-version", "2026-07-28");
    let batch = Post::message(json!([{ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }]));
    let large = initialize(NEWEST, json!({ "experimental": { "x": { "y": "z".repeat(64 << 10) } } }));
    for post in [missing, wrong, text, notification, modern, batch, large] {
        let reply = post.to(&service).await;
        assert_eq!(reply.header("mcp-session-id"), None, "{}", reply.status);
    }
    let stranger = initialize(NEWEST, json!({})).header("origin", "https://evil.example.com");
    assert_eq!(stranger.to(&service).await.status, 403);
    assert_eq!((metrics(&service).live, metrics(&service).created), (0, 0));
}

/// A client that names a session has one; it begins another one without.
// covers: S4.34
#[tokio::test]
async fn a_session_begins_once() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let again = client.own(initialize(NEWEST, json!({}))).to(&service).await;
    assert_eq!(again.header("mcp-session-id"), None);
    assert!(again.json(400).await["error"].is_object());
    let unknown = initialize(NEWEST, json!({})).header("mcp-session-id", &"0".repeat(64)).to(&service).await;
    assert_eq!((unknown.status.as_u16(), unknown.header("mcp-session-id")), (404, None));
    assert_eq!(metrics(&service).created, 1);
    assert_eq!(client.call("hello").await, "hello");
}

/// Whoever names no session is told how to get one, or how to do without.
// covers: S4.25, S4.46, S4.105, DU-17, B-17
#[tokio::test]
async fn without_a_name_there_is_a_hint() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let notification = Post::message(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    for post in [client.tool("hello"), client.get(), client.delete(), notification] {
        let answer = post.without("mcp-session-id").json(&service, 400).await;
        let text = answer["error"]["message"].as_str().expect("a text").to_owned();
        assert!(text.contains("initialize") && text.contains("Stateless"), "{text}");
    }
    assert_eq!(client.tool("hello").without("mcp-session-id").id(json!(7)).json(&service, 400).await["id"], 7);
}

/// What nobody knows, or nobody could have been given, is not found.
// covers: S4.38, S4.43, S4.45, B-18
#[tokio::test]
async fn unknown_names_are_not_found() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let upper = client.id.to_uppercase();
    let twice = format!("{},{}", client.id, client.id);
    for name in ["", "x", "é", &"0".repeat(64), &"0".repeat(10_000), &upper, &twice, &client.id[1..], "../../etc"] {
        for post in [client.tool("hello"), client.get(), client.delete()] {
            if name == upper && !client.id.contains(|digit: char| digit.is_ascii_lowercase()) {
                continue;
            }
            assert_eq!(post.header("mcp-session-id", name).to(&service).await.status, 404, "{name}");
        }
    }
    let both = client.tool("hello").more("mcp-session-id", &client.id);
    assert_eq!(both.to(&service).await.status, 404, "two names are none");
    assert_eq!(client.call("hello").await, "hello");
}

/// DELETE ends a session, once.
// covers: S4.25, S4.42, RB-35, B-20
#[tokio::test]
async fn a_session_ends_with_delete() {
    let service = Shop::default().service();
    for version in LEGACY {
        let (client, other) = (Client::open(&service, version).await, Client::open(&service, version).await);
        let mut reply = client.delete().to(&service).await;
        assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (204, ""));
        for post in [client.delete(), client.tool("hello"), client.get()] {
            post.json(&service, 404).await;
        }
        assert_eq!(other.call("hello").await, "hello", "others stay");
        assert_eq!(other.delete().to(&service).await.status, 204);
    }
    let metrics = metrics(&service);
    assert_eq!((metrics.live, metrics.ended(EndReason::Deleted), metrics.refused(SessionError::Unknown)), (0, 8, 12));
}

/// The version may be missing, and otherwise has to be the one that was agreed on.
// covers: B-102, DU-17
#[tokio::test]
async fn the_version_was_agreed_on() {
    let service = Shop::default().service();
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        for named in LEGACY.into_iter().chain(["2023-01-01", "x"]) {
            let status = if named == version { 200 } else { 400 };
            for post in [client.tool("hello"), client.get()] {
                let reply = post.header("mcp-protocol-version", named).to(&service).await;
                assert_eq!(reply.status, status, "{named} in a session of {version}");
            }
        }
        assert_eq!(client.tool("hello").without("mcp-protocol-version").to(&service).await.status, 200);
        assert_eq!(client.get().without("mcp-protocol-version").to(&service).await.status, 200);
        assert_eq!(client.delete().header("mcp-protocol-version", "x").to(&service).await.status, 400);
        assert_eq!(client.delete().without("mcp-protocol-version").to(&service).await.status, 204);
    }
}

/// Modern requests are served alone, whatever session they name.
// covers: DU-10, DU-12, S3.5, S3.35, S4.9, AUT-10
#[tokio::test]
async fn modern_requests_have_no_session() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    assert_eq!(client.call("count").await, "1");
    for name in [client.id.as_str(), "x", ""] {
        let post = Post::tool("count", json!({})).header("mcp-session-id", name);
        let refused = tool_text(&post.json(&service, 200).await).to_owned();
        // The reason is for the developer of the server, in the log.
        assert_eq!(refused, "the server failed to process the request");
        let post = Post::modern("server/discover", json!({})).header("mcp-session-id", name);
        assert!(post.json(&service, 200).await["result"].is_object());
    }
    assert_eq!(client.call("count").await, "2");
    client.delete().to(&service).await;
    let post = Post::tool("revision", json!({})).header("mcp-session-id", &client.id);
    assert_eq!(tool_text(&post.json(&service, 200).await), "2026-07-28");
    let metrics = metrics(&service);
    assert_eq!((metrics.created, metrics.live, metrics.refused(SessionError::Unknown)), (1, 0, 0));
}

/// What is not there is not allowed, and what is there is named.
// covers: B-100, DU-19
#[tokio::test]
async fn other_verbs_are_not_allowed() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    for verb in [Verb::PUT, Verb::PATCH, Verb::HEAD, Verb::OPTIONS] {
        let reply = client.get().verb(verb).to(&service).await;
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST, GET, DELETE")));
    }
    for mode in [SessionMode::Stateless, SessionMode::Off] {
        let service = HttpService::with_options(Demo::default().server(), HttpOptions::default().sessions(mode));
        for post in [client.get(), client.delete()] {
            let reply = post.to(&service).await;
            assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST")));
        }
        assert_eq!(service.session_metrics(), None);
    }
}

/// A stream is for those who can read one; DELETE has nothing to read.
// covers: B-21, B-101
#[tokio::test]
async fn who_listens_accepts_a_stream() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    assert_eq!(client.get().header("accept", "application/json").to(&service).await.status, 406);
    assert_eq!(client.get().without("accept").to(&service).await.status, 200);
    assert_eq!(client.get().header("accept", "text/*").to(&service).await.status, 200);
    assert_eq!(client.tool("hello").header("accept", "application/json").to(&service).await.status, 406);
    assert_eq!(client.delete().header("accept", "application/json").to(&service).await.status, 204);
}

/// A session has a state that lasts as long as it, and that no other has.
// covers: S4.26..S4.28
#[tokio::test]
async fn each_session_has_its_state() {
    let service = Shop::default().service();
    let (one, two) = (Client::open(&service, NEWEST).await, Client::open(&service, "2025-03-26").await);
    let counts = [one.call("count").await, one.call("count").await, two.call("count").await, one.call("count").await];
    assert_eq!(counts, ["1", "2", "1", "3"]);
    one.delete().to(&service).await;
    assert_eq!(Client::open(&service, NEWEST).await.call("count").await, "1", "a new session begins anew");
    assert_eq!(two.call("count").await, "2");
}

/// Settings can be shown, and so can what there is.
// covers: S4.29, S4.44, RB-66
#[tokio::test]
async fn sessions_are_counted() {
    let service = HttpService::with_options(Shop::default().server(), stateful());
    let client = Client::open(&service, NEWEST).await;
    let metrics = || metrics(&service);
    assert_eq!((metrics().live, metrics().idle, metrics().active), (1, 1, 0));
    let stream = client.listen().await;
    assert_eq!((metrics().live, metrics().idle, metrics().active), (1, 0, 1));
    drop(stream);
    assert_eq!((metrics().live, metrics().idle, metrics().active), (1, 1, 0));
    assert!(format!("{service:?}").contains("Stateful"));
    assert_eq!(error_code(&Post::legacy(None, "ping", json!({})).json(&service, 400).await), -32600);
}

/// A session that nobody uses has no task; one looks after all of them.
// covers: S4.44, RB-16
#[tokio::test]
async fn idle_sessions_have_no_task() {
    let shop = Shop::default();
    shop.demo.gate.open();
    let service = shop.service();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for number in 0..500 {
        let client = Client::open(&service, LEGACY[number % LEGACY.len()]).await;
        client.call("count").await;
        drop(client.listen().await);
        drop(client.begin("ping", 7).await);
        client.notify("notifications/cancelled", json!({ "requestId": 7 })).await;
    }
    settle().await;
    assert_eq!((metrics(&service).idle, tasks()), (500, 1));
}
