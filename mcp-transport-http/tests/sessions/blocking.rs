//! Handlers that block the thread on which they run: that is their session's affair alone.

use std::sync::mpsc::{self, Receiver};

use mcp_session::{EndReason, SessionOptions};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::HttpService;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::raw_http::Post;
use crate::session_client::{Client, NEWEST, initialize, metrics, stateful};
use crate::threads::{Blocking, LIMIT, WORKERS, runtime, spawn, wait};

/// Opens sessions, and has the handler of the first one block.
fn blocked(runtime: &Runtime, blocking: &Blocking, service: &HttpService) -> (Client, Client, Receiver<String>) {
    let opened = service.clone();
    let clients = async move { (Client::open(&opened, NEWEST).await, Client::open(&opened, NEWEST).await) };
    let (client, other) = wait(&spawn(runtime, clients), "opening sessions");
    let caller = client.clone();
    let call = async move { tool_text(&caller.tool("block").id(1.into()).json(&caller.service, 200).await).to_owned() };
    let call = spawn(runtime, call);
    blocking.begins();
    (client, other, call)
}

/// As many requests to the session of a handler that blocks as there are threads: they are answered, and so are others.
// covers: SEC-6
#[test]
fn sec_6_a_handler_that_blocks_its_thread_delays_nobody_else() {
    let (runtime, mut blocking) = (runtime(), Blocking::new());
    let service = HttpService::with_options(blocking.server.clone(), stateful());
    let (client, other, call) = blocked(&runtime, &blocking, &service);
    let pings: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (sender, has_begun) = mpsc::channel();
            let client = client.clone();
            let ping = spawn(&runtime, async move {
                let _ = sender.send(());
                client.request("ping", json!({})).id(json!(100 + number)).json(&client.service, 200).await
            });
            (has_begun, ping)
        })
        .collect();
    let begun = pings.iter().filter(|(has_begun, _)| has_begun.recv_timeout(LIMIT / 4).is_ok()).count();
    assert_eq!(begun, WORKERS, "no thread is held up by a session that somebody else runs");
    let hello = spawn(&runtime, async move { other.call("hello").await });
    assert_eq!(wait(&hello, "another client"), "hello");
    // What needs no handler does not wait for one, and what needs one waits for its turn.
    for (_, ping) in &pings {
        assert!(wait(ping, "a ping")["result"].is_object());
    }
    let next = client;
    let next = async move { tool_text(&next.tool("hello").id(2.into()).json(&next.service, 200).await).to_owned() };
    let next = spawn(&runtime, next);
    blocking.release();
    assert_eq!(wait(&call, "the call"), "released");
    assert_eq!(wait(&next, "the next call"), "hello");
}

/// What is handed over while the handler blocks is done by whoever runs the session, in order and without being asked.
// covers: SEC-6
#[test]
fn sec_6_messages_that_come_meanwhile_are_not_lost() {
    let (runtime, mut blocking) = (runtime(), Blocking::new());
    let service = HttpService::with_options(blocking.server.clone(), stateful());
    let (client, _, call) = blocked(&runtime, &blocking, &service);
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let (client, (sender, has_begun)) = (client.clone(), mpsc::channel());
            let call = spawn(&runtime, async move {
                let mut pending = client.tool("hello").id(json!(100 + number)).send(&client.service);
                pending.starts().await;
                let _ = sender.send(());
                tool_text(&pending.reply().await.json(200).await).to_owned()
            });
            wait(&has_begun, "handing a message over");
            call
        })
        .collect();
    // A notification is accepted at once, too.
    let notifying = client;
    let params = json!({ "requestId": 119, "reason": "not needed" });
    wait(&spawn(&runtime, async move { notifying.notify("notifications/cancelled", params).await }), "a notification");
    blocking.release();
    assert_eq!(wait(&call, "the call"), "released");
    for call in &calls[..19] {
        assert_eq!(wait(call, "a call"), "hello");
    }
}

/// What is handed over while a handler blocks takes no more memory than the limits say.
// covers: SEC-6
#[test]
fn sec_6_what_waits_for_a_handler_that_blocks_is_bounded() {
    let (runtime, mut blocking) = (runtime(), Blocking::new());
    let service = HttpService::with_options(blocking.server.clone(), stateful());
    let (client, _, call) = blocked(&runtime, &blocking, &service);
    let flooding = client.clone();
    let statuses = wait(
        &spawn(&runtime, async move {
            let mut statuses = Vec::new();
            for _ in 0..1_200 {
                let message = json!({ "jsonrpc": "2.0", "method": "notifications/custom", "params": {} });
                statuses.push(flooding.own(Post::message(message)).to(&flooding.service).await.status.as_u16());
            }
            statuses
        }),
        "a flood",
    );
    assert_eq!((statuses.first(), statuses.last()), (Some(&202), Some(&503)));
    let refused = statuses.iter().position(|status| *status == 503);
    assert!(refused.is_some_and(|first| first <= 1_024 && statuses[first..].iter().all(|status| *status == 503)));
    blocking.release();
    assert_eq!(wait(&call, "the call"), "released");
    let next = client;
    assert_eq!(wait(&spawn(&runtime, async move { next.call("hello").await }), "the next call"), "hello");
}

/// The end of a session does not wait for a handler that blocks, whoever wants it.
// covers: SEC-6
#[test]
fn sec_6_sessions_end_while_a_handler_blocks() {
    let (runtime, mut blocking) = (runtime(), Blocking::new());
    let options = SessionOptions::default().idle_limit(1);
    let service = HttpService::with_options(blocking.server.clone(), stateful().session_options(options));
    let (client, other, call) = blocked(&runtime, &blocking, &service);
    for _ in 0..WORKERS {
        // Each new session evicts the idle one before it.
        let service = service.clone();
        let opened = spawn(&runtime, async move { initialize(NEWEST, json!({})).to(&service).await.status.as_u16() });
        assert_eq!(wait(&opened, "another session"), 200);
    }
    assert!(metrics(&service).ended(EndReason::Evicted) > 0);
    let deleting = client.clone();
    let deleted = spawn(&runtime, async move { deleting.delete().to(&deleting.service).await.status.as_u16() });
    assert_eq!(wait(&deleted, "the end of the session"), 204);
    let late = client;
    let late = spawn(&runtime, async move { late.tool("hello").to(&late.service).await.status.as_u16() });
    assert_eq!(wait(&late, "a request to a session that has ended"), 404);
    drop(other);
    blocking.release();
    // Whoever runs the handler delivers what comes of it before the session is taken apart.
    assert_eq!(wait(&call, "the call"), "released");
}
