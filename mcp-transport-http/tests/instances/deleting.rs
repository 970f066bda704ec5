//! Sessions that are deleted where they do not live.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::request::Parts;
use mcp_server::{Principal, Server, SessionContext};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::session::{EndReason, SessionId, SessionStore as _};
use mcp_transport_http::{HttpService, SessionMigration};
use serde_json::{Value, json};

use crate::client::{Client, Shared, server};

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// A session that only the store has is deleted there: nothing of the application runs for it.
// covers: MIS-5, S4.115
#[tokio::test]
async fn mis_5_a_deleted_session_is_not_resumed() {
    let (shared, notes, selected) = (Shared::default(), Notes::default(), Arc::new(AtomicUsize::new(0)));
    let one = shared.instance().0;
    let (migrated, began, count) = (notes.clone(), notes.clone(), Arc::clone(&selected));
    let options = shared
        .options()
        .session_migration(move |_: SessionMigration| {
            migrated.add("migrated");
            std::future::ready(Ok(()))
        })
        .select_server(move |_: Arc<Parts>| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok(server()))
        });
    let living = Server::builder("living", "1.0").on_session(move |_: SessionContext| {
        began.add("began");
        std::future::pending()
    });
    let two = HttpService::with_options(living.build().expect("a server"), options);
    let client = Client::initialize(&one, Some(Principal::new(None, "ann"))).await;
    let id = SessionId::parse(&client.session).expect("an id");
    let other = Client { session: client.session.clone(), principal: Some(Principal::new(None, "eve")) };
    other.send(&two, "DELETE", &[], Value::Null).await.json(403).await;
    client.send(&two, "DELETE", &[("mcp-protocol-version", "2025-06-18")], Value::Null).await.json(400).await;
    assert!(shared.sessions.load(id).await.expect("a store").is_some(), "it is still there");
    client.ask(&one, "tools/call", json!({ "name": "slow" })).await.text("no such thing").await;
    while shared.events.usage().events == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    settle().await;
    assert!(shared.sessions.load(id).await.expect("a store").is_none());
    assert_eq!(shared.events.usage().events, 0, "it cannot be resumed");
    assert_eq!((notes.take(), selected.load(Ordering::SeqCst)), (Vec::<String>::new(), 0));
    let metrics = two.session_metrics().expect("sessions");
    assert_eq!((metrics.adopted, metrics.live), (0, 0));
    client.send(&two, "DELETE", &[], Value::Null).await.json(404).await;
    client.ask(&one, "ping", json!({})).await.json(404).await;
}

/// A session that is being resumed is deleted at once; the request that resumes it finds that out.
// covers: MIS-5
#[tokio::test]
async fn mis_5_a_session_is_deleted_while_it_is_resumed() {
    let (shared, gate) = (Shared::default(), Gate::default());
    let (one, waiting) = (shared.instance().0, gate.clone());
    let options = shared.options().session_migration(move |_: SessionMigration| {
        let waiting = waiting.clone();
        async move {
            waiting.wait().await;
            Ok(())
        }
    });
    let two = HttpService::with_options(server(), options);
    let client = Arc::new(Client::initialize(&one, None).await);
    let pinged = tokio::spawn({
        let (client, two) = (Arc::clone(&client), two.clone());
        async move { client.ask(&two, "ping", json!({})).await.json(404).await }
    });
    settle().await;
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    assert!(!pinged.is_finished());
    gate.open();
    pinged.await.expect("an answer");
    let metrics = two.session_metrics().expect("sessions");
    assert_eq!((metrics.live, metrics.ended(EndReason::Deleted)), (0, 1));
}
