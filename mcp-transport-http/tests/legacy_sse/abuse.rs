//! Those who do what they should not.

use http::Method;
use mcp_server::Principal;
use mcp_testkit::Gate;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::HttpOptions;
use serde_json::json;

use crate::client::{Client, both, call, get, send, sse};
use crate::demo::Demo;
use crate::raw_http::{Part, Post, RequestBody};

/// Whoever opened the stream is the only one who may write to it, and whoever is nobody is not them.
// covers: S4.114
#[tokio::test]
async fn the_user_is_checked_each_time() {
    let sse = sse(&Demo::default());
    let (ann, bob) = (Principal::new(Some("here"), "ann"), Principal::new(Some("there"), "ann"));
    let mut hers = Client::open_as(&sse, Some(&ann)).await;
    hers.shake_hands("2024-11-05").await;
    let nobodys = Client::open(&sse).await;
    for (endpoint, who) in [(&hers.endpoint, Some(&bob)), (&hers.endpoint, None), (&nobodys.endpoint, Some(&ann))] {
        // The body is not even read.
        let post = Post::text("").uri(endpoint).body(RequestBody::parts([Part::Wait(Gate::default())]));
        let post = who.into_iter().fold(post, |post, who| post.extension(who.clone()));
        assert_eq!(error_code(&send(post, &sse).await.json(403).await), -32600);
    }
    hers.works().await;
    hers.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&hers.message().await), "hello");
}

/// A session that is unknown, over, malformed or named twice is not there; one that is not named is a mistake.
// covers: S4.112, S4.113
#[tokio::test]
async fn unknown_sessions_are_not_found() {
    let sse = sse(&Demo::default());
    let client = Client::ready(&sse).await;
    let gone = Client::ready(&sse).await.endpoint;
    let id = client.endpoint.rsplit_once('=').expect("an id").1;
    for (uri, status) in [
        ("/message".to_owned(), 400),
        (format!("/message?session={id}"), 400),
        ("/message?sessionId=".to_owned(), 404),
        (format!("/message?sessionId={}", &id[1..]), 404),
        (format!("/message?sessionId={}", id.to_uppercase() + "A"), 404),
        (format!("/message?sessionId={}", "0".repeat(64)), 404),
        (format!("/message?sessionId={id}&sessionId={id}"), 404),
        (gone, 404),
    ] {
        let answer = send(Post::message(call("me", "hello")).uri(&uri), &sse).await.json(status).await;
        assert_eq!(error_code(&answer), -32600, "{uri}");
        assert!(!answer.to_string().contains(id), "nothing is repeated");
    }
    client.tell(call(1, "hello")).await;
    assert_eq!(sse.streams(), 1);
}

/// Both addresses have the checks that the other endpoint has.
// covers: B-106, H-2, H-4
#[tokio::test]
async fn the_same_checks_are_made() {
    let sse = sse(&Demo::default());
    let client = Client::ready(&sse).await;
    let post = || client.post(call(1, "hello"));
    for (post, status) in [
        (get().header("host", "evil.example.com"), 403),
        (get().header("origin", "https://evil.example.com"), 403),
        (get().header("accept", "application/json"), 406),
        (get().verb(Method::HEAD), 405),
        (get().verb(Method::DELETE), 405),
        (post().header("host", "evil.example.com"), 403),
        (post().header("origin", "https://evil.example.com"), 403),
        (post().header("content-type", "text/plain"), 415),
        (post().without("content-type"), 415),
        (post().header("content-encoding", "gzip"), 415),
        (Post::text("{").uri(&client.endpoint), 400),
        (Post::text("[]").uri(&client.endpoint), 400),
        (Post::text("").uri(&client.endpoint), 400),
    ] {
        send(post, &sse).await.json(status).await;
    }
    // RFC 9110: whoever does not say what it takes, takes all.
    assert_eq!(send(get().without("accept"), &sse).await.status, 200);
    let reply = send(get().verb(Method::PUT), &sse).await;
    assert_eq!(reply.header("allow"), Some("GET, POST"));
    assert_eq!(sse.streams(), 1, "what was refused is not there");
}

/// Bodies have the limits that they have at the other endpoint.
// covers: RB-52
#[tokio::test(start_paused = true)]
async fn bodies_are_bounded() {
    let (_service, sse) = both(Demo::default().server(), HttpOptions::default().body_limit(1000).max_uploads(0));
    let mut client = Client::ready(&sse).await;
    let mut large = call(1, "hello");
    large["params"]["arguments"] = json!({ "x": "y".repeat(1000) });
    client.send(large).await.json(413).await;
    let endless = || RequestBody::parts([Part::Data("{".into()), Part::Wait(Gate::default())]);
    send(Post::text("").uri(&client.endpoint).body(endless().announcing(2000)), &sse).await.json(413).await;
    send(Post::text("").uri(&client.endpoint).body(endless()), &sse).await.json(503).await;
    client.works().await;
    client.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&client.message().await), "hello");
}
