//! How long a record is in the store, and when a session ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_transport_http::session::{MemorySessionStore, SessionId, SessionStore as _};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use serde_json::{Value, json};

use crate::client::{Client, Shared, server};
use crate::stores::{Gone, Leaky, Silent};

/// A session that cannot be kept is no session, and nothing is left of it.
// covers: RB-53, RB-54
#[tokio::test]
async fn without_a_store_nothing_begins() {
    let options = Shared::default().options().session_store(Arc::new(Gone::default()), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let answer = Client::default().shake_hands(&service).await;
    assert_eq!(answer.session, None);
    assert_eq!(answer.json(503).await["id"], 1);
    let metrics = service.session_metrics().expect("sessions");
    assert_eq!((metrics.live, metrics.created, metrics.adopted), (0, 1, 0));
}

/// A record lasts as long as somebody listens, however silent the session is.
// covers: S4.37, S4.115
#[tokio::test(start_paused = true)]
async fn listening_keeps_the_record() {
    let shared = Shared::default();
    let one = HttpService::with_options(server(), shared.options().keep_alive_interval(Duration::from_secs(5)));
    let client = Client::initialize(&one, None).await;
    let mut stream = client.send(&one, "GET", &[], Value::Null).await;
    let listening = tokio::spawn(async move { stream.text("no such thing").await });
    tokio::time::sleep(Duration::from_secs(200)).await;
    client.ask(&one, "ping", json!({})).await.json(200).await;
    assert!(!listening.is_finished());
    listening.abort();
}

/// What was never used stays in the store for as long as what was.
// covers: MIS-10, RB-53, RB-54
#[tokio::test(start_paused = true)]
async fn mis_10_unused_records_stay() {
    let shared = Shared::default();
    let options = shared.options().session_store(Arc::new(shared.sessions.clone()), Duration::from_secs(3600));
    let one = HttpService::with_options(server(), options);
    let unused = Client::default().shake_hands(&one).await.session.expect("a session");
    let used = Client::initialize(&one, None).await.session;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let load = async |id: &str| shared.sessions.load(SessionId::parse(id).expect("an id")).await.expect("a store");
    assert!(load(&unused).await.is_some() && load(&used).await.is_some());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(load(&unused).await.is_none() && load(&used).await.is_none());
}

/// What has ended at one instance has ended at all.
// covers: S4.42, S4.115
#[tokio::test]
async fn sessions_end_everywhere() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    client.ask(&two, "ping", json!({})).await.json(200).await;
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    client.ask(&one, "ping", json!({})).await.json(404).await;
    client.ask(&two, "ping", json!({})).await.json(404).await;
    assert_eq!((one.session_metrics().expect("sessions").live, two.session_metrics().expect("sessions").live), (0, 0));
}

