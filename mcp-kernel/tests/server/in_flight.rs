//! Requests that are open: ids, limits, the waiting line.

use mcp_kernel::PeerMisbehaved;
use mcp_kernel::server::{Delivery, ServerConfig};
use mcp_testkit::envelope::{cancelled, modern_request};
use mcp_types::CallToolResult;
use serde_json::{Value, json};

use crate::script::{Script, config};

fn call(id: impl Into<Value>) -> Value {
    modern_request(id, "tools/call", json!({ "name": "a" }))
}

fn narrow(in_flight: usize, waiting: usize) -> ServerConfig {
    let mut config = config();
    (config.limits.max_in_flight, config.limits.max_queued) = (in_flight, waiting);
    config
}

/// The second request with an id is refused, the first one is still answered.
// covers: M-4
#[test]
fn duplicate_ids_are_refused() {
    let mut script = Script::new();
    let first = script.served(call(1));
    script.send(call(1));
    script.refusal(1, -32600);
    assert!(matches!(script.complaint(), PeerMisbehaved::DuplicateId(id) if id == 1_u32.into()));
    let reply = script.done(first.responder);
    assert_eq!((&reply["id"], reply["result"].is_object()), (&json!(1), true));
    script.assert_nothing_left();
}

/// `1` and `"1"` are two ids, and each answer repeats its own kind.
// covers: S0.27
#[test]
fn ids_keep_their_kind() {
    let mut script = Script::new();
    let number = script.served(call(1));
    let text = script.served(call("1"));
    assert_eq!(script.done(text.responder)["id"], json!("1"));
    assert_eq!(script.done(number.responder)["id"], json!(1));
    script.assert_nothing_left();
}

/// An id is free again once its request was answered.
// covers: M-4
#[test]
fn ids_are_free_after_the_answer() {
    let mut script = Script::new();
    for _ in 0..3 {
        let asked = script.served(call(7));
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}

/// Ids are found among many requests in flight as among few, in whichever order the requests end.
// covers: M-4, S0.27
#[test]
fn ids_are_found_among_many() {
    let legacy = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "a" } });
    for (mut script, call) in
        [(Script::new(), call as fn(Value) -> Value), (Script::initialized("2025-11-25"), legacy as fn(Value) -> Value)]
    {
        for _ in 0..2 {
            // `1` and `"1"` and so on.
            let ids = (1..=49).flat_map(|number: u32| [json!(number), json!(number.to_string())]);
            let mut open: Vec<_> = ids.map(|id| (id.clone(), script.served(call(id)))).collect();
            while !open.is_empty() {
                for (id, _) in open.iter().step_by(7) {
                    script.send(call(id.clone()));
                    script.refusal(id.clone(), -32600);
                    assert!(matches!(script.complaint(), PeerMisbehaved::DuplicateId(_)));
                }
                // Each id is free again at once, and found again.
                let (id, request) = open.swap_remove(open.len() / 3);
                script.send(cancelled(id.clone()));
                assert_eq!(script.given_up(), request.key());
                let again = script.served(call(id.clone()));
                assert_eq!(script.done(again.responder)["id"], id);
                let (id, oldest) = open.swap_remove(0);
                assert_eq!(script.done(oldest.responder)["id"], id);
            }
        }
        script.assert_nothing_left();
    }
}

/// The right to answer belongs to the request, not to its id.
// covers: K-8
#[test]
fn a_stale_answer_does_not_reach_the_next_request() {
    let mut script = Script::new();
    let first = script.served(call(7));
    script.send(cancelled(7));
    assert_eq!(script.given_up(), first.key());
    let second = script.served(call(7));
    assert_ne!(first.key(), second.key());
    let late = script.connection.respond(first.responder, Ok(CallToolResult::text("stale")));
    assert_eq!(late, Delivery::NotSent);
    script.silence();
    assert_eq!(script.done(second.responder)["result"]["content"][0]["text"], "done");
    script.assert_nothing_left();
}

/// Requests beyond the limit wait in order, and run as others end.
#[test]
fn requests_wait_in_order() {
    let mut script = Script::with(narrow(2, 2));
    let (first, second) = (script.served(call(1)), script.served(call(2)));
    script.send(call(3));
    script.send(call(4));
    script.no_event();
    script.send(call(5));
    script.refusal(5, -32603);
    assert!(matches!(script.complaint(), PeerMisbehaved::TooManyRequests));
    // An id that waits is in use.
    script.refused(call(4), -32600);
    script.done(second.responder);
    let third = script.asked();
    assert_eq!(third.scope.id(), &3_u32.into());
    script.no_event();
    script.send(cancelled(1));
    assert_eq!(script.given_up(), first.key());
    let fourth = script.asked();
    assert_eq!(fourth.scope.id(), &4_u32.into());
    script.done(fourth.responder);
    script.done(third.responder);
    script.assert_nothing_left();
}

/// A request that is cancelled while it waits never starts.
// covers: K-5
#[test]
fn what_is_cancelled_while_it_waits_never_runs() {
    let mut script = Script::with(narrow(1, 2));
    let first = script.served(call(1));
    script.send(call(2));
    script.send(call(3));
    script.send(cancelled(2));
    script.no_event();
    script.done(first.responder);
    let third = script.asked();
    assert_eq!(third.scope.id(), &3_u32.into());
    script.done(third.responder);
    script.assert_nothing_left();
}

/// The end of the connection does not start what was waiting.
#[test]
fn the_end_starts_nothing() {
    for close in [true, false] {
        let mut script = Script::with(narrow(1, 2));
        let first = script.served(call(1));
        script.send(call(2));
        script.send(call(3));
        if close {
            script.connection.close()
        } else {
            script.connection.handle_disconnect()
        }
        assert_eq!(script.given_up(), first.key());
        assert!(matches!(script.event(), mcp_kernel::server::Event::Closed));
        script.assert_nothing_left();
    }
}

/// A slot that a cancelled request leaves is a slot.
#[test]
fn the_limit_counts_what_runs() {
    let mut script = Script::with(narrow(1, 0));
    for id in 0..50 {
        let asked = script.served(call(id));
        script.refused(call("more"), -32603);
        script.send(cancelled(id));
        assert_eq!(script.given_up(), asked.key());
    }
    script.assert_nothing_left();
}

/// A request is open until it is answered or cancelled, also while it waits.
// covers: S0.12
#[test]
fn a_request_is_open_until_its_end() {
    let mut script = Script::with(narrow(1, 1));
    let first = script.served(call(1));
    let second = script.connection.handle_bytes(script.now(), call(2).to_string().as_bytes(), None).expect("a handle");
    let key = first.key();
    assert!(script.connection.is_open(key) && script.connection.is_open(second));
    script.done(first.responder);
    assert!(!script.connection.is_open(key) && script.connection.is_open(second));
    script.send(cancelled(2));
    assert!(!script.connection.is_open(second));
}
