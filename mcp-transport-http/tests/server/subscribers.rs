//! How long streams for changes last, how many there may be, and what happens to those who do not read.

use std::time::Duration;

use mcp_server::types::meta::key::SUBSCRIPTION_ID;
use mcp_server::{Change, NoArguments, Principal, Server, text_resource, tool};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::{HttpOptions, HttpService, ValidUntil};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::demo::server;
use crate::raw_http::{Post, Reply};

fn changing() -> Server {
    server(|builder| {
        builder
            .tool(tool("hello", async |_, _: NoArguments| "hello"))
            .resource(text_resource("a:b", "b", "b"))
            .resource_subscriptions()
    })
}

fn listen() -> Post {
    Post::listen(json!({ "toolsListChanged": true }))
}

async fn opened(service: &HttpService, post: Post) -> Reply {
    let mut reply = post.to(service).await;
    assert_eq!(reply.event().await["method"], "notifications/subscriptions/acknowledged");
    reply
}

async fn refused(service: &HttpService, post: Post, status: u16) {
    let reply = post.to(service).await;
    assert_eq!(reply.header("retry-after"), Some("3"), "{}", reply.status);
    let answer = reply.json(status).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
}

/// As many as there may be, in total and of one principal; requests are counted apart from them.
// covers: L-18, RB-15, RB-52, RB-63
#[tokio::test]
async fn there_is_room_for_some() {
    let options = HttpOptions::default().max_listen_streams(3).max_listen_streams_per_principal(2).max_in_flight(1);
    let service = HttpService::with_options(changing(), options.retry_after(Duration::from_secs(3)));
    let (ann, bob) = (Principal::new(None, "ann"), Principal::new(None, "bob"));
    let one = opened(&service, listen().extension(ann.clone())).await;
    let two = opened(&service, listen().extension(ann.clone())).await;
    refused(&service, listen().extension(ann.clone()), 429).await;
    let three = opened(&service, listen().extension(bob.clone())).await;
    refused(&service, listen().extension(bob), 503).await;
    refused(&service, listen(), 503).await;
    assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
    drop(two);
    let two = opened(&service, listen().extension(ann)).await;
    drop((one, two, three));
    opened(&service, listen()).await;
}

/// The end of the service ends streams with their result.
// covers: L-7, L-11, S3.45, S3.46, S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn the_end_comes_with_a_result() {
    let service = HttpService::new(changing());
    let mut reply = opened(&service, listen().id(json!("s"))).await;
    let waiting = tokio::spawn(async move { reply.events().await });
    tokio::task::yield_now().await;
    let drained = service.drain(Duration::from_secs(30)).await;
    assert_eq!((drained.finished, drained.aborted), (1, 0));
    let events = waiting.await.expect("an end");
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!("s")), "{events:?}");
    assert_eq!(events[0]["result"]["resultType"], "complete");
    assert_eq!(events[0]["result"]["_meta"][SUBSCRIPTION_ID], "s");
}

/// What was allowed for a time ends with its result when the time is over, and not before.
// covers: L-11, S3.68, RB-63
#[tokio::test(start_paused = true)]
async fn permission_may_end() {
    let server = changing();
    let service = HttpService::new(server.clone());
    let until = ValidUntil((Instant::now() + Duration::from_secs(40)).into_std());
    let mut reply = opened(&service, listen().extension(until)).await;
    let begin = Instant::now();
    server.publish(&Change::Tools);
    assert_eq!(reply.event().await["method"], "notifications/tools/list_changed");
    let events = reply.events().await;
    assert_eq!(begin.elapsed().as_secs(), 40);
    assert_eq!(events[..2], [Value::Null, Value::Null]);
    assert_eq!(events[2]["result"]["_meta"][SUBSCRIPTION_ID], 1);
    // Whoever comes too late is told so in the same way.
    let mut reply = opened(&service, listen().extension(until)).await;
    assert_eq!(reply.events().await.len(), 1);
    // Requests have an end of their own.
    assert_eq!(tool_text(&Post::tool("hello", json!({})).extension(until).json(&service, 200).await), "hello");
}

