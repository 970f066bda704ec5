//! Too much to do.

use std::time::Duration;

use mcp_server::Principal;
use mcp_testkit::Gate;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;

use crate::demo::Demo;
use crate::raw_http::{Pending, Post};

async fn started(service: &HttpService, post: Post) -> Pending {
    let mut pending = post.send(service);
    pending.starts().await;
    pending
}

fn wait(principal: &Principal) -> Post {
    Post::tool("wait", json!({})).extension(principal.clone())
}

/// What is too much is refused at once, with a time to come back, and what was taken on goes on.
// covers: RB-15, RB-52, S4.92, S4.100, S4.101
#[tokio::test]
async fn too_much_is_refused_at_once() {
    let demo = Demo::default();
    let options = HttpOptions::default().max_in_flight(2).retry_after(Duration::from_millis(2500));
    let service = HttpService::with_options(demo.server(), options);
    let one = started(&service, Post::tool("wait", json!({}))).await;
    let two = started(&service, Post::legacy_tool(None, "wait")).await;
    for post in [Post::tool("hello", json!({})), Post::legacy_tool(Some("2025-06-18"), "hello")] {
        let mut pending = post.id(json!("me")).send(&service);
        let reply = pending.poll().await.expect("an answer at once");
        assert_eq!(reply.header("retry-after"), Some("2"));
        let answer = reply.json(503).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!("me")));
    }
    demo.gate.open();
    for pending in [one, two] {
        assert_eq!(tool_text(&pending.reply().await.json(200).await), "waited");
    }
    assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
}

/// One principal cannot take everything, and those who are nobody are not counted together.
// covers: RB-52, RB-64
#[tokio::test]
async fn one_cannot_take_everything() {
    let demo = Demo::default();
    let options = HttpOptions::default().max_in_flight(10).max_in_flight_per_principal(1);
    let service = HttpService::with_options(demo.server(), options);
    let (ann, other) = (Principal::new(Some("here"), "ann"), Principal::new(Some("there"), "ann"));
    let first = started(&service, wait(&ann)).await;
    let reply = wait(&ann).to(&service).await;
    assert_eq!(reply.header("retry-after"), Some("1"));
    reply.json(429).await;
    let more = [
        started(&service, wait(&other)).await,
        started(&service, Post::tool("wait", json!({}))).await,
        started(&service, Post::tool("wait", json!({}))).await,
    ];
    let (none, small) = (HttpOptions::default().max_in_flight(0), Duration::from_millis(10));
    let service_without_room = HttpService::with_options(demo.server(), none.retry_after(small));
    let reply = Post::tool("hello", json!({})).to(&service_without_room).await;
    assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (503, Some("1")), "the header knows no less");
    drop(first);
    let again = started(&service, wait(&ann)).await;
    drop((more, again));
}

/// Clones of a service are the same service, and what is refused or ignored takes no room.
// covers: RB-35, RB-52
#[tokio::test]
async fn room_is_counted_once() {
    let demo = Demo::default();
    let service = HttpService::with_options(demo.server(), HttpOptions::default().max_in_flight(1));
    let other = service.clone();
    for _ in 0..3 {
        Post::text("{").json(&service, 400).await;
        Post::tool("hello", json!({})).without("mcp-name").json(&service, 400).await;
        Post::tool("ask", json!({})).json(&service, 400).await;
        Post::modern("no/such", json!({})).json(&service, 404).await;
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(Post::message(told).to(&service).await.status, 202);
        Post::tool("report", json!({})).token().to(&service).await.events().await;
    }
    let pending = started(&service, Post::tool("wait", json!({}))).await;
    Post::tool("hello", json!({})).json(&other, 503).await;
    drop(pending);
    Post::tool("hello", json!({})).json(&other, 200).await;
}

/// A batch takes as much as its requests would.
// covers: RB-52
#[tokio::test]
async fn a_batch_is_as_many_as_it_has() {
    let demo = Demo::default();
    let service = HttpService::with_options(demo.server(), HttpOptions::default().max_in_flight(2));
    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "hello" } });
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let fits = json!([call(1), call(2), notification]);
    assert_eq!(Post::message(fits).json(&service, 200).await.as_array().map(Vec::len), Some(2));
    let reply = Post::message(json!([call(1), call(2), call(3)])).to(&service).await;
    assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (503, Some("1")));
}

/// What the application does to find the server is bounded as well.
// covers: RB-52
#[tokio::test]
async fn choosing_a_server_is_work() {
    let (demo, gate) = (Demo::default(), Gate::default());
    let (server, entered) = (demo.server(), gate.clone());
    let options = HttpOptions::default().max_in_flight(1).select_server(move |_| {
        let (server, entered) = (server.clone(), entered.clone());
        async move {
            entered.wait().await;
            Ok(server)
        }
    });
    let service = HttpService::with_options(demo.server(), options);
    let first = started(&service, Post::tool("hello", json!({}))).await;
    Post::tool("hello", json!({})).json(&service, 503).await;
    gate.open();
    assert_eq!(tool_text(&first.reply().await.json(200).await), "hello");
    assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
}

/// Settings that are meant as "for ever" or "at once" are not taken to the letter.
#[tokio::test(start_paused = true)]
async fn settings_may_be_extreme() {
    for time in [Duration::MAX, Duration::ZERO] {
        let demo = Demo::default();
        let options = HttpOptions::default()
            .keep_alive_interval(time)
            .body_timeout(time)
            .retry_after(time)
            .max_in_flight(usize::MAX);
        let service = HttpService::with_options(demo.server(), options);
        let mut stream = Post::tool("report_and_wait", json!({})).token().to(&service).await;
        stream.event().await;
        demo.gate.open();
        assert!(stream.rest().await.contains("result"));
    }
}
