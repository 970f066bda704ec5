//! What an observer learns of a client.

use std::time::Duration;

use mcp_client::types::{Revision, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, MemoryTransport};
use mcp_server::{NoArguments, RequestContext, Server, prompt, tool};
use mcp_testkit::Recorder;

fn server() -> Server {
    let server = Server::builder("demo", "1.0")
        .tool(tool("add", async |_, _: NoArguments| "done"))
        .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>("no")))
        .tool(tool("wait", async |_, _: NoArguments| std::future::pending::<&str>().await))
        .prompt(prompt("greet", async |_, _: NoArguments| "hello"))
        .cache(Duration::from_secs(60), mcp_client::types::CacheScope::PUBLIC);
    server.build().unwrap()
}

fn builder(recorder: &Recorder) -> ClientBuilder {
    Client::builder("test", "1.0").observer(recorder.observer())
}

/// Waits until the client has ended, which its transport reports.
async fn ended(recorder: &Recorder) -> Vec<String> {
    for _ in 0..1_000 {
        if recorder.sessions() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    recorder.take()
}

/// Each call is reported with its target and its outcome, in both eras, and so is the connection.
// covers: S4.107
#[tokio::test]
async fn calls_are_reported() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let recorder = Recorder::default();
        let client = builder(&recorder).revisions([revision]).connect(MemoryTransport::new(server())).await.unwrap();
        let handshake = recorder.take();
        let expected: &[&str] = if revision == Revision::LATEST {
            &["client start session", "client start server/discover", "client end server/discover: Completed"]
        } else {
            &[
                "client start session",
                "client start initialize",
                "client end initialize: Completed",
                "client end notifications/initialized: Completed",
            ]
        };
        assert_eq!(handshake, expected);
        client.call_tool("add").await.unwrap();
        assert_eq!(recorder.take(), ["client start tools/call add", "client end tools/call add: Completed"]);
        assert!(client.call_tool("fail").await.is_ok_and(|result| result.is_error == Some(true)));
        assert_eq!(recorder.take()[1], "client end tools/call fail: ToolError");
        client.get_prompt("greet").await.unwrap();
        assert_eq!(recorder.take()[1], "client end prompts/get greet: Completed");
        assert!(client.call_tool("nobody").await.is_err());
        assert_eq!(recorder.take()[1], "client end tools/call: Error(ErrorCode(-32602 INVALID_PARAMS))");
        let call = client.call_tool("wait").total_timeout(Duration::from_millis(5));
        assert!(call.await.is_err());
        assert!(recorder.take().contains(&"client end tools/call wait: TimedOut".to_owned()));
        let cancelled = tokio::time::timeout(Duration::from_millis(5), client.call_tool("wait").into_future()).await;
        assert!(cancelled.is_err());
        assert!(recorder.take().contains(&"client end tools/call wait: Cancelled".to_owned()));
        assert_eq!(recorder.operations(), 0);
        drop(client);
        assert_eq!(ended(&recorder).await.last().unwrap(), "client end session: Completed", "{revision}");
    }
}

/// What is found in the cache is reported, and what is not.
#[tokio::test]
async fn cache_lookups_are_reported() {
    let recorder = Recorder::default();
    let client = builder(&recorder).connect(MemoryTransport::new(server())).await.unwrap();
    client.list_tools(None).await.unwrap();
    client.list_tools(None).await.unwrap();
    let lookups: Vec<_> = recorder.take().into_iter().filter(|text| text.starts_with("Cache")).collect();
    assert_eq!(lookups, ["CacheLookup { is_hit: false }", "CacheLookup { is_hit: true }"]);
}

/// A subscription is a call that lasts.
#[tokio::test]
async fn subscriptions_are_reported() {
    let recorder = Recorder::default();
    let client = builder(&recorder).connect(MemoryTransport::new(server())).await.unwrap();
    let changes = client.listen(SubscriptionFilter::default().tools_list_changed(true)).await.unwrap();
    assert_eq!(recorder.operations(), 1);
    drop(changes);
    assert_eq!(recorder.operations(), 0);
    assert_eq!(recorder.take().last().unwrap(), "client end subscriptions/listen: Completed");
}

/// A connection that fails is reported with the reason.
#[tokio::test]
async fn failed_connections_are_reported() {
    let recorder = Recorder::default();
    let modern = Server::builder("demo", "1.0").revisions([Revision::V2026_07_28]).build().unwrap();
    let transport = MemoryTransport::new(modern);
    assert!(builder(&recorder).revisions([Revision::V2024_11_05]).connect(transport).await.is_err());
    let expected = [
        "client start session",
        "client start initialize",
        "client end initialize: Error(ErrorCode(-32022 UNSUPPORTED_PROTOCOL_VERSION))",
        "client end session: connect_failed",
    ];
    assert_eq!(ended(&recorder).await, expected);
    assert_eq!(recorder.operations(), 0);
}

/// A request of the server is an operation of which it is the client, on both sides.
// covers: S4.107
#[tokio::test]
async fn requests_of_the_server_are_reported() {
    let (recorder, of_server) = (Recorder::default(), Recorder::default());
    let ask = tool("ask", async |ctx: RequestContext, _: NoArguments| {
        ctx.list_roots("roots").await.map(|roots| roots.len().to_string())
    });
    let server = Server::builder("demo", "1.0").tool(ask).observer(of_server.observer()).build().unwrap();
    let client = builder(&recorder).revisions([Revision::V2025_11_25]).roots([]);
    let client = client.connect(MemoryTransport::new(server)).await.unwrap();
    let _ = (recorder.take(), of_server.take());
    assert_eq!(client.call_tool("ask").await.unwrap().to_text(), "0");
    let expected = [
        "client start tools/call ask",
        "server start roots/list",
        "server end roots/list: Completed",
        "client end tools/call ask: Completed",
    ];
    assert_eq!(recorder.take(), expected);
    let expected = [
        "server start tools/call",
        "client start roots/list",
        "client end roots/list: Completed",
        "server end tools/call ask: Completed",
    ];
    assert_eq!(of_server.take(), expected);
}
