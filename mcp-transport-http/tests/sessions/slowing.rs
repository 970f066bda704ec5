//! Clients that do not read what is said to them.

use std::time::Duration;

use mcp_server::{Change, NoArguments, RequestContext, tool};
use mcp_testkit::Notes;
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::{HttpService, ResponseStream};
use mcp_types::LoggingLevel;
use serde_json::json;

use crate::demo::server;
use crate::raw_http::LEGACY;
use crate::session_client::{Client, Events, NEWEST, Shop, kinds, metrics, settle, stateful};

/// How many messages there are to say.
const MANY: usize = 1_500;

/// More than a stream and the kernel hold for somebody who does not read, and less than there are to say.
const SOME: usize = 700;

/// A server with much to say, a little at a time.
fn talking(notes: &Notes) -> HttpService {
    let notes = notes.clone();
    let server = server(|builder| {
        builder
            .tool(tool("talk", move |ctx: RequestContext, _: NoArguments| {
                let notes = notes.clone();
                async move {
                    let text = "x".repeat(1 << 10);
                    for _ in 0..MANY {
                        ctx.log(LoggingLevel::Error, &text);
                        tokio::task::yield_now().await;
                    }
                    notes.add("said");
                    "said"
                }
            }))
            .tool(tool("tell", async |ctx: RequestContext, _: NoArguments| {
                ctx.connection().log(LoggingLevel::Error, "told");
                "told"
            }))
            .tool(tool("hello", async |_, _: NoArguments| "hello"))
            .tool(tool("close", async |ctx: RequestContext, _: NoArguments| {
                let text = "x".repeat(50 << 10);
                for _ in 0..4 {
                    ctx.log(LoggingLevel::Error, &text);
                }
                let Some(stream) = ctx.extension::<ResponseStream>() else { return "cannot" };
                stream.close(Duration::from_millis(70));
                std::future::pending().await
            }))
    });
    HttpService::with_options(server, stateful())
}

/// One reader that does not read stalls nobody else, not even in its session, and stays small.
// covers: RB-14, RB-33, RB-59
#[tokio::test]
async fn slow_readers_stall_nobody() {
    for version in [LEGACY[0], NEWEST] {
        let notes = Notes::default();
        let service = talking(&notes);
        let (client, other) = (Client::open(&service, version).await, Client::open(&service, version).await);
        let mut slow = Events::of(client.tool("talk").id("slow".into()).to(&service).await);
        assert_eq!(slow.message().await["method"], "notifications/message");
        let mut finished = 0;
        for _ in 0..2 * MANY {
            tokio::task::yield_now().await;
            assert_eq!(client.call("hello").await, "hello");
            finished += notes.take().len();
            if finished > 0 {
                break;
            }
        }
        assert_eq!(finished, 1, "its handler is not stalled either");
        assert_eq!(other.call("hello").await, "hello");
        let left = slow.messages().await;
        assert!(left.len() < SOME, "{} messages were kept", left.len());
        assert_eq!(tool_text(left.last().expect("a result")), "said");
        assert!(kinds(&left[..left.len() - 1]).iter().all(|kind| *kind == "notifications/message"));
    }
}

/// The stream of a session that is not read stays small, and goes on when it is.
// covers: RB-14, RB-59
#[tokio::test]
async fn streams_of_sessions_stay_small() {
    let service = talking(&Notes::default());
    let client = Client::open(&service, NEWEST).await;
    let mut stream = client.listen().await;
    for _ in 0..MANY {
        assert_eq!(client.call("tell").await, "told");
    }
    let (messages, is_over) = stream.there().await;
    assert!(!messages.is_empty() && messages.len() < SOME && !is_over, "{} messages were kept", messages.len());
    client.call("tell").await;
    assert_eq!(stream.there().await.0.len(), 1);
}

/// A reader that goes away without having read leaves nothing that stalls its request, or whoever comes back.
// covers: RB-59
#[tokio::test]
async fn slow_readers_may_go_away() {
    let notes = Notes::default();
    let service = talking(&notes);
    let client = Client::open(&service, NEWEST).await;
    let mut slow = Events::of(client.tool("talk").id("slow".into()).to(&service).await);
    let id = slow.next().await.and_then(|event| event.id).expect("an id");
    for _ in 0..500 {
        tokio::task::yield_now().await;
        client.call("hello").await;
    }
    drop(slow);
    while notes.take().is_empty() {
        settle().await;
    }
    settle().await;
    // More was said than is kept; what is left of it ends with the answer.
    let left = client.resume(&id).await.messages().await;
    assert!(left.len() < MANY && kinds(&left).last() == Some(&"result"), "{}", left.len());
    client.call("hello").await;
}

/// A stream that is closed is read to the end of what was said before, however much that is.
// covers: S4.97
#[tokio::test]
async fn a_close_comes_last() {
    let service = talking(&Notes::default());
    let client = Client::open(&service, NEWEST).await;
    let events = Events::of(client.tool("close").to(&service).await).rest().await;
    assert_eq!(events.iter().filter(|event| event.message.is_some()).count(), 4);
    assert_eq!(events.last().and_then(|event| event.retry), Some(70));
}

/// One answer that is never read is alone in that, for all sessions of the service.
// covers: RB-14, RB-59
#[tokio::test]
async fn floods_harm_nobody() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let mut floods = Vec::new();
    for id in 0..6 {
        floods.push(Events::of(client.tool("flood").id(id.into()).to(&service).await));
        assert_eq!(client.tool("hello").id("x".into()).json(&service, 200).await["id"], "x");
    }
    assert_eq!(Client::open(&service, "2025-06-18").await.call("hello").await, "hello");
    for flood in floods {
        let all = flood.messages().await;
        assert!(all.len() <= 1_500, "{} messages were kept", all.len());
        assert_eq!(tool_text(all.last().expect("a result")), "flooded");
    }
}

/// What happens while nobody listens is not kept; whoever listens then hears once of it, at most.
// covers: S4.32, RB-59
#[tokio::test]
async fn the_past_stays_small() {
    let shop = Shop::default();
    let server = shop.server();
    let service = HttpService::with_options(server.clone(), stateful());
    let client = Client::open(&service, NEWEST).await;
    let address = json!({ "uri": "file:///a" });
    assert!(client.request("resources/subscribe", address).json(&service, 200).await["result"].is_object());
    for _ in 0..2 * MANY {
        server.publish(&Change::Resource("file:///a".to_owned()));
    }
    let mut stream = client.listen().await;
    let (messages, is_over) = stream.there().await;
    assert!(messages.len() <= 1 && !is_over, "{} messages were kept", messages.len());
    server.publish(&Change::Resource("file:///a".to_owned()));
    assert_eq!(stream.there().await.0.len(), 1);
}

/// What is not read can be cancelled all the same.
// covers: S4.81, RB-59
#[tokio::test]
async fn slow_requests_can_be_cancelled() {
    let service = talking(&Notes::default());
    let client = Client::open(&service, NEWEST).await;
    let mut slow = Events::of(client.tool("talk").id("slow".into()).to(&service).await);
    slow.message().await;
    for _ in 0..500 {
        tokio::task::yield_now().await;
        client.call("hello").await;
    }
    client.notify("notifications/cancelled", json!({ "requestId": "slow" })).await;
    let left = slow.messages().await;
    assert!(left.len() < SOME && kinds(&left).iter().all(|kind| *kind != "result"), "it ends without a result");
    assert_eq!(metrics(&service).active, 0);
}
