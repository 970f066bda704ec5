//! Sessions that go on wherever their client is sent.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_server::{Audience, Change, Principal};
use mcp_transport_http::session::{SessionError, SessionId, SessionStore as _, WrongOwnerPolicy};
use mcp_transport_http::{HttpService, SessionOptions};
use serde_json::{Value, json};

use crate::client::{Client, Shared, server};

/// A session goes on wherever its client is sent, with all that was settled in it.
// covers: S4.115, S4.116, RB-54
#[tokio::test]
async fn sessions_go_on_elsewhere() {
    let shared = Shared::default();
    let ((one, _), (two, server)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    client.ask(&one, "logging/setLevel", json!({ "level": "error" })).await.json(200).await;
    client.ask(&two, "resources/subscribe", json!({ "uri": "a:b" })).await.json(200).await;
    for service in [&two, &one, &two] {
        let text = client.ask(service, "tools/call", json!({ "name": "level" })).await.text("result").await;
        assert!(text.contains("\"error\"") && !text.contains("\"info\""), "{text}");
    }
    // The subscription of the other instance is known here, too, and so is what it takes back.
    let mut stream = client.send(&two, "GET", &[], Value::Null).await;
    stream.text("retry").await;
    server.publish(&Change::Resource("a:b".into()));
    assert!(stream.text("resources/updated").await.contains("a:b"));
    client.ask(&one, "resources/unsubscribe", json!({ "uri": "a:b" })).await.json(200).await;
    let again = client.ask(&two, "ping", json!({})).await.json(200).await;
    assert_eq!(again["result"], json!({}));
    server.publish(&Change::Resource("a:b".into()));
    server.publish(&Change::Resources);
    let heard = stream.text("resources/list_changed").await;
    assert!(heard.contains("resources/list_changed") && !heard.contains("resources/updated"), "{heard}");
    for service in [&one, &two] {
        let metrics = service.session_metrics().expect("sessions");
        assert_eq!((metrics.live, metrics.refused(SessionError::Unknown)), (1, 0), "nobody was turned away");
    }
}

/// The user of a session is known where it goes on, before the client has sent a message there.
// covers: AUT-3, AUT-4
#[tokio::test]
async fn aut_3_users_are_known_elsewhere() {
    let shared = Shared::default();
    let ((one, _), (two, server)) = (shared.instance(), shared.instance());
    let ann = Principal::new(Some("issuer"), "ann");
    let client = Client::initialize(&one, Some(ann.clone())).await;
    client.ask(&one, "resources/subscribe", json!({ "uri": "a:b" })).await.json(200).await;
    let mut stream = client.send(&two, "GET", &[], Value::Null).await;
    stream.text("retry").await;
    let change = Change::Resource("a:b".into());
    server.publish_to(&Audience::principal(Principal::new(Some("issuer"), "bob")), &change);
    server.publish(&Change::Resources);
    let heard = stream.text("list_changed").await;
    assert!(!heard.contains("resources/updated"), "{heard}");
    server.publish_to(&Audience::principal(ann), &change);
    assert!(stream.text("resources/updated").await.contains("a:b"));
}

/// A request that brings a session to another instance is a use of it.
// covers: S4.35, S4.115
#[tokio::test(start_paused = true)]
async fn moving_is_a_use() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        let (three, _) = shared.instance();
        client.ask(&three, "ping", json!({})).await.json(200).await;
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// An instance on which a user has too many sessions says when to come back.
// covers: RB-53
#[tokio::test]
async fn moving_needs_room() {
    let shared = Shared::default();
    let options = shared.options().session_options(SessionOptions::default().limit_per_principal(1));
    let (one, two) = (shared.instance().0, HttpService::with_options(server(), options));
    let ann = || Some(Principal::new(None, "ann"));
    let client = Client::initialize(&one, ann()).await;
    let other = Client::initialize(&two, ann()).await;
    let stream = other.send(&two, "GET", &[], Value::Null).await;
    let answer = client.ask(&two, "ping", json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.retry_after.as_deref()), (429, Some("1")));
    drop(stream);
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// Nobody takes over the session of another by going to another instance.
// covers: S4.69, S4.71, S4.116
#[tokio::test]
async fn owners_are_known_everywhere() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let ann = Principal::new(Some("issuer"), "ann");
    let client = Client::initialize(&one, Some(ann.clone())).await;
    for thief in [Some(Principal::new(Some("issuer"), "bob")), Some(Principal::new(None, "ann")), None] {
        let thief = Client { session: client.session.clone(), principal: thief };
        for service in [&one, &two] {
            thief.ask(service, "ping", json!({})).await.json(403).await;
        }
        assert_eq!(two.session_metrics().expect("sessions").live, 0, "nothing is made for a thief");
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
    let unknown = Client { session: "0".repeat(64), principal: Some(ann) };
    unknown.ask(&two, "ping", json!({})).await.json(404).await;
}

/// Whoever hides sessions from strangers hides them at every instance.
// covers: S4.71
#[tokio::test]
async fn strangers_hear_nothing_anywhere() {
    let shared = Shared::default();
    let hiding = || {
        let options = shared.options().session_options(SessionOptions::default().wrong_owner(WrongOwnerPolicy::Hidden));
        HttpService::with_options(server(), options)
    };
    let (one, two) = (hiding(), hiding());
    let client = Client::initialize(&one, Some(Principal::new(None, "ann"))).await;
    let thief = Client { session: client.session.clone(), principal: Some(Principal::new(None, "bob")) };
    for service in [&two, &one] {
        thief.ask(service, "ping", json!({})).await.json(404).await;
        assert_eq!(service.session_metrics().expect("sessions").refused(SessionError::WrongOwner), 1);
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// What clients settle at several instances at the same time is all settled.
// covers: RB-54
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_is_settled_is_lost() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Arc::new(Client::initialize(&one, None).await);
    let mut tasks = Vec::new();
    for number in 0..40 {
        let (client, service) = (Arc::clone(&client), [&one, &two][number % 2].clone());
        tasks.push(tokio::spawn(async move {
            let params = json!({ "uri": format!("a:{number}") });
            let body = json!({ "jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": params });
            // Too many at once are asked to come back.
            loop {
                let status = client.send(&service, "POST", &[], body.clone()).await.status;
                if status == StatusCode::OK {
                    break;
                }
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                tokio::task::yield_now().await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a subscription");
    }
    let id = SessionId::parse(&client.session).expect("an id");
    let kept = shared.sessions.load(id).await.expect("a store").expect("a record");
    assert_eq!(kept.record.subscriptions.len(), 40, "{:?}", kept.record.subscriptions);
}
