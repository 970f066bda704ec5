//! How long a record is in the store, and when a session ends.

use std::sync::Arc;
use std::time::Duration;

use mcp_transport_http::HttpService;
use mcp_transport_http::session::{MemorySessions, SessionId, SessionStore as _};
use serde_json::{Value, json};

use crate::kit::{Client, Gone, Leaky, Shared, server};

/// G3, G4: a session that cannot be kept is no session, and nothing is left of it.
#[tokio::test]
async fn without_a_store_nothing_begins() {
    let options = Shared::default().options().session_store(Arc::new(Gone::default()), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let answer = Client::default().shake_hands(&service).await;
    assert_eq!(answer.session, None);
    assert_eq!(answer.json(503).await["id"], 1);
    let metrics = service.sessions().expect("sessions");
    assert_eq!((metrics.live, metrics.created, metrics.adopted), (0, 1, 0));
}

/// S4.37, S4.115: a record lasts as long as somebody listens, however silent the session is.
#[tokio::test(start_paused = true)]
async fn listening_keeps_the_record() {
    let shared = Shared::default();
    let one = HttpService::with_options(server(), shared.options().keep_alive(Duration::from_secs(5)));
    let client = Client::initialize(&one, None).await;
    let mut stream = client.send(&one, "GET", &[], Value::Null).await;
    let listening = tokio::spawn(async move { stream.text("no such thing").await });
    tokio::time::sleep(Duration::from_secs(200)).await;
    client.ask(&one, "ping", json!({})).await.json(200).await;
    assert!(!listening.is_finished());
    listening.abort();
}

/// MIS-10, G3, G4: what was never used stays in the store for as long as what was.
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

/// S4.42, S4.115: what has ended at one instance has ended at all.
#[tokio::test]
async fn sessions_end_everywhere() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    client.ask(&two, "ping", json!({})).await.json(200).await;
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    client.ask(&one, "ping", json!({})).await.json(404).await;
    client.ask(&two, "ping", json!({})).await.json(404).await;
    assert_eq!((one.sessions().expect("sessions").live, two.sessions().expect("sessions").live), (0, 0));
}

/// S4.42: whoever ends a session need not wait for that.
#[tokio::test(start_paused = true)]
async fn sessions_end_without_their_client() {
    let sessions = MemorySessions::new();
    let options = Shared::default().options().session_store(Arc::new(Leaky(sessions.clone())), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let client = Client::initialize(&service, None).await;
    let deleting = client.send(&service, "DELETE", &[], Value::Null);
    assert!(tokio::time::timeout(Duration::from_millis(100), deleting).await.is_err(), "the client has gone");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let id = SessionId::parse(&client.session).expect("an id");
    assert_eq!(sessions.load(id).await, Ok(None));
    assert_eq!(service.sessions().expect("sessions").live, 0);
}

/// S4.42, S4.115: a session that ends elsewhere while it is used is not found, and whoever asked knows what for.
#[tokio::test(start_paused = true)]
async fn sessions_may_end_elsewhere_at_any_time() {
    let store = Arc::new(Leaky(MemorySessions::new()));
    let service =
        HttpService::with_options(server(), Shared::default().options().session_store(store, Duration::from_secs(60)));
    let client = Client::initialize(&service, None).await;
    let answer = client.ask(&service, "resources/subscribe", json!({ "uri": "a:b" })).await.json(404).await;
    assert_eq!(answer["id"], 1, "{answer}");
    client.ask(&service, "ping", json!({})).await.json(404).await;
    assert_eq!(service.sessions().expect("sessions").live, 0);
}

/// S4.42, S4.84: the end waits for sessions that end everywhere.
#[tokio::test(start_paused = true)]
async fn the_end_waits_for_the_store() {
    let sessions = MemorySessions::new();
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
