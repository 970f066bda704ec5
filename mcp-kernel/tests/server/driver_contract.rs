//! What the crate page promises to drivers.

use mcp_kernel::server::Event;
use mcp_kernel::{CallOptions, CommandError};
use mcp_testkit::envelope::{modern_request, request};
use mcp_types::{CallToolResult, Method, RawObject};
use serde_json::json;

use crate::script::{Script, config};

/// A response lets a queued request start, so emptying a connection is a loop.
// covers: GW-11
#[test]
fn gw_11_a_response_causes_an_event() {
    let mut limited = config();
    limited.limits.max_in_flight = 1;
    let mut script = Script::with(limited);
    for id in [1, 2] {
        script.send(modern_request(id, "tools/call", json!({})));
    }
    let first = script.asked();
    script.no_event();
    assert_eq!(script.done(first.responder)["id"], 1);
    let second = script.asked();
    assert_eq!(script.done(second.responder)["id"], 2);
    script.assert_nothing_left();
}

/// What was queued before `close` is still sent after it. Commands are refused, and inputs do nothing.
// covers: GW-11
#[test]
fn gw_11_queued_messages_are_sent_after_close() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.connection.close();
    assert!(matches!(script.event(), Event::Closed));
    assert_eq!(script.reply()["id"], 1);
    let now = script.now();
    let called = script.connection.call(now, None, Method::PING, &RawObject::empty(), CallOptions::default());
    assert_eq!(called, Err(CommandError::Closed));
    script.send(request(2, "ping", json!({})));
    script.assert_nothing_left();
}

/// After a disconnect there is nothing to send.
// covers: GW-11
#[test]
fn gw_11_nothing_is_sent_after_a_disconnect() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.connection.handle_disconnect();
    assert!(matches!(script.event(), Event::Closed));
    script.assert_nothing_left();
}

/// `drain` ends what would never end by itself. Requests in flight are responded to, then the connection is idle.
// covers: GW-11
#[test]
fn gw_11_requests_are_responded_to_while_draining() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    script.send(modern_request(2, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })));
    assert!(matches!(script.event(), Event::Listening { .. }));
    assert_eq!(script.next().1["method"], "notifications/subscriptions/acknowledged");
    script.connection.drain();
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    assert_eq!(script.reply()["id"], 2);
    assert!(!script.connection.is_idle());
    assert_eq!(script.done(asked.responder)["id"], 1);
    assert!(script.connection.is_idle() && !script.connection.is_closed());
    script.assert_nothing_left();
}
