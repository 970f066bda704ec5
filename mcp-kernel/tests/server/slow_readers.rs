//! Streams whose reader does not read.

use mcp_kernel::Change;
use mcp_kernel::server::{Delivery, Event, Route, ServerConfig};
use mcp_testkit::envelope::{cancelled, modern_request, request};
use mcp_types::{CallToolResult, LoggingLevel, Method, RawJson, RawObject};
use serde_json::{Value, json};

use crate::script::{Script, config};

fn tokened(id: i64) -> Value {
    modern_request(id, "tools/call", json!({ "_meta": { "progressToken": id } }))
}

fn narrow(messages: usize) -> ServerConfig {
    let mut config = config();
    config.limits.max_route_messages = messages;
    config
}

/// One slow stream holds up no other.
// covers: RB-14
#[test]
fn a_slow_stream_is_alone() {
    let mut script = Script::new();
    let (slow, fast) = (script.served(tokened(1)), script.served(tokened(2)));
    script.connection.block(Route::Related(slow.key()));
    script.connection.progress(slow.key(), 1, None, None);
    script.connection.progress(fast.key(), 1, None, None);
    assert_eq!(script.next().0, Route::Related(fast.key()));
    script.silence();
    assert!(script.done(fast.responder)["result"].is_object());
    script.connection.unblock(Route::Related(slow.key()));
    assert_eq!(script.next().0, Route::Related(slow.key()));
    script.done(slow.responder);
    script.assert_nothing_left();
}

/// The answer does not overtake what was said before it.
// covers: Y-3, P-6
#[test]
fn the_answer_waits_for_its_stream() {
    let mut script = Script::new();
    let asked = script.served(tokened(1));
    let key = asked.key();
    script.connection.block(Route::Related(key));
    script.connection.progress(key, 1, None, None);
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.silence();
    script.connection.unblock(Route::Related(key));
    assert_eq!((script.next().0, script.next().0), (Route::Related(key), Route::Reply(key)));
    script.assert_nothing_left();
}

/// Progress is dropped first, and that shows; the answer arrives.
#[test]
fn progress_is_dropped_first() {
    let mut script = Script::with(narrow(2));
    let level = "io.modelcontextprotocol/logLevel";
    let asked =
        script.served(modern_request(1, "tools/call", json!({ "_meta": { "progressToken": 1, level: "debug" } })));
    let key = asked.key();
    script.connection.block(Route::Related(key));
    script.connection.log(Some(key), LoggingLevel::Info, RawJson::from(json!("kept")), None);
    for step in 1..=5 {
        script.connection.progress(key, step, None, None);
    }
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    let mut dropped = 0;
    while let Some(event) = script.connection.poll_event() {
        let Event::Dropped { count, .. } = event else { panic!("{event:?}") };
        dropped += count;
    }
    assert_eq!(dropped, 5);
    script.connection.unblock(Route::Related(key));
    assert_eq!(script.next().1["method"], "notifications/message");
    assert!(script.reply()["result"].is_object());
    script.assert_nothing_left();
}

/// A change that waits already says it all; other changes are other changes, whatever their name.
#[test]
fn changes_coalesce() {
    let mut script = Script::new();
    let odd = "notifications/tools/list_changed";
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": [odd, "a:b"] });
    script.send(modern_request(1, "subscriptions/listen", json!({ "notifications": filter })));
    script.next();
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    let route = Route::Listen(scope.key());
    script.connection.block(route);
    for _ in 0..1000 {
        for change in [Change::Tools, Change::Resource("a:b".into()), Change::Resource(odd.into())] {
            script.connection.publish(&change);
        }
    }
    script.silence();
    script.no_event();
    script.connection.unblock(route);
    assert_eq!(script.next().1["method"], odd);
    assert_eq!(script.next().1["params"]["uri"], "a:b");
    assert_eq!(script.next().1["params"]["uri"], odd);
    script.silence();
    script.send(cancelled(1));
    script.event();
    script.assert_nothing_left();
}

