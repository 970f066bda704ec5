//! Batches, which only 2025-03-26 has.

use mcp_kernel::server::{Delivery, Event, Route};
use mcp_kernel::{CallError, CallOptions, PeerMisbehaved};
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::{CallToolResult, Method, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config};

fn call(id: i64) -> Value {
    request(id, "tools/call", json!({}))
}

fn ping(id: i64) -> Value {
    request(id, "ping", json!({}))
}

/// Answers travel together, when the last one is there.
// covers: B-8
#[test]
fn answers_travel_together() {
    for mut script in [Script::initialized("2025-03-26"), Script::legacy_request(Revision::V2025_03_26)] {
        script.send(json!([ping(1), call(2), notification("x/told", json!({})), call(3)]));
        let second = script.asked();
        assert!(matches!(script.event(), Event::Notification { method, .. } if method.as_str() == "x/told"));
        let third = script.asked();
        script.connection.respond(third.responder, Ok(CallToolResult::text("c")));
        script.silence();
        script.connection.respond(second.responder, Ok(CallToolResult::text("b")));
        let reply = script.reply();
        let ids: Vec<_> = reply.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(ids, [json!(1), json!(3), json!(2)]);
        script.assert_nothing_left();
    }
}

/// All other revisions refuse them as a whole, with the id that they write for none.
// covers: B-8, M-18
#[test]
fn other_revisions_refuse_batches() {
    for (version, id) in [("2024-11-05", Some(json!(null))), ("2025-06-18", Some(json!(null))), ("2025-11-25", None)] {
        let mut script = Script::initialized(version);
        script.send(json!([ping(1)]));
        let reply = script.reply();
        assert_eq!((reply.get("id"), &reply["error"]["code"]), (id.as_ref(), &json!(-32600)));
        assert!(matches!(script.complaint(), PeerMisbehaved::BatchNotAllowed));
        script.assert_nothing_left();
    }
    for mut script in [Script::new(), Script::modern_request()] {
        script.send(json!([modern_request(1, "tools/list", json!({}))]));
        assert_eq!(script.reply()["error"]["code"], -32600);
        assert!(matches!(script.complaint(), PeerMisbehaved::BatchNotAllowed));
        script.assert_nothing_left();
    }
}

/// Neither the handshake nor modern requests travel in a batch, and nothing of it is done.
// covers: B-7, DU-20
#[test]
fn some_requests_do_not_travel_in_batches() {
    let mut script = Script::initialized("2025-03-26");
    for foreign in [initialize(2, "2025-03-26", json!({})), modern_request(2, "tools/list", json!({}))] {
        script.send(json!([call(1), foreign]));
        let reply = script.reply();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(null), &json!(-32600)));
        assert!(matches!(script.complaint(), PeerMisbehaved::BatchNotAllowed));
    }
    script.assert_nothing_left();
}

/// Notifications alone are not answered, and no empty batch is sent.
// covers: M-14
#[test]
fn notifications_alone_are_not_answered() {
    let mut script = Script::initialized("2025-03-26");
    script.send(json!([notification("x/a", json!({})), notification("x/b", json!({}))]));
    assert!(matches!(script.event(), Event::Notification { .. }));
    assert!(matches!(script.event(), Event::Notification { .. }));
    script.assert_nothing_left();
}

/// JSON-RPC 2.0, section 6: what is wrong with one element is answered among the others.
#[test]
fn invalid_elements_are_answered_within() {
    let mut script = Script::initialized("2025-03-26");
    let unknown = request(4, "no/such", json!({}));
    script.send(json!([1, { "jsonrpc": "2.0", "id": 2, "method": 5 }, call(3), call(3), unknown]));
    script.complaint();
    script.complaint();
    let asked = script.asked();
    script.complaint();
    script.complaint();
    script.silence();
    script.connection.respond(asked.responder, Ok(CallToolResult::text("a")));
    let reply = script.reply();
    let told: Vec<_> =
        reply.as_array().unwrap().iter().map(|a| (a["id"].clone(), a["error"]["code"].as_i64())).collect();
    let expected = [
        (json!(null), Some(-32600)),
        (json!(2), Some(-32600)),
        (json!(3), Some(-32600)),
        (json!(4), Some(-32601)),
        (json!(3), None),
    ];
    assert_eq!(told, expected);
    script.assert_nothing_left();
}