/// Whoever ends a session need not wait for that.
// covers: S4.42
#[tokio::test(start_paused = true)]
async fn sessions_end_without_their_client() {
    let sessions = MemorySessionStore::new();
    let options = Shared::default().options().session_store(Arc::new(Leaky(sessions.clone())), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let client = Client::initialize(&service, None).await;
    let deleting = client.send(&service, "DELETE", &[], Value::Null);
    assert!(tokio::time::timeout(Duration::from_millis(100), deleting).await.is_err(), "the client has gone");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let id = SessionId::parse(&client.session).expect("an id");
    assert_eq!(sessions.load(id).await, Ok(None));
    assert_eq!(service.session_metrics().expect("sessions").live, 0);
}

/// A session that ends elsewhere while it is used is not found, and whoever asked knows what for.
// covers: S4.42, S4.115
#[tokio::test(start_paused = true)]
async fn sessions_may_end_elsewhere_at_any_time() {
    let store = Arc::new(Leaky(MemorySessionStore::new()));
    let service =
        HttpService::with_options(server(), Shared::default().options().session_store(store, Duration::from_secs(60)));
    let client = Client::initialize(&service, None).await;
    let answer = client.ask(&service, "resources/subscribe", json!({ "uri": "a:b" })).await.json(404).await;
    assert_eq!(answer["id"], 1, "{answer}");
    client.ask(&service, "ping", json!({})).await.json(404).await;
    assert_eq!(service.session_metrics().expect("sessions").live, 0);
}

/// The end waits for sessions that end everywhere.
// covers: S4.42, S4.84
#[tokio::test(start_paused = true)]
async fn the_end_waits_for_the_store() {
    let sessions = MemorySessionStore::new();
    let options = Shared::default().options().session_store(Arc::new(Leaky(sessions.clone())), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let client = Client::initialize(&service, None).await;
    let id = SessionId::parse(&client.session).expect("an id");
    let (deleting, draining) = (client.send(&service, "DELETE", &[], Value::Null), async {
        tokio::task::yield_now().await;
        service.drain(Duration::from_secs(30)).await;
        sessions.load(id).await.expect("a store")
    });
    let (deleted, left) = tokio::join!(deleting, draining);
    assert_eq!((deleted.status.as_u16(), left), (204, None));
}

/// What ends at one instance ends at all within the time that the documentation names: streams, requests that run, and
/// what is kept of them.
// covers: SEC-10, S4.42
#[tokio::test(start_paused = true)]
async fn sec_10_streams_and_requests_end_everywhere() {
    let shared = Shared::default();
    let ((one, server), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    let mut stream = client.send(&one, "GET", &[], Value::Null).await;
    stream.text("retry").await;
    let mut call = client.ask(&one, "tools/call", json!({ "name": "stay" })).await;
    let other = Client::initialize(&one, None).await;
    let mut others = other.send(&one, "GET", &[], Value::Null).await;
    others.text("retry").await;
    let since = tokio::time::Instant::now();
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    let events = shared.events.usage().sessions;
    // Until it hears of it, the instance goes on.
    server.publish(&mcp_server::Change::Tools);
    let (streamed, answered) = tokio::join!(stream.text("no such thing"), call.text("no such thing"));
    assert!(since.elapsed() <= Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(!streamed.contains("no such thing") && answered.contains("the session has ended"), "{answered}");
    assert_eq!(one.session_metrics().expect("sessions").live, 1);
    assert_eq!(shared.events.usage().sessions, events.min(1), "nothing is kept of it");
    // The other one goes on.
    server.publish(&mcp_server::Change::Tools);
    assert!(others.text("list_changed").await.contains("list_changed"));
}

/// Anybody can name a session, so the store is asked for so many at a time, and others are told to wait.
// covers: MIS-15
#[tokio::test]
async fn mis_15_look_ups_are_bounded() {
    let store = Silent::default();
    let options =
        HttpOptions::default().sessions(SessionMode::Stateful).max_in_flight(3).max_in_flight_per_principal(2);
    let options = options.session_store(Arc::new(store.clone()), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let mut waiting = Vec::new();
    for (who, verb, asked, refused) in [
        (Some("ann"), "POST", 1, None),
        (Some("ann"), "GET", 2, None),
        (Some("ann"), "POST", 2, Some(429)),
        (None, "DELETE", 3, None),
        (None, "POST", 3, Some(503)),
        (None, "GET", 3, Some(503)),
        (None, "DELETE", 3, Some(503)),
    ] {
        let session = SessionId::random().expect("an id").to_string();
        let client = Client { session, principal: who.map(|who| mcp_server::Principal::new(None, who)) };
        let service = service.clone();
        let body = if verb == "POST" { json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }) } else { Value::Null };
        let answer = tokio::spawn(async move { client.send(&service, verb, &[], body).await.status.as_u16() });
        match refused {
            Some(status) => {
                let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.expect("it does not wait");
                assert_eq!(answer.expect("an answer"), status, "{verb}");
            }
            None => {
                waiting.push(answer);
                while store.0.load(Ordering::SeqCst) < asked {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert_eq!(store.0.load(Ordering::SeqCst), asked, "{verb}");
    }
    // Who hangs up makes room.
    waiting.remove(0).abort();
    tokio::task::yield_now().await;
    let session = SessionId::random().expect("an id").to_string();
    let client = Client { session, principal: None };
    let again = tokio::spawn(async move { client.ask(&service, "ping", json!({})).await.status });
    while store.0.load(Ordering::SeqCst) < 4 {
        tokio::task::yield_now().await;
    }
    again.abort();
}
