//! Cancellation, and the end of streams and connections.

use mcp_kernel::RequestKey;
use mcp_kernel::server::{Delivery, Event};
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::{CallToolResult, ErrorObject};
use serde_json::{Value, json};

use crate::script::Script;

/// After the cancellation nothing goes out, neither the answer nor what was queued.
// covers: K-5, IO-10
#[test]
fn a_cancelled_request_is_silent() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({ "_meta": { "progressToken": "t" } })));
    let key = asked.key();
    assert_eq!(script.connection.progress(key, 1, None, None), Delivery::Queued);
    let reason = json!({ "requestId": 1, "reason": "bored" });
    script.send(notification("notifications/cancelled", reason));
    let event = script.event();
    let Event::Cancelled { request, reason } = event else { panic!("{event:?}") };
    assert_eq!((request, reason.as_deref()), (key, Some("bored")));
    assert_eq!(script.connection.progress(key, 2, None, None), Delivery::NotSent);
    let late = script.connection.respond(asked.responder, Ok(CallToolResult::text("late")));
    assert_eq!(late, Delivery::NotSent);
    script.assert_nothing_left();
}

/// A late error is left out like a late result.
// covers: K-5
#[test]
fn a_late_error_is_left_out() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    script.send(cancelled(1));
    assert_eq!(script.given_up(), asked.key());
    let error = Err::<CallToolResult, _>(ErrorObject::internal_error("stopped"));
    assert_eq!(script.connection.respond(asked.responder, error), Delivery::NotSent);
    script.assert_nothing_left();
}

/// What names nothing, or is malformed, is ignored without a word.
// covers: K-6, K-8, K-9, S4.81
#[test]
fn cancellations_of_nothing_are_ignored() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    script.send(cancelled(2));
    script.send(cancelled("1"));
    for params in [json!({}), json!({ "requestId": null }), json!({ "requestId": {} }), json!({ "requestId": 1.5 })] {
        script.send(notification("notifications/cancelled", params));
    }
    script.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" }));
    script.no_event();
    script.done(asked.responder);
    // The answer crossed the cancellation.
    script.send(cancelled(1));
    script.send(cancelled(1));
    script.assert_nothing_left();
}

/// `initialize` cannot be cancelled.
// covers: B-6
#[test]
fn initialize_is_not_cancellable() {
    let mut script = Script::new();
    script.send(initialize(1, "2025-11-25", json!({})));
    script.send(cancelled(1));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-11-25");
    script.assert_nothing_left();
}

/// The end of its stream cancels a modern request and not a legacy one.
// covers: H-25, B-28, DU-25
#[test]
fn the_end_of_a_stream_cancels_by_era() {
    let mut script = Script::initialized("2025-11-25");
    let new = script.served(modern_request(1, "tools/call", json!({})));
    let old = script.served(request(2, "tools/call", json!({})));
    script.connection.handle_stream_closed(new.key());
    assert_eq!(script.given_up(), new.key());
    script.connection.handle_stream_closed(old.key());
    script.no_event();
    assert_eq!(script.connection.respond(new.responder, Ok(CallToolResult::text("late"))), Delivery::NotSent);
    let key = old.key();
    assert!(script.done(old.responder)["result"].is_object());
    script.connection.handle_stream_closed(key);
    script.assert_nothing_left();
}

fn open_everything(script: &mut Script) -> (RequestKey, RequestKey) {
    let old = script.served(request(1, "tools/call", json!({ "_meta": { "progressToken": 1 } })));
    script.connection.progress(old.key(), 1, None, None);
    script.send(modern_request(2, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })));
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    (old.key(), scope.key())
}

/// When the client is gone, everything ends, once, and nothing is kept for it.
// covers: H-25, S2.9
#[test]
fn a_disconnect_ends_everything() {
    let mut script = Script::initialized("2025-11-25");
    let (old, listen) = open_everything(&mut script);
    script.connection.handle_disconnect();
    assert_eq!(script.given_up(), old);
    assert!(matches!(script.event(), Event::ListeningEnded(key) if key == listen));
    assert!(matches!(script.event(), Event::Closed));
    script.connection.handle_disconnect();
    script.connection.close();
    script.send(modern_request(3, "tools/call", json!({})));
    script.send_text("nonsense");
    script.assert_nothing_left();
}

/// A close from this side ends subscriptions with their result, and gives the rest up.
// covers: L-11
#[test]
fn a_close_ends_subscriptions_properly() {
    let mut script = Script::initialized("2025-11-25");
    let (old, listen) = open_everything(&mut script);
    assert_eq!(script.next().1["method"], "notifications/progress");
    assert_eq!(script.next().1["method"], "notifications/subscriptions/acknowledged");
    script.connection.close();
    assert!(matches!(script.event(), Event::ListeningEnded(key) if key == listen));
    assert_eq!(script.given_up(), old);
    assert!(matches!(script.event(), Event::Closed));
    let reply: Value = script.reply();
    assert_eq!((&reply["id"], &reply["result"]["resultType"]), (&json!(2), &json!("complete")));
    script.connection.close();
    script.assert_nothing_left();
}

/// A modern server ends subscriptions by their result, and cancels nothing that its client asked for.
// covers: K-4, AMB-1
#[test]
fn a_modern_server_cancels_nothing() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    for id in [2, 3] {
        script.send(modern_request(
            id,
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
        ));
    }
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    script.event();
    script.connection.end_listening(scope.key()).unwrap();
    script.event();
    script.connection.close();
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    assert_eq!(script.given_up(), asked.key());
    assert!(matches!(script.event(), Event::Closed));
    let mut ended = Vec::new();
    while let Some(transmit) = script.connection.poll_transmit() {
        let message: Value = serde_json::from_slice(&transmit.message).expect("JSON");
        assert_ne!(message["method"], "notifications/cancelled", "{message}");
        ended.extend(message.get("id").cloned());
    }
    assert_eq!(ended, [json!(2), json!(3)]);
    script.assert_nothing_left();
}