/// What was cancelled is missing from the answer; if nothing else is left, there is none.
// covers: K-5
#[test]
fn cancelled_elements_are_missing() {
    let mut script = Script::initialized("2025-03-26");
    script.send(json!([call(1), call(2)]));
    let (first, second) = (script.asked(), script.asked());
    script.connection.respond(first.responder, Ok(CallToolResult::text("a")));
    script.silence();
    script.send(cancelled(2));
    assert_eq!(script.given_up(), second.key());
    let reply = script.reply();
    assert_eq!((reply.as_array().unwrap().len(), &reply[0]["id"]), (1, &json!(1)));
    assert_eq!(script.connection.respond(second.responder, Ok(CallToolResult::text("b"))), Delivery::NotSent);
    // Cancelled by the batch itself.
    script.send(json!([call(3), cancelled(3)]));
    let third = script.asked();
    assert_eq!(script.given_up(), third.key());
    script.assert_nothing_left();
}

/// Elements wait like other requests, and the whole answer waits with them.
#[test]
fn elements_wait_in_line() {
    let mut narrow = config();
    (narrow.limits.max_in_flight, narrow.limits.max_queued) = (1, 1);
    let mut script = Script::initialized_with(narrow, "2025-03-26", json!({}));
    script.send(json!([call(1), call(2), call(3)]));
    let first = script.asked();
    assert!(matches!(script.complaint(), PeerMisbehaved::TooManyRequests));
    script.connection.respond(first.responder, Ok(CallToolResult::text("a")));
    let second = script.asked();
    script.silence();
    script.connection.respond(second.responder, Ok(CallToolResult::text("b")));
    assert_eq!(script.reply().as_array().unwrap().len(), 3);
    script.assert_nothing_left();
}

/// The client answers in a batch too; a malformed answer ends its call and is not answered.
// covers: B-8
#[test]
fn answers_may_come_in_a_batch() {
    let mut script = Script::initialized("2025-03-26");
    let now = script.now();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let call = script.connection.call(now, None, Method::PING, &RawObject::empty(), CallOptions::default());
        calls.push(call.unwrap());
        script.next();
    }
    script.send(json!([
        { "jsonrpc": "2.0", "id": 1, "result": {} },
        { "jsonrpc": "2.0", "id": 2, "result": "wrong" },
        { "jsonrpc": "2.0", "method": "x/told", "params": [] },
    ]));
    assert!(matches!(script.event(), Event::CallFinished { call, outcome: Ok(_) } if call == calls[0]));
    let event = script.event();
    assert!(matches!(event, Event::CallFinished { outcome: Err(CallError::InvalidResponse), .. }), "{event:?}");
    script.complaint();
    script.complaint();
    script.assert_nothing_left();
}

/// What belongs to one element does not wait for the others, and travels on the stream of the batch.
#[test]
fn progress_does_not_wait_for_the_batch() {
    let mut script = Script::initialized("2025-03-26");
    let batch = json!([request(1, "tools/call", json!({ "_meta": { "progressToken": "t" } }))]).to_string();
    let now = script.now();
    let stream = script.connection.handle_bytes(now, batch.as_bytes(), None).expect("it is answered");
    let asked = script.asked();
    script.connection.progress(asked.key(), 1, None, None);
    assert_eq!(script.next().0, Route::Related(stream));
    script.connection.block(Route::Related(stream));
    script.connection.progress(asked.key(), 2, None, None);
    script.connection.respond(asked.responder, Ok(CallToolResult::text("a")));
    script.silence();
    script.connection.unblock(Route::Related(stream));
    assert_eq!(script.next().0, Route::Related(stream), "nothing overtakes");
    let (route, answer) = script.next();
    assert_eq!((route, answer.as_array().unwrap().len()), (Route::Reply(stream), 1));
    script.assert_nothing_left();
}

/// Nothing of a batch outlives the connection.
#[test]
fn a_disconnect_ends_a_batch() {
    let mut script = Script::initialized("2025-03-26");
    script.send(json!([ping(1), call(2)]));
    let asked = script.asked();
    script.connection.handle_disconnect();
    assert_eq!(script.given_up(), asked.key());
    assert!(matches!(script.event(), Event::Closed));
    script.assert_nothing_left();
}

/// The number of elements has a limit.
#[test]
fn batches_have_a_limit() {
    let mut small = config();
    small.limits.message = small.limits.message.max_batch_size(2);
    let mut script = Script::initialized_with(small, "2025-03-26", json!({}));
    script.send(json!([ping(1), ping(2), ping(3)]));
    assert_eq!(script.reply()["error"]["code"], -32600);
    script.complaint();
    script.send(json!([]));
    assert_eq!(script.reply()["error"]["code"], -32600);
    script.complaint();
    script.assert_nothing_left();
}
