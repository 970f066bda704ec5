//! What an observer learns of a server over HTTP.

use std::sync::Arc;

use mcp_kernel::observe::SourceMetric;
use mcp_server::Server;
use mcp_session::{
    EventIdKey, EventStore as _, MemoryEventLimits, MemoryEventStore, SessionId, SessionOptions, StoredEvent,
};
use mcp_testkit::Recorder;
use mcp_transport_http::HttpService;
use serde_json::json;

use crate::demo::{Demo, server};
use crate::raw_http::Post;
use crate::session_client::{Client, NEWEST, settle, stateful};

fn observed(recorder: &Recorder) -> Server {
    server(|builder| Demo::default().tools(builder).observer(recorder.observer()))
}

/// A request without a session is a session of its own, and refusals have their status.
// covers: S4.107, S4.108
#[tokio::test(start_paused = true)]
async fn requests_and_refusals_are_reported() {
    let recorder = Recorder::default();
    let service = HttpService::new(observed(&recorder));
    Post::tool("hello", json!({})).json(&service, 200).await;
    let expected = [
        "server start single request",
        "server start tools/call",
        "server end tools/call hello: Completed",
        "server end single request: Completed",
    ];
    assert_eq!(recorder.take(), expected);
    Post::legacy_tool(Some(NEWEST), "hello").json(&service, 200).await;
    assert_eq!(recorder.take(), expected);
    Post::tool("hello", json!({})).header("origin", "https://evil.example").json(&service, 403).await;
    assert_eq!(recorder.take(), ["Refused(Refused { status: 403 })"]);
    Post::text("no message").json(&service, 400).await;
    assert_eq!(recorder.take(), ["Refused(Refused { status: 400 })"]);
    let mut pending = Post::tool("wait", json!({})).send(&service);
    pending.starts().await;
    assert_eq!((recorder.operations(), recorder.sessions()), (1, 1));
    drop(pending);
    settle().await;
    assert_eq!((recorder.operations(), recorder.sessions()), (0, 0));
}

/// Streams are reported when they open and when they close, by their kind.
#[tokio::test(start_paused = true)]
async fn streams_are_reported() {
    let recorder = Recorder::default();
    let service = HttpService::with_options(observed(&recorder), stateful());
    let streams = |recorder: &Recorder| -> Vec<String> {
        recorder.take().into_iter().filter(|text| text.starts_with("Stream")).collect()
    };
    let mut reply = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    assert_eq!((streams(&recorder), recorder.streams()), (vec!["StreamOpened(Response)".to_owned()], 1));
    assert!(reply.event().await["method"].is_string());
    drop(reply);
    assert_eq!(streams(&recorder), ["StreamClosed(Response)"]);
    let reply = Post::listen(json!({ "toolsListChanged": true })).to(&service).await;
    assert_eq!(streams(&recorder), ["StreamOpened(Listen)"]);
    drop(reply);
    assert_eq!(streams(&recorder), ["StreamClosed(Listen)"]);
    let client = Client::open(&service, NEWEST).await;
    let events = client.listen().await;
    assert_eq!(streams(&recorder), ["StreamOpened(Standalone)"]);
    drop(events);
    assert_eq!((streams(&recorder), recorder.streams()), (vec!["StreamClosed(Standalone)".to_owned()], 0));
}

/// Sessions are gauges: how many there are, and why they ended or were refused.
// covers: S4.107
#[tokio::test(start_paused = true)]
async fn sessions_are_gauges() {
    let recorder = Recorder::default();
    let service = HttpService::with_options(observed(&recorder), stateful());
    let clients = [Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await];
    assert_eq!((recorder.metric(SourceMetric::IdleSessions), recorder.metric(SourceMetric::ActiveSessions)), (2, 0));
    assert!(recorder.metric(SourceMetric::IdleSessionBytes) > 0);
    let events = clients[0].listen().await;
    assert_eq!((recorder.metric(SourceMetric::IdleSessions), recorder.metric(SourceMetric::ActiveSessions)), (1, 1));
    drop(events);
    assert_eq!(recorder.sessions(), 2);
    clients[0].delete().to(&service).await;
    settle().await;
    assert_eq!(recorder.metric(SourceMetric::SessionsEnded("deleted")), 1);
    assert_eq!(recorder.sessions(), 1, "the duration of a session ends with it");
    clients[0].tool("hello").json(&service, 404).await;
    assert_eq!(recorder.metric(SourceMetric::SessionsRefused("unknown")), 1);
    drop(clients);
    drop(service);
    settle().await;
    assert_eq!(recorder.metric(SourceMetric::IdleSessions), 0, "the source has ended with its service");
    let ended = SourceMetric::SessionsEnded("deleted");
    assert_eq!(recorder.metric(ended), 1, "its counters can still be read");
    assert_eq!(recorder.take().last().map(String::as_str), Some("server end session: Completed"));
}

/// A session that the server ends for lack of room has an error, and one that its client ends has none.
#[tokio::test(start_paused = true)]
async fn evicted_sessions_end_with_an_error() {
    let recorder = Recorder::default();
    let options = stateful().session_options(SessionOptions::default().idle_limit(1));
    let service = HttpService::with_options(observed(&recorder), options);
    let _first = Client::open(&service, NEWEST).await;
    let _second = Client::open(&service, NEWEST).await;
    let _third = Client::open(&service, NEWEST).await;
    settle().await;
    let ends: Vec<_> = recorder.take().into_iter().filter(|text| text.starts_with("server end session")).collect();
    assert_eq!(ends, ["server end session: evicted"]);
}

/// Events that the store drops are counted.
#[tokio::test(start_paused = true)]
async fn dropped_events_are_counted() {
    let recorder = Recorder::default();
    let store = MemoryEventStore::new(MemoryEventLimits::default().max_session_events(1));
    let options = stateful().event_store(Arc::new(store.clone()), EventIdKey::new([7; 32]));
    let service = HttpService::with_options(observed(&recorder), options);
    assert_eq!(recorder.metric(SourceMetric::EventsDropped), 0);
    let session = SessionId::random().unwrap();
    for number in 1..=3 {
        store.append(session, 1, StoredEvent { number, message: "{}".into() });
    }
    assert_eq!(recorder.metric(SourceMetric::EventsDropped), 2);
    drop((service, store));
    assert_eq!(recorder.metric(SourceMetric::EventsDropped), 2, "the number stays when the store is gone");
}
