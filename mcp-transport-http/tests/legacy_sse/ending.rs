//! The end: of a stream, and of the service.

use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, tool};
use mcp_testkit::envelope::request;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::HttpOptions;
use serde_json::json;
use tokio::task::yield_now;

use crate::client::{Client, both, call, get, send, sse};
use crate::demo::{Demo, server};
use crate::raw_http::{Part, Post, RequestBody};

/// A stream that is gone cancels what was at work, and nothing is left of it.
// covers: S4.79, S4.113
#[tokio::test]
async fn the_stream_is_the_session() {
    let demo = Demo::default();
    let (_service, sse) = both(demo.server(), HttpOptions::default().max_in_flight(2).max_listen_streams(1));
    for _ in 0..10 {
        let mut client = Client::ready(&sse).await;
        client.tell(call(1, "wait")).await;
        client.tell(call(2, "wait")).await;
        client.works().await;
        assert_eq!(demo.notes.take(), ["began", "began"]);
        let endpoint = client.endpoint.clone();
        // A message on its way does not keep anything.
        let gate = Gate::default();
        let late = call(3, "wait").to_string();
        let body = RequestBody::parts([Part::Wait(gate.clone()), Part::Data(late.into())]);
        let late = tokio::spawn({
            let (post, sse) = (Post::text("").uri(&endpoint).body(body), sse.clone());
            async move { send(post, &sse).await.json(404).await }
        });
        yield_now().await;
        drop(client);
        assert_eq!(demo.notes.take(), ["dropped", "dropped"]);
        assert_eq!(sse.streams(), 0);
        gate.open();
        late.await.expect("an answer");
        send(Post::message(call(4, "hello")).uri(&endpoint), &sse).await.json(404).await;
    }
    assert_eq!(demo.notes.take(), [""; 0]);
}

/// What handlers left to be done is done at the end of the stream, not before, and counts as a stream until then.
// covers: S4.79, S1.16
#[tokio::test]
async fn callbacks_run_with_the_end() {
    let (notes, gate) = (Notes::default(), Gate::default());
    let (noted, waited) = (notes.clone(), gate.clone());
    let leave = tool("leave", move |ctx: RequestContext, _: NoArguments| {
        let (notes, gate) = (noted.clone(), waited.clone());
        ctx.connection().on_close(move || async move {
            gate.wait().await;
            notes.add("closed");
        });
        std::future::ready("left")
    });
    let (_service, sse) = both(server(|builder| builder.tool(leave)), HttpOptions::default().max_listen_streams(1));
    let mut client = Client::ready(&sse).await;
    client.tell(call(1, "leave")).await;
    assert_eq!(tool_text(&client.message().await), "left");
    gate.open();
    yield_now().await;
    assert_eq!(notes.take(), [""; 0]);
    drop(client);
    send(get(), &sse).await.json(503).await;
    yield_now().await;
    assert_eq!(notes.take(), ["closed"]);
    Client::ready(&sse).await;
}

/// At the end of the service idle streams end, handlers may finish, and nothing new is taken on.
// covers: S4.79, S4.84, RB-60
#[tokio::test]
async fn the_end_lets_handlers_finish() {
    let demo = Demo::default();
    let (service, sse) = both(demo.server(), HttpOptions::default());
    let (mut idle, mut busy) = (Client::ready(&sse).await, Client::ready(&sse).await);
    idle.works().await;
    busy.tell(call(1, "wait")).await;
    busy.tell(request(2, "ping", json!({}))).await;
    assert_eq!(busy.message().await["id"], 2);
    let drained = tokio::spawn({
        let service = service.clone();
        async move { service.drain(Duration::from_secs(5)).await }
    });
    yield_now().await;
    assert!(idle.is_over().await);
    busy.works().await;
    busy.send(call(3, "hello")).await.json(503).await;
    send(get(), &sse).await.json(503).await;
    demo.gate.open();
    assert_eq!(tool_text(&busy.message().await), "waited");
    assert_eq!(busy.stream.block().await, None);
    let drained = drained.await.expect("an end");
    assert_eq!((drained.finished, drained.aborted, sse.streams()), (2, 0, 0));
}

/// What takes too long is given up, and its client is told.
// covers: S4.79, S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_ever() {
    let demo = Demo::default();
    let (service, sse) = both(demo.server(), HttpOptions::default());
    let mut client = Client::ready(&sse).await;
    client.tell(call(1, "wait")).await;
    client.works().await;
    let drained = tokio::spawn(async move { service.drain(Duration::from_secs(5)).await });
    let answer = client.message().await;
    assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!(1)));
    assert_eq!(client.stream.block().await, None);
    assert_eq!(demo.notes.take(), ["began", "dropped"]);
    let drained = drained.await.expect("an end");
    assert_eq!((drained.finished, drained.aborted, sse.streams()), (0, 1, 0));
}

/// A client that cancels ends one request, and its stream goes on.
// covers: S4.79
#[tokio::test]
async fn requests_can_be_cancelled() {
    let demo = Demo::default();
    let sse = sse(&demo);
    let mut client = Client::ready(&sse).await;
    client.tell(call(1, "wait")).await;
    client.works().await;
    client.tell(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    client.works().await;
    assert_eq!(demo.notes.take(), ["began", "dropped"]);
    client.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&client.message().await), "hello");
}