/// Who cannot be told of all changes has to look anew: the subscription ends, and that is told.
#[test]
fn who_misses_changes_is_told() {
    for is_blocked in [false, true] {
        let mut config = config();
        config.limits.max_route_messages = 3;
        let mut script = Script::with(config);
        let uris: Vec<String> = (0..5).map(|number| format!("a:{number}")).collect();
        let filter = json!({ "resourceSubscriptions": uris });
        script.send(modern_request(1, "subscriptions/listen", json!({ "notifications": filter })));
        script.next();
        let event = script.event();
        let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
        let route = Route::Listen(scope.key());
        if is_blocked {
            script.connection.block(route);
        }
        for uri in uris {
            script.connection.publish(&Change::Resource(uri));
        }
        assert!(matches!(script.event(), Event::Dropped { count: 1, .. }));
        while !matches!(script.event(), Event::ListeningEnded(key) if key == scope.key()) {}
        script.connection.unblock(route);
        let mut last = script.next().1;
        while last.get("method").is_some() {
            last = script.next().1;
        }
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
        script.assert_nothing_left();
    }
}

/// The end of a subscription does not overtake its changes.
// covers: L-11
#[test]
fn the_end_of_a_subscription_waits_for_its_stream() {
    let mut script = Script::new();
    script.send(modern_request(1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })));
    script.next();
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    let key = scope.key();
    script.connection.block(Route::Listen(key));
    script.connection.publish(&Change::Tools);
    script.connection.end_listening(key).unwrap();
    script.silence();
    script.connection.unblock(Route::Listen(key));
    assert_eq!((script.next().0, script.next().0), (Route::Listen(key), Route::Reply(key)));
    script.event();
    script.assert_nothing_left();
}

/// A cancelled request leaves nothing in the backlog.
// covers: K-5
#[test]
fn a_cancellation_empties_the_backlog() {
    let mut script = Script::new();
    let asked = script.served(tokened(1));
    script.connection.block(Route::Related(asked.key()));
    script.connection.progress(asked.key(), 1, None, None);
    script.send(cancelled(1));
    assert_eq!(script.given_up(), asked.key());
    script.assert_nothing_left();
}

/// What a legacy client did not read goes on when its stream ends, for whoever keeps it.
// covers: B-28
#[test]
fn the_end_of_a_slow_stream_releases_its_backlog() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    let key = asked.key();
    script.connection.block(Route::Reply(key));
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.silence();
    script.connection.handle_stream_closed(key);
    assert!(script.reply()["result"].is_object());
    script.assert_nothing_left();
}

/// A client that is gone reads nothing more, blocked or not.
#[test]
fn a_disconnect_empties_every_backlog() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    script.connection.block(Route::Reply(asked.key()));
    script.connection.block(Route::Standalone);
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.connection.publish(&Change::Tools);
    script.connection.close();
    assert!(matches!(script.event(), Event::Closed));
    assert!(!script.connection.is_idle());
    script.connection.handle_disconnect();
    script.assert_nothing_left();
}

/// The number of bytes has a limit like the number of messages.
#[test]
fn bytes_are_bounded() {
    let mut small = config();
    small.limits.max_route_bytes = 1000;
    let mut script = Script::initialized_with(small, "2025-11-25", json!({}));
    script.connection.block(Route::Standalone);
    for _ in 0..100 {
        script.connection.log(None, LoggingLevel::Error, RawJson::from(json!("x".repeat(300))), None);
    }
    let mut dropped = 0;
    while let Some(event) = script.connection.poll_event() {
        let Event::Dropped { route: Route::Standalone, count } = event else { panic!("{event:?}") };
        dropped += count;
    }
    script.connection.unblock(Route::Standalone);
    let mut kept = 0;
    while script.connection.poll_transmit().is_some() {
        kept += 1;
    }
    assert_eq!((dropped, kept), (98, 2));
    script.assert_nothing_left();
}

/// What is told to a client that does not read is left out, before it grows without end.
// covers: S1.7
#[test]
fn telling_has_an_end() {
    let mut config = config();
    config.limits.max_route_messages = 3;
    let mut script = Script::with(config);
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
    let method = Method::from("com.example/x");
    let told: Vec<_> =
        (0..5).map(|_| script.connection.notify(Some(asked.key()), &method, &RawObject::empty()).unwrap()).collect();
    assert_eq!(told.iter().filter(|told| **told == Delivery::Queued).count(), 3);
    for _ in 0..3 {
        script.next();
    }
    script.done(asked.responder);
    script.assert_nothing_left();
}
