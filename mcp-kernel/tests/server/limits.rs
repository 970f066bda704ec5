//! What a client can make the server keep, in bytes.

use mcp_kernel::PeerMisbehaved;
use mcp_kernel::server::{Event, Route};
use mcp_testkit::envelope::{modern_request, request};
use serde_json::json;

use crate::script::{Script, config};

/// An id is kept and repeated, so it cannot be a book.
#[test]
fn ids_have_a_length() {
    let mut script = Script::new();
    let long = "x".repeat(1025);
    script.send(modern_request(long.clone(), "tools/list", json!({})));
    script.refusal(long, -32600);
    assert!(matches!(script.complaint(), PeerMisbehaved::IdTooLong { limit: 1024 }));
    let asked = script.served(modern_request("x".repeat(1024), "tools/call", json!({ "name": "x" })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Addresses are kept as long as they are subscribed to, in both eras.
#[test]
fn addresses_have_a_length() {
    let uri = "a:".to_owned() + &"b".repeat(8192);
    let mut script = Script::initialized("2025-11-25");
    let error = script.refused(request(1, "resources/subscribe", json!({ "uri": uri })), -32602);
    assert_eq!(error["message"], "`uri`: more than 8192 bytes (`max_uri_bytes`)");
    script.assert_nothing_left();
    let mut script = Script::new();
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    script.refused(modern_request(1, "subscriptions/listen", filter), -32602);
    script.assert_nothing_left();
}

/// Requests that wait are bounded by what they hold, not only by their number.
#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut config = config();
    (config.limits.max_in_flight, config.limits.max_queued_bytes) = (1, 1000);
    let mut script = Script::with(config);
    let call = |id: i64, size: usize| modern_request(id, "tools/call", json!({ "name": "x".repeat(size) }));
    let running = script.served(call(1, 5000));
    script.send(call(2, 700));
    script.refused(call(3, 700), -32603);
    script.done(running.responder);
    let waited = script.asked();
    script.done(waited.responder);
    script.assert_nothing_left();
}

/// A stream that is over has nothing to keep back.
#[test]
fn blocking_what_is_over_keeps_nothing() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
    let route = Route::Related(asked.key());
    script.done(asked.responder);
    script.connection.block(route);
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// What nobody took yet is bounded, and blocking its stream changes nothing about that.
#[test]
fn a_stream_that_nobody_empties_is_cut() {
    let mut config = config();
    config.limits.max_route_messages = 2;
    let mut script = Script::with(config);
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x", "_meta": { "progressToken": 1 } })));
    for done in 1..=5 {
        script.connection.progress(asked.key(), done, None, None);
    }
    // Each of the last three made an older one go, with the stream open or not; that is told once.
    assert!(matches!(script.event(), Event::Dropped { count: 3, .. }));
    script.connection.block(Route::Related(asked.key()));
    script.connection.unblock(Route::Related(asked.key()));
    assert_eq!(script.next().1["params"]["progress"], 4, "the oldest went first");
    script.next();
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Many streams that are each within their limit are not, taken together: progress waits until there is room.
#[test]
fn all_streams_together_are_cut() {
    let mut config = config();
    config.limits.max_outbox_messages = 3;
    let mut script = Script::with(config);
    let ask = |id| modern_request(id, "tools/call", json!({ "name": "x", "_meta": { "progressToken": id } }));
    let asked: Vec<_> = (0..5).map(|id| script.served(ask(id))).collect();
    for asked in &asked {
        script.connection.progress(asked.key(), 1, None, None);
    }
    let mut dropped = 0;
    while let Some(event) = script.connection.poll_event() {
        let Event::Dropped { count, .. } = event else { panic!("{event:?}") };
        dropped += count;
    }
    assert_eq!(dropped, 2);
    for token in 0..3 {
        assert_eq!(script.next().1["params"]["progressToken"], token);
    }
    for asked in asked {
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}

/// A client that asks without reading is told by way of the driver, and cut off if that does not help.
#[test]
fn whoever_does_not_read_is_cut_off() {
    for bytes in [false, true] {
        let mut config = config();
        (config.limits.max_outbox_messages, config.limits.max_outbox_bytes) =
            if bytes { (1000, 200) } else { (3, 100_000) };
        let mut script = Script::initialized_with(config, "2025-11-25", json!({}));
        let mut sent = 0;
        while script.connection.wants_input() {
            script.send(request(sent, "ping", json!({})));
            sent += 1;
        }
        assert!(sent >= 3, "{sent}");
        // A driver that stops here loses nothing.
        for id in 0..sent {
            assert_eq!(script.reply()["id"], id);
        }
        let asked = script.served(request("open", "tools/call", json!({ "name": "x" })));
        for id in 0..=sent {
            script.send(request(id, "ping", json!({})));
        }
        script.no_event();
        // What somebody else tells may have taken the room after the driver looked: once is no offence.
        assert_eq!(script.reply()["id"], 0);
        script.send(request("again", "ping", json!({})));
        script.no_event();
        script.send(request("more", "ping", json!({})));
        assert!(matches!(script.complaint(), PeerMisbehaved::NotReading));
        assert!(matches!(script.event(), Event::Cancelled { request, .. } if request == asked.key()));
        assert!(matches!(script.event(), Event::Closed));
        assert!(!script.connection.wants_input());
        script.send(request("late", "ping", json!({})));
        script.assert_nothing_left();
    }
}
