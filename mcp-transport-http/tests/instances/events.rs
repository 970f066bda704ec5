//! What was said at one instance, for clients that come back to another.

use std::time::Duration;

use mcp_transport_http::session::EndReason;
use mcp_transport_http::{HttpService, SessionOptions};
use serde_json::{Value, json};

use crate::client::{Client, Shared, server};

/// Has an instance say something that the client misses; returns the last event that the client has seen.
async fn miss_something(client: &Client, service: &HttpService) -> String {
    let mut answer = client.ask(service, "tools/call", json!({ "name": "slow" })).await;
    let text = answer.text("no such thing").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    text.lines().find_map(|line| line.strip_prefix("id: ")).expect("the id of an event").to_owned()
}

/// What was said at an instance that is gone is there at another one.
// covers: S4.117, RB-55
#[tokio::test]
async fn events_are_found_elsewhere() {
    let shared = Shared::default();
    let (one, _) = shared.instance();
    let client = Client::initialize(&one, None).await;
    let mut answer = client.ask(&one, "tools/call", json!({ "name": "slow" })).await;
    let text = answer.text("no such thing").await;
    assert!(!text.contains("result"), "the stream ended early: {text}");
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).expect("the id of an event").to_owned();
    // The handler goes on for a client that comes back, here or elsewhere.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (two, _) = shared.instance();
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    let text = missed.text("no such thing").await;
    assert!(text.contains("done"), "{text}");
    assert_eq!(
        (one.session_metrics().expect("sessions").replayed, two.session_metrics().expect("sessions").replayed),
        (0, 1)
    );
    // Not for others, and not for those who guess.
    let other = Client::initialize(&two, None).await;
    other.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await.json(400).await;
}

/// What was said at an instance that has ended in good order is there at another one.
// covers: S4.45, S4.117
#[tokio::test]
async fn events_outlive_their_instance() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    let id = miss_something(&client, &one).await;
    one.drain(Duration::from_secs(1)).await;
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    assert!(missed.text("no such thing").await.contains("done"));
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    assert_eq!(shared.events.usage().events, 0, "they go with the session");
}

/// An instance that has no room for a session takes nothing from those where it goes on.
// covers: S4.40, S4.117
#[tokio::test]
async fn events_outlive_idle_sessions() {
    let shared = Shared::default();
    let options = shared.options().session_options(SessionOptions::default().idle_limit(1));
    let (one, two) = (HttpService::with_options(server(), options), shared.instance().0);
    let client = Client::initialize(&one, None).await;
    let id = miss_something(&client, &one).await;
    while one.session_metrics().expect("sessions").ended(EndReason::Evicted) == 0 {
        Client::initialize(&one, None).await;
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    assert!(missed.text("no such thing").await.contains("done"));
}

/// A client that listens now here and now there finds what it missed, wherever it was last.
// covers: S4.31, S4.117
#[tokio::test]
async fn streams_of_sessions_move() {
    let shared = Shared::default();
    let (one, two) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one.0, None).await;
    for (service, server) in [&one, &two, &one, &two] {
        let mut stream = client.send(service, "GET", &[], Value::Null).await;
        server.publish(&mcp_server::Change::Resources);
        let text = stream.text("list_changed").await;
        let id = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned();
        drop(stream);
        server.publish(&mcp_server::Change::Resources);
        let mut missed = client.send(service, "GET", &[("last-event-id", &id)], Value::Null).await;
        let events = shared.events.usage();
        assert!(missed.text("list_changed").await.contains("list_changed"), "{events:?}");
    }
    assert_eq!(shared.events.usage().lost, 0);
}
