//! Clients that go away: their requests end at once, and nothing is left of them.

use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, tool};
use mcp_testkit::envelope::tool_text;
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;
use tokio::time::advance;

use crate::demo::{Demo, server};
use crate::raw_http::{Part, Post, RequestBody};

/// Works on one request at a time, so that whatever is left of one keeps the next out.
fn one_at_a_time(demo: &Demo) -> HttpService {
    HttpService::with_options(
        demo.server(),
        HttpOptions::default().max_in_flight(1).max_listen_streams(1).max_uploads(1),
    )
}

async fn assert_free(service: &HttpService) {
    let answer = Post::tool("hello", json!({})).json(service, 200).await;
    assert_eq!(tool_text(&answer), "hello");
}

/// An answer that nobody waits for is not worked on.
// covers: H-25, H-26, H-28, S3.32, S3.34, S4.77, S4.100, RB-37, RB-42, RB-61
#[tokio::test]
async fn who_does_not_wait_has_cancelled() {
    let demo = Demo::default();
    let service = one_at_a_time(&demo);
    let calls = [
        Post::tool("wait", json!({})),
        Post::legacy_tool(None, "wait"),
        Post::legacy_tool(Some("2025-11-25"), "wait"),
        Post::text(r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}]"#),
    ];
    for call in calls {
        let mut pending = call.send(&service);
        pending.starts().await;
        assert_eq!(demo.notes.take(), ["began"]);
        Post::tool("hello", json!({})).json(&service, 503).await;
        drop(pending);
        assert_eq!(demo.notes.take(), ["dropped"]);
        assert_free(&service).await;
    }
}

/// Whoever closes the stream has cancelled, however it came to be one.
// covers: H-25..H-27, K-5, S3.32, S3.34, S4.77, RB-61
#[tokio::test(start_paused = true)]
async fn who_closes_the_stream_has_cancelled() {
    let demo = Demo::default();
    let service = one_at_a_time(&demo);
    for call in [Post::tool("report_and_wait", json!({})).token(), Post::legacy_tool(None, "report_and_wait").token()] {
        let mut reply = call.to(&service).await;
        assert_eq!(reply.event().await["method"], "notifications/progress");
        assert!(reply.poll_frame().await.is_pending());
        assert_eq!(demo.notes.take(), ["began"]);
        drop(reply);
        assert_eq!(demo.notes.take(), ["dropped"]);
        assert_free(&service).await;
    }
    let mut pending = Post::tool("wait", json!({})).send(&service);
    pending.starts().await;
    advance(Duration::from_secs(16)).await;
    let reply = pending.poll().await.expect("a stream");
    drop(reply);
    assert_eq!(demo.notes.take(), ["began", "dropped"]);
    assert_free(&service).await;
}

/// Whoever closes the stream does not listen any more.
// covers: H-25, L-10, S3.50
#[tokio::test]
async fn who_closes_the_stream_does_not_listen() {
    let demo = Demo::default();
    let service = one_at_a_time(&demo);
    for _ in 0..3 {
        let mut reply = Post::listen(json!({ "toolsListChanged": true })).to(&service).await;
        reply.event().await;
        Post::listen(json!({})).json(&service, 503).await;
    }
}

/// A body that does not come to its end takes no room either.
// covers: H-28
#[tokio::test]
async fn who_goes_away_early_leaves_nothing() {
    let demo = Demo::default();
    let service = one_at_a_time(&demo);
    for _ in 0..3 {
        let parts = [Part::Data("{".into()), Part::Wait(Gate::default())];
        let mut pending = Post::text("").body(RequestBody::parts(parts)).send(&service);
        pending.starts().await;
        drop(pending);
    }
    let broken = Post::text("").body(RequestBody::parts([Part::Data("{".into()), Part::Broken]));
    broken.json(&service, 400).await;
    // One that was never looked at.
    drop(Post::tool("wait", json!({})).send(&service));
    assert_eq!(demo.notes.take(), [""; 0]);
    assert_free(&service).await;
}

/// A stream that has come to its end holds nothing, even if nobody lets go of it; one that is let go then is no
/// offence.
// covers: H-18, K-8
#[tokio::test]
async fn a_stream_at_its_end_holds_nothing() {
    let demo = Demo::default();
    let service = one_at_a_time(&demo);
    let mut reply = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    reply.event().await;
    demo.gate.open();
    assert_eq!(tool_text(&reply.event().await), "waited");
    assert_eq!(reply.block().await, None);
    assert_free(&service).await;
    drop(reply);
    assert_free(&service).await;
    assert_eq!(demo.notes.take(), ["began"], "the handler came to its end");
}

/// A notification cancels nothing here, as it cannot say whose request it means.
// covers: DU-22, K-2, K-6
#[tokio::test]
async fn notifications_cancel_nothing() {
    let demo = Demo::default();
    let service = demo.service();
    for version in ["2026-07-28", "2025-06-18"] {
        let mut pending = Post::tool("wait", json!({})).id(json!(5)).send(&service);
        pending.starts().await;
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
        let reply = Post::message(cancel).header("mcp-protocol-version", version).to(&service).await;
        assert_eq!(reply.status, 202);
        pending.starts().await;
        assert_eq!(demo.notes.take(), ["began"]);
        drop(pending);
        assert_eq!(demo.notes.take(), ["dropped"]);
    }
}

/// What a handler spawned hears of it, too.
// covers: H-26, S4.77
#[tokio::test]
async fn what_was_spawned_hears_of_it() {
    let (notes, gate) = (Notes::default(), Gate::default());
    let heard = notes.clone();
    let spawning = tool("spawn", move |ctx: RequestContext, _: NoArguments| {
        let (heard, gate) = (heard.clone(), gate.clone());
        tokio::spawn(async move {
            ctx.cancelled().await;
            heard.add("heard");
        });
        async move {
            gate.wait().await;
            "never"
        }
    });
    let service = HttpService::new(server(|builder| builder.tool(spawning)));
    let mut pending = Post::tool("spawn", json!({})).send(&service);
    pending.starts().await;
    drop(pending);
    tokio::task::yield_now().await;
    assert_eq!(notes.take(), ["heard"]);
}
