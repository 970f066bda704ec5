//! Servers that report the changes of tasks on a stream.

use std::time::Duration;

use mcp_client::{Client, Limits, TransportKind};
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task};
use serde_json::{Value, json};

use super::{Calling, SECOND, completed, create, created, polled, started, task};
use crate::fixtures::{KINDS, builder};

/// A call whose task is reported on a stream.
#[track_caller]
fn watched(kind: TransportKind) -> (Client, ScriptedServer, Calling, ReceivedRequest) {
    let (client, mut server, mut call) = started(kind, builder());
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, task("working", json!({})));
    call.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.acknowledge(&listen, json!({ "taskIds": ["t1"] }));
    call.assert_pending();
    // What changed before the acknowledgement is not reported.
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, task("working", json!({})));
    call.assert_pending();
    (client, server, call, listen)
}

fn report(server: &ScriptedServer, listen: &ReceivedRequest, mut state: Value) {
    state["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": listen.id });
    state.as_object_mut().unwrap().remove("resultType");
    server.notify_on(listen, "notifications/tasks", state);
}

/// Changes that are reported need no poll; the stream ends with the task.
// covers: L-17
#[test]
fn tk_32_changes_are_reported() {
    for kind in KINDS {
        let (_client, mut server, mut call, listen) = watched(kind);
        report(&server, &listen, task("working", json!({ "statusMessage": "half" })));
        call.assert_pending();
        server.advance(SECOND * 10);
        call.assert_pending();
        server.assert_quiet();
        report(&server, &listen, completed("done"));
        assert_eq!(call.finish().unwrap().to_text(), "done");
        server.expect_cancelled(&listen);
        server.assert_quiet();
    }
}

/// Notifications may get lost, so the task is polled now and then; and soon if the stream breaks.
// covers: TK-18
#[test]
fn tk_32_a_stream_may_be_silent_or_break() {
    for kind in KINDS {
        let (_client, mut server, mut call, listen) = watched(kind);
        server.advance(SECOND * 29);
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("working", json!({})));
        call.assert_pending();
        server.advance(SECOND * 5);
        call.assert_pending();
        server.respond(&listen, json!({ "resultType": "complete" }));
        call.assert_pending();
        server.advance(Duration::from_millis(1));
        call.assert_pending();
        let poll = server.expect_request("tasks/get");
        server.respond(&poll, task("working", json!({})));
        call.assert_pending();
        // It was open for long enough to be opened again.
        let listen = server.expect_request("subscriptions/listen");
        server.acknowledge(&listen, json!({ "taskIds": ["t1"] }));
        call.assert_pending();
        server.respond(&listen, json!({ "resultType": "complete" }));
        call.assert_pending();
        server.advance(SECOND);
        call.assert_pending();
        let poll = server.expect_request("tasks/get");
        server.respond(&poll, task("working", json!({})));
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, completed("done"));
        call.finish().unwrap();
        server.assert_quiet();
    }
}

/// A server that has refused one stream is asked for no other, until it is replaced.
#[test]
fn streams_that_were_refused_are_not_asked_for_again() {
    for (refusal, is_asked_again) in [(None, false), (Some(json!({})), false), (Some(json!({ "taskIds": [] })), true)] {
        let (client, mut server, mut call) = started(TransportKind::Pipe, builder());
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("working", json!({})));
        call.assert_pending();
        let listen = server.expect_request("subscriptions/listen");
        match &refusal {
            None => server.respond_error(&listen, -32601),
            Some(filter) => server.acknowledge(&listen, filter.clone()),
        }
        call.assert_pending();
        if refusal.is_some() {
            server.expect_cancelled(&listen);
        }
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, completed("done"));
        call.finish().unwrap();

        let mut call = Task::start(client.call_tool("render"));
        create(&mut server, created());
        call.assert_pending();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("working", json!({})));
        call.assert_pending();
        if is_asked_again {
            server.expect_request("subscriptions/listen");
        }
        server.assert_quiet();
    }
}

/// Streams leave most calls in flight to others.
#[test]
fn streams_are_bounded() {
    let mut limits = Limits::default();
    limits.max_calls = 4;
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().limits(limits));
    let mut calls: Vec<Calling> = (0..3).map(|_| Task::start(client.call_tool("render"))).collect();
    for call in &mut calls {
        create(&mut server, created());
        call.assert_pending();
    }
    server.advance(SECOND);
    calls.iter_mut().for_each(Task::assert_pending);
    let polls: Vec<_> = calls.iter().map(|_| server.expect_request("tasks/get")).collect();
    for poll in &polls {
        server.respond(poll, task("working", json!({})));
    }
    calls.iter_mut().for_each(Task::assert_pending);
    server.expect_request("subscriptions/listen");
    server.assert_quiet();
}

/// Notifications of tasks that are not followed are for the application.
#[test]
fn other_notifications_of_tasks_are_passed_on() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(0));
    let counted = std::sync::Arc::clone(&seen);
    let builder = builder().on_notification(move |_, _, _| *counted.lock().unwrap() += 1);
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder);
    call.assert_pending();
    server.notify("notifications/tasks", task("working", json!({ "taskId": "other" })));
    server.poll();
    assert_eq!(*seen.lock().unwrap(), 1);
    server.notify("notifications/tasks", task("working", json!({})));
    server.poll();
    assert_eq!(*seen.lock().unwrap(), 1);
}
