//! Who may ask, and what a request has to look like before anybody reads what it says.

use std::time::Duration;

use bytes::Bytes;
use mcp_testkit::Gate;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;
use tokio::time::advance;

use crate::demo::Demo;
use crate::raw_http::{Part, Post, RequestBody};

fn call() -> Post {
    Post::tool("hello", json!({}))
}

fn with(options: HttpOptions) -> HttpService {
    HttpService::with_options(Demo::default().server(), options)
}

/// By default this machine is answered, and pages of others are not; the text says what to do.
// covers: H-2..H-4, S3.F9, RB-41, RB-70, B-32
#[tokio::test]
async fn strangers_are_refused_by_default() {
    let service = Demo::default().service();
    for (host, origin) in [
        ("localhost", None),
        ("127.0.0.1:8000", Some("http://localhost:3000")),
        ("[::1]:8000", Some("http://127.0.0.1")),
    ] {
        let post = call().header("host", host);
        let post = origin.into_iter().fold(post, |post, origin| post.header("origin", origin));
        post.json(&service, 200).await;
    }
    for (name, value, setting) in [
        ("host", "mcp.example.com", "HttpOptions::allow_host"),
        ("host", "localhost.example.com:8000", "HttpOptions::allow_host"),
        ("origin", "https://app.example.com", "HttpOptions::allow_origin"),
        ("origin", "null", "HttpOptions::allow_origin"),
    ] {
        for post in [call(), Post::legacy_tool(None, "hello"), call().verb(http::Method::GET), Post::text("{")] {
            let answer = post.header(name, value).json(&service, 403).await;
            let text = answer["error"]["message"].as_str().expect("a text");
            assert!(text.contains(setting) && text.contains(value), "{text}");
            assert_eq!(answer.get("id"), None);
        }
    }
    call().without("host").json(&service, 403).await;
    // HTTP/2 names the host in the address.
    call().without("host").uri("http://localhost:8000/mcp").json(&service, 200).await;
    call().without("host").uri("http://evil.example.com/mcp").json(&service, 403).await;
    call().uri("http://evil.example.com/mcp").json(&service, 403).await;
}

/// Others are let in by name, or all of them.
// covers: S3.F9, RB-70
#[tokio::test]
async fn others_are_let_in_by_name() {
    let service = with(HttpOptions::default().allow_host("mcp.example.com").allow_origin("https://app.example.com"));
    call().header("host", "mcp.example.com").header("origin", "https://app.example.com").json(&service, 200).await;
    call().header("host", "mcp.example.com").header("origin", "https://other.example.com").json(&service, 403).await;
    call().header("host", "other.example.com").json(&service, 403).await;
    let service = with(HttpOptions::default().allow_any_host().allow_any_origin());
    call().header("host", "whoever").header("origin", "https://wherever").json(&service, 200).await;
}

/// What is not JSON, or what no client could read, is refused.
// covers: H-8, H-14
#[tokio::test]
async fn kinds_of_content_are_checked() {
    let service = Demo::default().service();
    for (name, value, status) in [
        ("content-type", "text/plain", 415),
        ("content-type", "application/x-www-form-urlencoded", 415),
        ("content-encoding", "gzip", 415),
        ("accept", "application/json", 406),
        ("accept", "text/event-stream", 406),
        ("accept", "text/html", 406),
        ("accept", "*/*", 200),
        ("accept", "text/event-stream;q=0.1, application/*", 200),
        ("content-type", "application/json; charset=utf-8", 200),
    ] {
        call().header(name, value).json(&service, status).await;
    }
    call().without("accept").json(&service, 200).await;
    call().without("content-type").json(&service, 415).await;
}

