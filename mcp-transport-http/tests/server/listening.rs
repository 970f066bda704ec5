//! Streams for changes.

use std::time::Duration;

use mcp_server::types::LoggingLevel;
use mcp_server::types::meta::key::SUBSCRIPTION_ID;
use mcp_server::{Change, NoArguments, RequestContext, Server, prompt, text_resource, tool};
use mcp_testkit::envelope::error_code;
use mcp_transport_http::HttpService;
use serde_json::{Value, json};
use tokio::time::advance;

use crate::demo::{Demo, server};
use crate::raw_http::{Post, Reply};

/// A server that has everything, and tools that change it.
fn everything() -> Server {
    server(|builder| {
        builder
            .tool(tool("publish", async |ctx: RequestContext, _: NoArguments| {
                ctx.server().publish(&Change::Tools);
                ctx.server().publish(&Change::Prompts);
                "published"
            }))
            .tool(tool("grow", async |ctx: RequestContext, _: NoArguments| {
                let more = tool("more", async |_, _: NoArguments| "more");
                ctx.server()
                    .update(|registry| registry.add_tool(more))
                    .map(|()| "grown")
                    .map_err(|error| error.to_string())
            }))
            .tool(tool("talk", async |ctx: RequestContext, _: NoArguments| {
                ctx.progress(1);
                ctx.log(LoggingLevel::Info, "hello");
                "talked"
            }))
            .prompt(prompt("p", async |_, _: NoArguments| "p"))
            .resource(text_resource("a:b", "b", "b"))
            .resource_subscriptions()
    })
}

async fn listening(service: &HttpService, filter: Value) -> Reply {
    let mut reply = Post::listen(filter).to(service).await;
    assert_eq!(reply.event().await["method"], "notifications/subscriptions/acknowledged");
    reply
}

async fn run(service: &HttpService, name: &str) {
    let answer = Post::tool(name, json!({})).json(service, 200).await;
    assert!(answer["result"]["isError"] != true, "{answer}");
}

/// The method of the next message, if there is one without waiting.
async fn heard(reply: &mut Reply) -> Option<String> {
    match reply.poll_frame().await {
        std::task::Poll::Ready(Some(frame)) => {
            let data = frame.strip_prefix("data: ").expect("an event").trim_end();
            let message: Value = serde_json::from_str(data).unwrap_or_else(|_| panic!("one message: {data}"));
            Some(message["method"].as_str().expect("a method").to_owned())
        }
        std::task::Poll::Ready(None) => panic!("the stream is over"),
        std::task::Poll::Pending => None,
    }
}

/// First comes what the server will tell, under an id of the same kind.
// covers: L-3, L-5, L-7, S3.39, S3.42..S3.44, S3.48, S3.51, RB-39
#[tokio::test]
async fn the_acknowledgement_comes_first() {
    let service = HttpService::new(everything());
    let all = json!({
        "toolsListChanged": true,
        "promptsListChanged": false,
        "resourceSubscriptions": ["a:b"],
        "somethingElse": true,
    });
    for id in [json!("s"), json!("7"), json!(7), json!(9_007_199_254_740_993_u64)] {
        let mut reply = Post::listen(all.clone()).id(id.clone()).to(&service).await;
        assert_eq!(reply.header("x-accel-buffering"), Some("no"));
        let first = reply.event().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
        assert_eq!(first["params"]["notifications"], honoured);
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION_ID], id);
        assert!(reply.poll_frame().await.is_pending());
    }
    let answer = Post::modern("subscriptions/listen", json!({})).json(&service, 400).await;
    assert_eq!(error_code(&answer), -32602);
}

