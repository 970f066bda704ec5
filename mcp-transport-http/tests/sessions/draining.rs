//! The end of a service whose clients have sessions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, tool};
use mcp_session::EndReason;
use mcp_testkit::Notes;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{Drained, HttpService};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::demo::server;
use crate::raw_http::LEGACY;
use crate::session_client::{Client, Events, NEWEST, Shop, initialize, metrics, settle, stateful};

/// Begins the end, which goes on by itself.
async fn begin(service: &HttpService, seconds: u64) -> JoinHandle<Drained> {
    let service = service.clone();
    let draining = tokio::spawn(async move { service.drain(Duration::from_secs(seconds)).await });
    settle().await;
    draining
}

/// Streams of sessions end at once, calls may finish, then the sessions end.
// covers: S4.42, S4.83, S4.84, RB-17, RB-60
#[tokio::test(start_paused = true)]
async fn sessions_end_after_their_calls() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        client.call("leave").await;
        let listener = client.listen().await;
        let call = tokio::spawn(client.tool("wait").send(&service).reply());
        let mut stream = Events::of(client.tool("report_and_wait").id(json!(2)).token().to(&service).await);
        stream.message().await;
        settle().await;
        let start = Instant::now();
        let draining = begin(&service, 30).await;
        assert_eq!(listener.messages().await.len(), 0);
        assert_eq!(start.elapsed(), Duration::ZERO);
        for post in [client.tool("hello"), client.get(), client.delete(), initialize(version, json!({}))] {
            assert_eq!(post.to(&service).await.status, 503);
        }
        assert_eq!(metrics(&service).live, 1, "it is there for its calls");
        shop.demo.gate.open();
        assert_eq!(tool_text(&call.await.expect("an answer").json(200).await), "waited");
        assert_eq!(tool_text(&stream.messages().await[0]), "waited");
        let drained = draining.await.expect("an end");
        assert_eq!((drained.finished, drained.aborted, start.elapsed()), (3, 0, Duration::ZERO));
        let metrics = metrics(&service);
        assert_eq!((metrics.live, metrics.ended(EndReason::Shutdown)), (0, 1));
        assert_eq!(shop.demo.notes.take(), ["began", "began", "closed"]);
    }
}

/// The end waits for calls whose clients have gone as well.
// covers: S4.83, S4.84, S4.96, RB-60
#[tokio::test(start_paused = true)]
async fn calls_of_those_who_left_may_finish() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        drop(client.begin("wait", 3).await);
        settle().await;
        let draining = begin(&service, 30).await;
        assert!(!draining.is_finished(), "it waits");
        shop.demo.gate.open();
        let drained = draining.await.expect("an end");
        assert_eq!((drained.finished, drained.aborted), (1, 0));
        assert_eq!(shop.demo.notes.take(), ["began"], "nothing was cut");
    }
}

/// What takes too long is given up, whether its client waits for it or not.
// covers: S4.78, S4.83, S4.84, RB-17, RB-60
#[tokio::test(start_paused = true)]
async fn late_calls_are_cut() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        client.call("leave").await;
        drop(client.begin("wait", 3).await);
        let call = tokio::spawn(client.tool("wait").send(&service).reply());
        let mut stream = Events::of(client.tool("report_and_wait").id(json!(2)).token().to(&service).await);
        stream.message().await;
        let stream = tokio::spawn(stream.messages());
        settle().await;
        let start = Instant::now();
        let drained = begin(&service, 5).await.await.expect("an end");
        assert_eq!((drained.finished, drained.aborted, start.elapsed().as_secs()), (0, 3, 5));
        let answer = call.await.expect("an answer").json(503).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!(1)));
        let last = stream.await.expect("an end");
        assert_eq!((last.len(), error_code(&last[0]), &last[0]["id"]), (1, -32603, &json!(2)));
        let mut notes = shop.demo.notes.take();
        notes.sort_unstable();
        assert_eq!(notes, ["began", "began", "began", "closed", "dropped", "dropped", "dropped"]);
        assert_eq!(metrics(&service).live, 0);
    }
}

/// The end waits for what handlers left to be done, but not for ever.
// covers: S4.83, RB-60
#[tokio::test(start_paused = true)]
async fn the_end_waits_for_what_is_left() {
    for (seconds, expected) in [(2, &["closed"][..]), (1_000, &[][..])] {
        let notes = Notes::default();
        let handler_notes = notes.clone();
        let server = server(|builder| {
            builder.tool(tool("leave", move |ctx: RequestContext, _: NoArguments| {
                let notes = handler_notes.clone();
                ctx.connection().on_close(move || async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    notes.add("closed");
                });
                std::future::ready("left")
            }))
        });
        let service = HttpService::with_options(server, stateful());
        for _ in 0..10 {
            let client = Client::open(&service, NEWEST).await;
            client.call("leave").await;
        }
        let start = Instant::now();
        service.drain(Duration::from_secs(30)).await;
        assert!(start.elapsed() <= Duration::from_secs(5));
        assert_eq!(notes.take(), expected.repeat(10));
    }
}

/// A handler of a session may end the service that it belongs to.
// covers: S4.83
#[tokio::test(start_paused = true)]
async fn a_handler_may_end_the_service() {
    let service = Arc::<OnceLock<HttpService>>::default();
    let own = Arc::clone(&service);
    let end = tool("end", move |_: RequestContext, _: NoArguments| {
        let own = Arc::clone(&own);
        async move {
            if let Some(service) = own.get() {
                service.drain(Duration::from_millis(10)).await;
            }
            "ended"
        }
    });
    let service = service.get_or_init(|| HttpService::with_options(server(|builder| builder.tool(end)), stateful()));
    let client = Client::open(service, NEWEST).await;
    let reply = client.tool("end").send(service).reply();
    let reply = tokio::time::timeout(Duration::from_secs(60), reply).await.expect("it does not hang");
    assert_eq!(error_code(&reply.json(503).await), -32603, "it was one of those that took too long");
    settle().await;
    assert_eq!(metrics(service).live, 0);
}
