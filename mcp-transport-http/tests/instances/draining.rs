//! Decisions that are pending when a service is drained.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::request::Parts;
use mcp_server::{Handshake, Server};
use mcp_testkit::{Notes, envelope};
use mcp_transport_http::{HttpOptions, HttpService, SessionMigration, SessionMode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::{Answer, Client, Shared, server};
use crate::stores::Faulty;

/// Waits for a decision that is never made, and notes that it was dropped.
fn undecided<T: Send>(notes: &Notes) -> impl Future<Output = T> + Send + use<T> {
    let dropped = notes.on_drop("dropped");
    async move {
        let _dropped = dropped;
        pending().await
    }
}

fn deciding(notes: &Notes) -> Server {
    let notes = notes.clone();
    let decide = move |_: Handshake| undecided(&notes);
    Server::builder("deciding", "1.0").on_initialize(decide).build().expect("a server")
}

fn send(client: Client, service: &HttpService, body: Value) -> JoinHandle<Answer> {
    let service = service.clone();
    tokio::spawn(async move { client.send(&service, "POST", &[], body).await })
}

/// Drains a service while a request waits: it is aborted in time, and its client is told to try again.
async fn aborts(service: &HttpService, waiting: JoinHandle<Answer>, id: Value) {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    let start = Instant::now();
    let drained = service.drain(Duration::from_secs(5)).await;
    let refused =
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it is aborted").expect("no panic");
    assert_eq!((drained.finished, drained.aborted, start.elapsed().as_secs()), (0, 1, 5));
    assert!(refused.retry_after.is_some());
    let refused = refused.json(503).await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32603), &id), "{refused}");
}

/// The decision about a handshake ends with the drain timeout, with and without a session store.
// covers: GW-5, S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn gw_5_a_pending_handshake_is_aborted() {
    let stateful = HttpOptions::default().sessions(SessionMode::Stateful);
    for options in [stateful, Shared::default().options()] {
        let notes = Notes::default();
        let service = HttpService::with_options(deciding(&notes), options);
        let hello = envelope::initialize(1, "2025-11-25", json!({}));
        let waiting = send(Client::default(), &service, hello);
        aborts(&service, waiting, json!(1)).await;
        assert_eq!(notes.take(), ["dropped"]);
    }
}

/// So does the selection of a server, in both eras, when the body was not read yet.
// covers: S4.64, S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn a_pending_selection_is_aborted() {
    let modern = envelope::modern_request(1, "server/discover", json!({}));
    for body in [envelope::initialize(1, "2025-11-25", json!({})), modern] {
        let notes = Notes::default();
        let noted = notes.clone();
        let options = HttpOptions::default().select_server(move |_: Arc<Parts>| undecided(&noted));
        let service = HttpService::with_options(server(), options);
        let waiting = send(Client::default(), &service, body);
        aborts(&service, waiting, Value::Null).await;
        assert_eq!(notes.take(), ["dropped"]);
    }
}

/// So does the decision about a session of another instance.
// covers: MIS-5, S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn mis_5_a_pending_migration_is_aborted() {
    let (shared, notes) = (Shared::default(), Notes::default());
    let (one, noted) = (shared.instance().0, notes.clone());
    let options = shared.options().session_migration(move |_: SessionMigration| undecided(&noted));
    let two = HttpService::with_options(server(), options);
    let client = Client::initialize(&one, None).await;
    let waiting = send(client, &two, envelope::request(1, "ping", json!({})));
    aborts(&two, waiting, Value::Null).await;
    assert_eq!((notes.take(), two.session_metrics().expect("sessions").live), (vec!["dropped".to_owned()], 0));
}

/// A store that does not respond keeps no service from its end: not by a handshake, nor a notification, nor a request.
// covers: S4.84, RB-60
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_not_waited_for() {
    let set_level = envelope::request(2, "logging/setLevel", json!({ "level": "error" }));
    let hello = envelope::initialize(2, "2025-11-25", json!({}));
    for (body, id) in [(hello, json!(2)), (envelope::initialized(), Value::Null), (set_level, json!(2))] {
        let (shared, store) = (Shared::default(), Arc::new(Faulty::default()));
        let options = shared.options().session_store(Arc::clone(&store) as _, Duration::from_secs(60));
        let service = HttpService::with_options(server(), options);
        let client = match body["method"].as_str() {
            Some("initialize") => Client::default(),
            Some("logging/setLevel") => Client::initialize(&service, None).await,
            _ => {
                Client { session: Client::default().shake_hands(&service).await.session.expect("one"), principal: None }
            }
        };
        store.hangs_at_save.store(true, Ordering::SeqCst);
        let waiting = send(client, &service, body);
        aborts(&service, waiting, id).await;
    }
}