/// A body has as many bytes as it may have, and not one more, whatever it says about itself.
// covers: RB-5, RB-34, RB-40, RB-62
#[tokio::test]
async fn bodies_have_a_limit() {
    let size = call().content().len();
    let (fits, small) =
        (with(HttpOptions::default().body_limit(size)), with(HttpOptions::default().body_limit(size - 1)));
    let pieces = || {
        let parts: Vec<Part> =
            call().content().bytes().map(|byte| Part::Data(Bytes::copy_from_slice(&[byte]))).collect();
        RequestBody::parts(parts)
    };
    for (what, post) in [("whole", call()), ("in pieces", call().body(pieces()))] {
        assert_eq!(tool_text(&post.json(&fits, 200).await), "hello", "{what}");
    }
    for (what, post) in [("whole", call()), ("in pieces", call().body(pieces()))] {
        let answer = post.json(&small, 413).await;
        let text = answer["error"]["message"].as_str().expect("a text");
        assert!(text.contains("HttpOptions::body_limit") && text.contains(&(size - 1).to_string()), "{what}: {text}");
    }
    // What says that it is too large is not read.
    let huge = RequestBody::whole(vec![b' '; (4 << 20) + 1]);
    call().body(huge).json(&Demo::default().service(), 413).await;
    let announced = RequestBody::parts([Part::Wait(Gate::default())]).announcing(1 << 40);
    let reply = call().body(announced).send(&Demo::default().service()).poll().await.expect("a refusal at once");
    reply.json(413).await;
}

/// Nesting has a limit, too.
// covers: RB-62
#[tokio::test]
async fn nesting_has_a_limit() {
    let service = Demo::default().service();
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}"#, r#"{"a":"#.repeat(100_000));
    assert!([-32700, -32600].contains(&error_code(&Post::text(deep).json(&service, 400).await)));
    let many = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; 50_000].join(","));
    assert_eq!(error_code(&Post::text(many).json(&service, 400).await), -32600);
}

/// A body may come in any pieces, with trailers, and with pauses.
// covers: H-1
#[tokio::test(start_paused = true)]
async fn bodies_come_in_pieces() {
    let service = Demo::default().service();
    let content = call().content();
    for size in [1, 2, 7, 64, content.len()] {
        let parts = content.as_bytes().chunks(size).map(|chunk| Part::Data(Bytes::copy_from_slice(chunk)));
        let post = call().body(RequestBody::parts(parts.chain([Part::Trailers])));
        assert_eq!(tool_text(&post.json(&service, 200).await), "hello", "{size}");
    }
    let gate = Gate::default();
    let (head, tail) = content.split_at(20);
    let parts = [Part::Data(head.to_owned().into()), Part::Wait(gate.clone()), Part::Data(tail.to_owned().into())];
    let mut pending = call().body(RequestBody::parts(parts)).send(&service);
    pending.starts().await;
    advance(Duration::from_secs(29)).await;
    pending.starts().await;
    gate.open();
    assert_eq!(tool_text(&pending.reply().await.json(200).await), "hello");
}

/// A body that does not come is not waited for.
// covers: RB-52, RB-62
#[tokio::test(start_paused = true)]
async fn late_bodies_are_refused() {
    let service = Demo::default().service();
    let begin = tokio::time::Instant::now();
    let never = RequestBody::parts([Part::Data("{".into()), Part::Wait(Gate::default())]);
    let answer = call().body(never).json(&service, 408).await;
    assert_eq!(begin.elapsed().as_secs(), 30);
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("HttpOptions::body_timeout")));
    let broken = RequestBody::parts([Part::Data("{".into()), Part::Broken]);
    call().body(broken).json(&service, 400).await;
}

/// Slow bodies keep each other out, but not those that come at once.
// covers: RB-52, RB-62
#[tokio::test(start_paused = true)]
async fn slow_bodies_keep_nobody_out() {
    let service = with(HttpOptions::default().max_uploads(2).retry_after(Duration::from_secs(9)));
    let slow = || {
        let mut pending = call().body(RequestBody::parts([Part::Wait(Gate::default())])).send(&service);
        // What comes within a moment needs no place.
        async move {
            pending.starts().await;
            advance(Duration::from_millis(1100)).await;
            let reply = pending.poll().await;
            (pending, reply)
        }
    };
    let (one, first) = slow().await;
    let (two, second) = slow().await;
    assert!(first.is_none() && second.is_none());
    let (_, third) = slow().await;
    let third = third.expect("a refusal");
    assert_eq!(third.header("retry-after"), Some("9"));
    third.json(503).await;
    assert_eq!(tool_text(&call().json(&service, 200).await), "hello");
    drop(one);
    let (three, room) = slow().await;
    assert!(room.is_none());
    // Those that are refused for being late make room, too.
    advance(Duration::from_secs(31)).await;
    assert_eq!(two.reply().await.status, 408);
    assert_eq!(three.reply().await.status, 408);
    assert!(slow().await.1.is_none());
}