/// What one request changes is heard on the streams of others who asked for it.
// covers: L-1, L-7, L-9, L-14, L-20, S3.41, S3.47, S3.48, S4.18, RB-18, RB-38
#[tokio::test]
async fn changes_reach_those_who_asked() {
    let service = HttpService::new(everything());
    let mut tools = Post::listen(json!({ "toolsListChanged": true })).id(json!("t")).to(&service).await;
    tools.event().await;
    let mut prompts = listening(&service, json!({ "promptsListChanged": true })).await;
    let mut nothing = listening(&service, json!({})).await;
    run(&service, "publish").await;
    let change = tools.event().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(change["params"]["_meta"][SUBSCRIPTION_ID], "t");
    assert_eq!(heard(&mut tools).await, None);
    assert_eq!(heard(&mut prompts).await.as_deref(), Some("notifications/prompts/list_changed"));
    assert_eq!(heard(&mut prompts).await, None);
    run(&service, "grow").await;
    assert_eq!(heard(&mut tools).await.as_deref(), Some("notifications/tools/list_changed"));
    assert_eq!((heard(&mut prompts).await, heard(&mut nothing).await), (None, None));
}

/// Resources by their address.
// covers: L-1, L-14, L-19
#[tokio::test]
async fn updates_are_by_address() {
    let server = everything();
    let service = HttpService::new(server.clone());
    let mut reply = listening(&service, json!({ "resourceSubscriptions": ["a:b"] })).await;
    server.publish(&Change::Resource("a:c".into()));
    assert_eq!(heard(&mut reply).await, None);
    server.publish(&Change::Resource("a:b".into()));
    assert_eq!(reply.event().await["params"]["uri"], "a:b");
}

/// Progress and log messages stay with the request that they are about.
// covers: H-16, H-19, S3.23, S3.41, S3.49
#[tokio::test]
async fn only_changes_are_heard() {
    let service = HttpService::new(everything());
    let mut reply = listening(&service, json!({ "toolsListChanged": true })).await;
    let talk = Post::tool("talk", json!({})).token().meta("io.modelcontextprotocol/logLevel", json!("debug"));
    assert_eq!(talk.to(&service).await.events().await.len(), 3);
    assert_eq!(heard(&mut reply).await, None);
}

/// Whoever waits on the stream is woken by a change.
// covers: L-20
#[tokio::test]
async fn a_change_wakes_the_stream() {
    let server = everything();
    let service = HttpService::new(server.clone());
    let mut reply = listening(&service, json!({ "toolsListChanged": true })).await;
    let waiting = tokio::spawn(async move { reply.event().await });
    tokio::task::yield_now().await;
    server.publish(&Change::Tools);
    let change = waiting.await.expect("a change");
    assert_eq!(change["method"], "notifications/tools/list_changed");
}

/// A stream without changes is kept alive, for as long as the client likes.
// covers: H-21, K-15, S3.59
#[tokio::test(start_paused = true)]
async fn silent_streams_are_kept_alive() {
    let server = everything();
    let service = HttpService::new(server.clone());
    let mut reply = listening(&service, json!({ "toolsListChanged": true })).await;
    let begin = tokio::time::Instant::now();
    for _ in 0..240 {
        assert_eq!(reply.block().await.as_deref(), Some(":"));
    }
    assert_eq!(begin.elapsed(), Duration::from_secs(3600));
    assert_eq!(heard(&mut reply).await, None);
    advance(Duration::from_secs(1)).await;
    server.publish(&Change::Tools);
    assert_eq!(reply.event().await["method"], "notifications/tools/list_changed");
    let told = tokio::time::Instant::now();
    assert_eq!(reply.block().await.as_deref(), Some(":"));
    assert_eq!(told.elapsed(), Duration::from_secs(15), "the silence begins with what was said last");
}

/// Who has nothing to tell has no such method, and neither have legacy clients.
// covers: DU-25, L-16, S4.18
#[tokio::test]
async fn listening_needs_something_to_hear() {
    let service = HttpService::new(server(|builder| builder));
    let answer = Post::listen(json!({})).json(&service, 404).await;
    assert_eq!(error_code(&answer), -32601);
    let service = Demo::default().service();
    let legacy = Post::legacy(Some("2025-11-25"), "subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(error_code(&legacy.json(&service, 200).await), -32601);
}
