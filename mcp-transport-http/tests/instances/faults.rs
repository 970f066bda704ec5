//! Stores that do some things, and fail at others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_transport_http::HttpService;
use mcp_transport_http::session::{SessionId, SessionStore as _};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, Shared, server};
use crate::stores::Faulty;

fn service(shared: &Shared, store: &Arc<Faulty>) -> HttpService {
    let options = shared.options().max_in_flight(2).session_store(Arc::clone(store) as _, Duration::from_secs(60));
    HttpService::with_options(server(), options)
}

/// What a notification has settled waits for the store, and takes room meanwhile.
// covers: MIS-15
#[tokio::test]
async fn notifications_that_wait_for_the_store_are_bounded() {
    let store = Arc::new(Faulty::default());
    let service = service(&Shared::default(), &store);
    let mut client = Client::default();
    let answer = client.shake_hands(&service).await;
    client.session = answer.session.clone().expect("a session");
    answer.json(200).await;
    store.hangs_at_save.store(true, Ordering::SeqCst);
    let client = Arc::new(client);
    let notify = || {
        let (client, service) = (Arc::clone(&client), service.clone());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        tokio::spawn(async move { client.send(&service, "POST", &[], ready).await.status.as_u16() })
    };
    let mut waiting = Vec::new();
    for asked in 1..=2 {
        waiting.push(notify());
        while store.hanging.load(Ordering::SeqCst) < asked {
            tokio::task::yield_now().await;
        }
    }
    let third = timeout(Duration::from_secs(10), notify()).await.expect("no more waiting").expect("an answer");
    assert_eq!(third, 503);
    for waiting in waiting {
        waiting.abort();
    }
}

/// A session whose record cannot be removed goes on, with what was said; its client can try again.
#[tokio::test]
async fn a_session_ends_with_its_record() {
    let (shared, store) = (Shared::default(), Arc::new(Faulty::default()));
    let service = service(&shared, &store);
    let client = Client::initialize(&service, None).await;
    let mut answer = client.ask(&service, "tools/call", json!({ "name": "slow" })).await;
    let text = answer.text("no such thing").await;
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).expect("the id of an event").to_owned();
    store.fails_at_remove.store(true, Ordering::SeqCst);
    client.send(&service, "DELETE", &[], Value::Null).await.json(503).await;
    let mut missed = client.send(&service, "GET", &[("last-event-id", &id)], Value::Null).await;
    let text = missed.text("no such thing").await;
    assert!(text.contains("done"), "{text}");
    store.fails_at_remove.store(false, Ordering::SeqCst);
    client.send(&service, "DELETE", &[], Value::Null).await.json(204).await;
    client.ask(&service, "ping", json!({})).await.json(404).await;
    assert_eq!(shared.events.usage().events, 0);
}

/// A store that does not answer about one session does not keep others from ending here.
#[tokio::test(start_paused = true)]
async fn a_look_has_an_end() {
    let store = Arc::new(Faulty::default());
    let service = service(&Shared::default(), &store);
    let (stuck, client) = (Client::initialize(&service, None).await, Client::initialize(&service, None).await);
    let _stuck = stuck.send(&service, "GET", &[], Value::Null).await;
    let mut stream = client.send(&service, "GET", &[], Value::Null).await;
    *store.hangs_at_touch.lock().expect("no panic") = SessionId::parse(&stuck.session).ok();
    // The look that hangs begins before the session ends elsewhere.
    tokio::time::sleep(Duration::from_secs(7)).await;
    store.store.remove(SessionId::parse(&client.session).expect("an id")).await.expect("a store");
    let ended = timeout(Duration::from_secs(30), async {
        while service.session_metrics().expect("sessions").live > 1 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    ended.await.expect("an end");
    stream.text("no such thing").await;
}

/// What a request has settled is kept as soon as its client is gone, also if another request has been left before.
#[tokio::test(start_paused = true)]
async fn who_looks_after_one_request_looks_after_the_next() {
    let store = Arc::new(Faulty::default());
    let service = service(&Shared::default(), &store);
    let client = Arc::new(Client::initialize(&service, None).await);
    let ask = |method: &'static str, params: Value| {
        let (client, service) = (Arc::clone(&client), service.clone());
        let body = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        tokio::spawn(async move { client.send(&service, "POST", &[], body).await.status })
    };
    // Nothing here lets time pass.
    let settle = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    let first = ask("tools/call", json!({ "name": "stay" }));
    settle().await;
    first.abort();
    settle().await;
    store.hangs_at_save.store(true, Ordering::SeqCst);
    let second = ask("resources/subscribe", json!({ "uri": "a:b" }));
    settle().await;
    assert_eq!(store.hanging.load(Ordering::SeqCst), 1);
    store.hangs_at_save.store(false, Ordering::SeqCst);
    second.abort();
    settle().await;
    let kept = store.store.load(SessionId::parse(&client.session).expect("an id")).await.expect("a store");
    assert_eq!(kept.expect("a record").record.subscriptions, ["a:b"]);
}
