//! Handlers that block the thread on which they run: that is their client's affair alone.

use std::sync::mpsc;

use mcp_testkit::envelope::request;
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::HttpOptions;
use serde_json::json;

use crate::client::{Client, both, call};
use crate::threads::{Blocking, LIMIT, WORKERS, runtime, spawn, wait};

/// As many messages to the client of a handler that blocks as there are threads: they are taken, and others are served.
// covers: SEC-6
#[test]
fn sec_6_a_handler_that_blocks_its_thread_delays_nobody_else() {
    let (runtime, mut blocking) = (runtime(), Blocking::new());
    let (_, sse) = both(blocking.server.clone(), HttpOptions::default());
    let opening = async move { (Client::ready(&sse).await, Client::ready(&sse).await) };
    let (mut client, mut other) = wait(&spawn(&runtime, opening), "opening streams");
    wait(&spawn(&runtime, client.tell(call("block", "block"))), "the call");
    let pings: Vec<_> = (0..WORKERS).map(|number| client.tell(request(number, "ping", json!({})))).collect();
    let stream = spawn(&runtime, async move {
        let mut messages = Vec::new();
        for _ in 0..=WORKERS {
            messages.push(client.message().await);
        }
        messages
    });
    blocking.begins();
    let pings: Vec<_> = pings
        .into_iter()
        .map(|ping| {
            let (sender, has_begun) = mpsc::channel();
            let ping = spawn(&runtime, async move {
                let _ = sender.send(());
                ping.await;
            });
            (has_begun, ping)
        })
        .collect();
    let begun = pings.iter().filter(|(has_begun, _)| has_begun.recv_timeout(LIMIT / 4).is_ok()).count();
    assert_eq!(begun, WORKERS, "no thread is held up by a client whose handler runs");
    let hello = spawn(&runtime, async move {
        other.tell(call("hello", "hello")).await;
        tool_text(&other.message().await).to_owned()
    });
    assert_eq!(wait(&hello, "another client"), "hello");
    for (_, ping) in &pings {
        wait(ping, "a ping");
    }
    blocking.release();
    let messages = wait(&stream, "the stream");
    assert_eq!(messages.len(), WORKERS + 1);
    let answer = messages.iter().find(|message| message["id"] == "block").expect("the answer");
    assert_eq!(tool_text(answer), "released");
}

/// A stream may be dropped, and its client served no more, while others go on.
// covers: SEC-6
#[test]
fn sec_6_messages_to_a_stream_that_ends_are_refused_at_once() {
    let runtime = runtime();
    let (_, sse) = both(Blocking::new().server, HttpOptions::default());
    let opened = sse.clone();
    let client = wait(&spawn(&runtime, async move { Client::ready(&opened).await }), "opening a stream");
    let late = client.send(call("late", "hello"));
    drop(client);
    assert_eq!(wait(&spawn(&runtime, async move { late.await.status.as_u16() }), "a late message"), 404);
    assert_eq!(sse.streams(), 0);
}
