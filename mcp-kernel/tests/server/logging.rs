//! Log messages.

use mcp_kernel::server::{Delivery, Event, Route};
use mcp_testkit::envelope::{modern_request, request};
use mcp_types::{LoggingLevel, RawJson};
use serde_json::{Value, json};

use crate::script::{Script, offering};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn data(value: Value) -> RawJson {
    RawJson::from(value)
}

/// A modern request hears what it asked for, on its own stream and before its answer.
// covers: Y-2, Y-3, Y-6, Y-9
#[test]
fn a_modern_request_sets_its_own_threshold() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({ "_meta": { LEVEL: "warning" } })));
    let key = asked.key();
    assert!(asked.scope.may_log(LoggingLevel::Warning) && !asked.scope.may_log(LoggingLevel::Notice));
    assert_eq!(script.connection.log(Some(key), LoggingLevel::Notice, data(json!("no")), None), Delivery::NotSent);
    let logged = script.connection.log(Some(key), LoggingLevel::Warning, data(json!(null)), Some("db".into()));
    assert_eq!(logged, Delivery::Queued);
    script.connection.log(Some(key), LoggingLevel::Emergency, data(json!({ "a": 1 })), None);
    let (route, message) = script.next();
    assert_eq!(route, Route::Related(key));
    // Y-9
    assert_eq!(message["params"], json!({ "level": "warning", "logger": "db", "data": null }));
    assert_eq!(script.next().1["params"], json!({ "level": "emergency", "data": { "a": 1 } }));
    script.done(asked.responder);
    assert_eq!(script.connection.log(Some(key), LoggingLevel::Emergency, data(json!(1)), None), Delivery::NotSent);
    script.assert_nothing_left();
}

/// Without a level there are no log messages, and none without a request.
// covers: Y-2, S1.35, RB-18
#[test]
fn no_level_no_logs() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    assert!(!asked.scope.may_log(LoggingLevel::Emergency));
    for request in [Some(asked.key()), None] {
        let logged = script.connection.log(request, LoggingLevel::Emergency, data(json!(1)), None);
        assert_eq!(logged, Delivery::NotSent);
    }
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// A subscription is no place for log messages, whatever its level.
// covers: Y-4
#[test]
fn subscriptions_carry_no_logs() {
    let mut script = Script::new();
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": { LEVEL: "debug" } });
    script.send(modern_request(1, "subscriptions/listen", params));
    script.next();
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    let logged = script.connection.log(Some(scope.key()), LoggingLevel::Emergency, data(json!(1)), None);
    assert_eq!(logged, Delivery::NotSent);
    script.connection.end_listening(scope.key()).unwrap();
    script.reply();
    script.event();
    script.assert_nothing_left();
}

/// A legacy client sets the level for the connection, from now on and for what runs already.
// covers: B-41, S0.18, S1.35
#[test]
fn legacy_sets_the_level_for_all() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    let new = script.served(modern_request(2, "tools/call", json!({})));
    let key = Some(asked.key());
    // S0.23: `info` is the level before anything was said.
    assert_eq!(script.connection.log(key, LoggingLevel::Debug, data(json!(1)), None), Delivery::NotSent);
    assert_eq!(script.connection.log(key, LoggingLevel::Info, data(json!(1)), None), Delivery::Queued);
    script.next();
    script.send(request(3, "logging/setLevel", json!({ "level": "error" })));
    assert_eq!(script.reply(), json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    assert!(matches!(script.event(), Event::LogLevel(LoggingLevel::Error)));
    for request in [key, None] {
        let logged = script.connection.log(request, LoggingLevel::Warning, data(json!(1)), None);
        assert_eq!(logged, Delivery::NotSent, "{request:?}");
        assert_eq!(script.connection.log(request, LoggingLevel::Error, data(json!(1)), None), Delivery::Queued);
        assert_eq!(script.next().0, request.map_or(Route::Standalone, Route::Related));
    }
    // The level of the connection is none of the modern request's business.
    let logged = script.connection.log(Some(new.key()), LoggingLevel::Emergency, data(json!(1)), None);
    assert_eq!(logged, Delivery::NotSent);
    script.done(new.responder);
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// An unknown level is invalid and changes nothing.
// covers: Y-5
#[test]
fn unknown_levels_are_refused() {
    let mut script = Script::initialized("2025-11-25");
    for params in [json!({ "level": "loud" }), json!({ "level": 3 }), json!({})] {
        let error = script.refused(request(1, "logging/setLevel", params), -32602);
        assert!(error["message"].as_str().unwrap().contains("level"), "{error}");
    }
    assert_eq!(script.connection.log(None, LoggingLevel::Info, data(json!(1)), None), Delivery::Queued);
    script.next();
    script.assert_nothing_left();
}

/// A server that did not declare logging does not log.
// covers: Y-1
#[test]
fn undeclared_logging_is_no_logging() {
    let mut script = Script::initialized_with(offering(json!({ "tools": {} })), "2025-11-25", json!({}));
    for request in
        [modern_request(1, "tools/call", json!({ "_meta": { LEVEL: "debug" } })), request(1, "tools/call", json!({}))]
    {
        let asked = script.served(request);
        assert!(!asked.scope.may_log(LoggingLevel::Emergency));
        let logged = script.connection.log(Some(asked.key()), LoggingLevel::Emergency, data(json!(1)), None);
        assert_eq!(logged, Delivery::NotSent);
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}

/// Before the handshake is complete, the connection says nothing by itself.
// covers: B-4
#[test]
fn no_logs_of_the_connection_before_the_handshake() {
    let mut script = Script::new();
    let logged = script.connection.log(None, LoggingLevel::Emergency, data(json!(1)), None);
    assert_eq!(logged, Delivery::NotSent);
    script.assert_nothing_left();
}
