//! Servers that mistreat those who follow their tasks.

use std::time::Duration;

use mcp_client::{Error, FollowLimits, TaskError, TransportKind};
use mcp_testkit::{ScriptedServer, Task};
use serde_json::{Value, json};

use super::{SECOND, answer_first, completed, create, created, expect_task_cancelled, polled, started, task};
use crate::fixtures::builder;

/// A server is neither polled without a pause nor waited for without a poll.
// covers: TK-18, SEC-7
#[test]
fn tk_18_intervals_are_clamped() {
    for (interval, expected) in [
        (json!(0), Duration::from_millis(250)),
        (json!(-5), Duration::from_millis(250)),
        (json!(i64::MAX), SECOND * 60),
        (json!(2000), SECOND * 2),
    ] {
        let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
        let poll = polled(&mut server, &mut call, SECOND);
        answer_first(&mut server, &mut call, &poll, task("working", json!({ "pollIntervalMs": interval })));
        server.advance(expected - Duration::from_millis(1));
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, Duration::from_millis(1));
        server.respond(&poll, completed("done"));
        call.finish().unwrap();
    }
}

/// Responses that make no sense end the call with what is wrong, and the task is cancelled.
#[test]
fn responses_that_make_no_sense_are_errors() {
    let form = json!({ "method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": { "type": "object", "properties": {} },
    } });
    let long_key = task("input_required", json!({ "inputRequests": { "k".repeat(1025): form } }));
    for (state, expected) in [
        (task("paused", json!({})), "paused"),
        (task("working", json!({ "taskId": "t2" })), "another task, `t2`"),
        (task("completed", json!({})), "no `result`"),
        (task("failed", json!({})), "no `error`"),
        (task("working", json!({ "resultType": "task" })), "tasks/get"),
        (task("working", json!({ "resultType": "input_required" })), "requires input"),
        (json!({ "resultType": "complete" }), "taskId"),
        (task("input_required", json!({ "inputRequests": [] })), "inputRequests"),
        (long_key, "1025 bytes"),
    ] {
        let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, state.clone());
        let error = call.finish().unwrap_err();
        assert!(matches!(error, Error::InvalidResponse(_)), "{state}: {error}");
        assert!(error.to_string().contains(expected), "{state}: {error}");
        expect_task_cancelled(&mut server);
    }
}

/// A task whose creation makes no sense is not followed.
#[test]
fn tasks_that_make_no_sense_are_errors() {
    let of_id = |id: String| task("working", json!({ "resultType": "task", "taskId": id }));
    for (created, expected) in [
        (of_id(String::new()), "0 bytes"),
        (of_id("x".repeat(1025)), "1025 bytes"),
        (json!({ "resultType": "task", "task": created() }), "taskId"),
        (task("new", json!({ "resultType": "task" })), "new"),
    ] {
        let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
        let mut call = Task::start(client.call_tool("t"));
        create(&mut server, created);
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::InvalidResponse(why) if why.contains(expected)), "{error}");
        server.assert_quiet();
    }
}

/// Results beyond the limit are refused, by a poll as by a notification.
// covers: SEC-7
#[test]
fn sec_7_results_are_bounded() {
    let limits = FollowLimits::default().max_bytes(1000);
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder().follow_limits(limits));
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, completed(&"x".repeat(1000)));
    let error = call.finish().unwrap_err();
    assert!(matches!(error, Error::Task(TaskError::TooLong { limit: 1000 })), "{error}");
    assert!(error.to_string().contains("FollowLimits::max_bytes"));
    expect_task_cancelled(&mut server);
}

/// However many notifications make no sense, the task is not polled more often than the limit allows.
// covers: SEC-7
#[test]
fn sec_7_notifications_cause_no_flood_of_polls() {
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
    let nonsense = |server: &mut ScriptedServer, call: &mut super::Calling| {
        for state in [json!({ "taskId": "t1" }), json!({ "taskId": "t2" }), Value::Null, json!({ "taskId": 7 })] {
            let params = if state.is_null() { json!({}) } else { state };
            server.notify("notifications/tasks", params);
            call.assert_pending();
        }
    };
    let poll = polled(&mut server, &mut call, SECOND);
    answer_first(&mut server, &mut call, &poll, task("working", json!({ "pollIntervalMs": 30_000 })));
    for _ in 0..5 {
        nonsense(&mut server, &mut call);
        server.advance(Duration::from_millis(249));
        nonsense(&mut server, &mut call);
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, Duration::from_millis(1));
        server.respond(&poll, task("working", json!({ "pollIntervalMs": 30_000 })));
        call.assert_pending();
    }
    // The last ones have been one more reason.
    polled(&mut server, &mut call, Duration::from_millis(250));
}
