//! The end of a service.

use std::time::Duration;

use mcp_testkit::Gate;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{Drained, HttpOptions, HttpService};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::demo::Demo;
use crate::raw_http::{Part, Post, RequestBody};

/// Begins the end, which goes on by itself.
async fn begin(service: &HttpService, seconds: u64) -> JoinHandle<Drained> {
    let service = service.clone();
    let draining = tokio::spawn(async move { service.drain(Duration::from_secs(seconds)).await });
    tokio::task::yield_now().await;
    draining
}

/// What is at work may finish, while nothing new is taken on.
// covers: RB-17, RB-60, S4.84
#[tokio::test(start_paused = true)]
async fn what_is_at_work_may_finish() {
    let demo = Demo::default();
    let service = HttpService::with_options(demo.server(), HttpOptions::default().retry_after(Duration::from_secs(7)));
    let call = tokio::spawn(Post::tool("wait", json!({})).send(&service).reply());
    let mut stream = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    stream.event().await;
    tokio::task::yield_now().await;
    let draining = begin(&service, 30).await;
    for post in [Post::tool("hello", json!({})), Post::legacy_tool(None, "hello"), Post::listen(json!({}))] {
        let reply = post.to(&service).await;
        assert_eq!(reply.header("retry-after"), Some("7"));
        assert_eq!(error_code(&reply.json(503).await), -32603);
    }
    // Whoever may not ask at all is told that all the same.
    Post::tool("hello", json!({})).header("host", "evil.example.com").json(&service, 403).await;
    demo.gate.open();
    assert_eq!(tool_text(&call.await.expect("an answer").json(200).await), "waited");
    assert_eq!(tool_text(&stream.event().await), "waited");
    assert_eq!(stream.block().await, None);
    let drained = draining.await.expect("an end");
    assert_eq!((drained.finished, drained.aborted), (2, 0));
    assert_eq!(demo.notes.take(), ["began", "began"]);
}

/// What takes too long is given up: its handler is dropped, its client is told, and it is counted.
// covers: RB-17, RB-60, S4.77, S4.84, H-34
#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_cut() {
    let demo = Demo::default();
    let service = demo.service();
    let call = tokio::spawn(Post::tool("wait", json!({})).id(json!("late")).send(&service).reply());
    let mut stream = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    stream.event().await;
    let stream = tokio::spawn(async move { stream.events().await });
    tokio::task::yield_now().await;
    let start = Instant::now();
    let drained = begin(&service, 5).await.await.expect("an end");
    assert_eq!((drained.finished, drained.aborted, start.elapsed().as_secs()), (0, 2, 5));
    let answer = call.await.expect("an answer").json(503).await;
    assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!("late")));
    let last = stream.await.expect("an end");
    assert_eq!((last.len(), error_code(&last[0]), &last[0]["id"]), (1, -32603, &json!(1)));
    let mut notes = demo.notes.take();
    notes.sort_unstable();
    assert_eq!(notes, ["began", "began", "dropped", "dropped"]);
}

/// Without anything at work the end comes at once, and again.
// covers: RB-60
#[tokio::test(start_paused = true)]
async fn the_end_may_come_twice() {
    let service = Demo::default().service();
    Post::tool("hello", json!({})).json(&service, 200).await;
    let start = Instant::now();
    for _ in 0..2 {
        assert_eq!(service.drain(Duration::from_secs(30)).await, Drained::default());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    Post::tool("hello", json!({})).json(&service, 503).await;
}

/// Streams for changes end with their result, while calls go on; both are counted.
// covers: RB-60, L-11
#[tokio::test(start_paused = true)]
async fn streams_end_before_calls() {
    let demo = Demo::default();
    let service = demo.service();
    let mut listener = Post::listen(json!({ "toolsListChanged": true })).to(&service).await;
    listener.event().await;
    let call = tokio::spawn(Post::tool("wait", json!({})).send(&service).reply());
    tokio::task::yield_now().await;
    let draining = begin(&service, 30).await;
    let start = Instant::now();
    assert_eq!(listener.events().await.len(), 1);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(!draining.is_finished());
    demo.gate.open();
    assert_eq!(tool_text(&call.await.expect("an answer").json(200).await), "waited");
    let drained = draining.await.expect("an end");
    assert_eq!((drained.finished, drained.aborted), (2, 0));
}

/// Whoever goes away during the end is not waited for.
// covers: RB-60
#[tokio::test(start_paused = true)]
async fn who_goes_away_is_not_waited_for() {
    let demo = Demo::default();
    let service = demo.service();
    let mut pending = Post::tool("wait", json!({})).send(&service);
    pending.starts().await;
    let start = Instant::now();
    let draining = begin(&service, 30).await;
    drop(pending);
    let drained = draining.await.expect("an end");
    assert_eq!((drained.aborted, start.elapsed()), (0, Duration::ZERO));
    assert_eq!(demo.notes.take(), ["began", "dropped"]);
}

/// A request whose body is still on its way when the end begins may finish like all others, but not for ever.
// covers: RB-60
#[tokio::test(start_paused = true)]
async fn bodies_on_their_way_are_waited_for() {
    for (limit, status) in [(30, 200), (1, 503)] {
        let demo = Demo::default();
        demo.gate.open();
        let service = demo.service();
        let gate = Gate::default();
        let call = Post::tool("wait", json!({}));
        let parts = [Part::Wait(gate.clone()), Part::Data(call.content().into())];
        let mut pending = call.body(RequestBody::parts(parts)).send(&service);
        pending.starts().await;
        let draining = begin(&service, limit).await;
        // The clock runs by itself where everybody waits.
        tokio::time::sleep(Duration::from_secs(2)).await;
        gate.open();
        let answer = pending.reply().await.json(status).await;
        assert_eq!(answer["id"], 1, "{answer}");
        let drained = draining.await.expect("an end");
        let expected = if status == 200 { (1, 0) } else { (0, 1) };
        assert_eq!((drained.finished, drained.aborted), expected);
    }
}