/// Who does not read costs little and keeps nobody waiting, and hears of everything in the end.
// covers: RB-14, RB-33, RB-40, RB-59
#[tokio::test]
async fn slow_readers_stay_small() {
    let server = changing();
    let service = HttpService::new(server.clone());
    let addresses: Vec<String> = (0..200).map(|number| format!("a:{number}")).collect();
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": addresses });
    let mut slow = opened(&service, Post::listen(filter)).await;
    let mut quick = opened(&service, listen()).await;
    for round in 0..1000 {
        server.publish(&Change::Tools);
        server.publish(&Change::Resource(addresses[round % addresses.len()].clone()));
        assert_eq!(quick.event().await["method"], "notifications/tools/list_changed");
    }
    assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
    let mut updated = Vec::new();
    let mut lists = 0;
    while let std::task::Poll::Ready(Some(frame)) = slow.poll_frame().await {
        for event in frame.split_terminator("\n\n") {
            let message: Value = serde_json::from_str(event.strip_prefix("data: ").expect("an event")).expect("JSON");
            match message["params"]["uri"].as_str() {
                Some(uri) => updated.push(uri.to_owned()),
                None => lists += 1,
            }
        }
    }
    assert_eq!(lists, 1, "changes of the same thing are one");
    updated.sort_unstable();
    updated.dedup();
    assert_eq!(updated.len(), addresses.len(), "nothing is lost");
}

/// What one stream may ask for is bounded.
// covers: RB-59, RB-62
#[tokio::test]
async fn one_stream_may_ask_for_so_much() {
    let service = HttpService::new(changing());
    let addresses: Vec<String> = (0..100_000).map(|number| format!("a:{number}")).collect();
    let reply = Post::listen(json!({ "resourceSubscriptions": addresses })).to(&service).await;
    let answer = reply.json(400).await;
    assert_eq!(
        answer["error"]["message"],
        "`resourceSubscriptions`: more than 256 URIs (`max_uris_per_listen_stream`)"
    );
}

/// A stream that is refused for what it asks takes no room.
// covers: L-18
#[tokio::test]
async fn what_is_refused_takes_no_room() {
    let service = HttpService::with_options(changing(), HttpOptions::default().max_listen_streams(1));
    for _ in 0..3 {
        Post::modern("subscriptions/listen", json!({ "notifications": 7 })).json(&service, 400).await;
    }
    opened(&service, listen()).await;
}

/// A principal's token that is renewed is the same principal.
// covers: RB-63
#[tokio::test(start_paused = true)]
async fn a_new_token_is_the_same_principal() {
    let options = HttpOptions::default().max_listen_streams_per_principal(1);
    let service = HttpService::with_options(changing(), options);
    let until = |seconds| ValidUntil((Instant::now() + Duration::from_secs(seconds)).into_std());
    let ann = || Principal::new(Some("https://issuer.example.com"), "ann");
    let mut first = opened(&service, listen().extension(ann()).extension(until(5))).await;
    listen().extension(ann()).extension(until(60)).json(&service, 429).await;
    advance(Duration::from_secs(6)).await;
    assert_eq!(first.events().await.len(), 1);
    opened(&service, listen().extension(ann()).extension(until(60))).await;
}

/// Subscriptions need no sessions: modern clients have them, and legacy ones without a session are not offered any.
// covers: MIS-9
#[tokio::test]
async fn mis_9_subscriptions_need_no_sessions() {
    let server = changing();
    let service = HttpService::new(server.clone());
    let filter = json!({ "resourceSubscriptions": ["a:b"] });
    let mut reply = opened(&service, Post::listen(filter)).await;
    server.publish(&Change::Resource("a:b".to_owned()));
    assert_eq!(reply.event().await["method"], "notifications/resources/updated");
    let client = json!({ "name": "old", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let answer = Post::legacy(None, "initialize", hello).json(&service, 200).await;
    let resources = &answer["result"]["capabilities"]["resources"];
    assert!(resources.is_object() && resources.get("subscribe").is_none(), "{answer}");
    let subscribe = Post::legacy(Some("2025-06-18"), "resources/subscribe", json!({ "uri": "a:b" }));
    let answer = subscribe.json(&service, 200).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}
