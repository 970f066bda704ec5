//! An application that is asked before the connection answers by itself.

use std::sync::atomic::Ordering;

use mcp_kernel::server::{Delivery, Event, Route};
use mcp_kernel::{Change, PeerMisbehaved};
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::{CallToolResult, ErrorObject};
use serde_json::{Value, json};

use crate::script::{Script, config};

fn consulting() -> mcp_kernel::server::ServerConfig {
    let config = config();
    config.intercept_builtin.store(true, Ordering::Relaxed);
    config
}

fn listen(id: u32) -> Value {
    modern_request(id, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
}

/// Nothing happens until the application lets it; then it is as if it had not been asked.
#[test]
fn the_application_decides_first() {
    let mut script = Script::with(consulting());
    let mut plain = Script::new();
    let discover = modern_request(1, "server/discover", json!({}));
    let asked = script.served(discover.clone());
    assert_eq!((asked.scope.method().as_str(), asked.params["_meta"].is_object()), ("server/discover", true));
    script.silence();
    assert_eq!(script.connection.respond_builtin(asked.responder), Delivery::Queued);
    plain.send(discover);
    assert_eq!(script.reply(), plain.reply());

    let asked = script.served(listen(2));
    script.connection.publish(&Change::Tools);
    script.silence();
    assert_eq!(script.connection.respond_builtin(asked.responder), Delivery::Queued);
    assert_eq!(script.next().1["method"], "notifications/subscriptions/acknowledged");
    assert!(matches!(script.event(), Event::Listening { .. }));
    script.connection.publish(&Change::Tools);
    let (route, message) = script.next();
    assert!(matches!(route, Route::Listen(_)), "{message}");
    script.send(cancelled(2));
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    script.assert_nothing_left();
    plain.assert_nothing_left();
}

/// What is refused never comes about.
#[test]
fn the_application_may_refuse() {
    let mut script = Script::with(consulting());
    let asked = script.served(listen(1));
    script.connection.respond::<CallToolResult>(asked.responder, Err(ErrorObject::invalid_request("not for you")));
    assert_eq!(script.refusal(1, -32600)["message"], "not for you");
    script.connection.publish(&Change::Tools);
    script.assert_nothing_left();

    let mut script = Script::initialized_with(consulting(), "2025-11-25", json!({}));
    let asked = script.served(request(1, "resources/subscribe", json!({ "uri": "a:b" })));
    script.connection.respond::<CallToolResult>(asked.responder, Err(ErrorObject::invalid_request("not for you")));
    script.refusal(1, -32600);
    script.connection.publish(&Change::Resource("a:b".into()));
    script.assert_nothing_left();
}

/// The handshake and `ping` are about the connection alone.
#[test]
fn the_connections_own_affairs_are_nobody_elses() {
    let mut script = Script::with(consulting());
    script.send(initialize(1, "2025-11-25", json!({})));
    assert!(script.reply()["result"].is_object());
    script.send(notification("notifications/initialized", json!({})));
    assert!(matches!(script.event(), Event::Initialized));
    script.send(request(2, "ping", json!({})));
    assert_eq!(script.reply()["result"], json!({}));
    script.assert_nothing_left();
}

/// What is wrong is found when it is served, and told as ever.
#[test]
fn mistakes_are_found_later() {
    let mut script = Script::initialized_with(consulting(), "2025-06-18", json!({}));
    let asked = script.served(request(1, "logging/setLevel", json!({ "level": "loud" })));
    script.connection.respond_builtin(asked.responder);
    script.refusal(1, -32602);
    assert!(matches!(script.complaint(), PeerMisbehaved::InvalidParams(_)));
    let asked = script.served(request(2, "logging/setLevel", json!({ "level": "error" })));
    script.connection.respond_builtin(asked.responder);
    assert!(matches!(script.event(), Event::LogLevel(_)));
    assert_eq!(script.reply()["result"], json!({}));
    script.assert_nothing_left();
}

/// A request that the client gave up meanwhile is over, and one that the connection cannot answer is not there.
#[test]
fn only_what_is_open_proceeds() {
    let mut script = Script::with(consulting());
    let asked = script.served(listen(1));
    script.send(cancelled(1));
    assert_eq!(script.given_up(), asked.key());
    assert_eq!(script.connection.respond_builtin(asked.responder), Delivery::NotSent);
    let asked = script.served(modern_request(2, "tools/call", json!({ "name": "a" })));
    assert_eq!(script.connection.respond_builtin(asked.responder), Delivery::Queued);
    script.refusal(2, -32601);
    script.assert_nothing_left();
}

/// Answers of a batch wait for those that were asked about.
#[test]
fn batches_wait_for_the_application() {
    let mut script = Script::initialized_with(consulting(), "2025-03-26", json!({}));
    let level = request(1, "logging/setLevel", json!({ "level": "error" }));
    script.send(json!([level, request(2, "ping", json!({}))]));
    let asked = script.asked();
    script.silence();
    script.connection.respond_builtin(asked.responder);
    assert_eq!(script.reply().as_array().map(Vec::len), Some(2));
    assert!(matches!(script.event(), Event::LogLevel(_)));
    script.assert_nothing_left();
}

/// A subscription that comes about when nothing more is read ends at once, and is no reason to stay.
#[test]
fn nothing_is_subscribed_to_at_the_end() {
    let mut script = Script::with(consulting());
    let asked = script.served(listen(1));
    script.connection.drain();
    script.connection.respond_builtin(asked.responder);
    assert_eq!(script.next().1["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(script.reply()["id"], 1);
    assert!(matches!(script.event(), Event::Listening { .. }));
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    script.assert_nothing_left();
}

fn deciding() -> mcp_kernel::server::ServerConfig {
    let mut config = config();
    config.intercept_initialize = true;
    config
}

/// The application accepts a handshake; until then nothing else is wanted, and what comes nevertheless is too early.
// covers: GW-5
#[test]
fn gw_5_the_application_accepts_a_handshake() {
    let mut script = Script::with(deciding());
    script.send(initialize("init", "2025-06-18", json!({ "roots": {} })));
    let event = script.event();
    let Event::Handshake(asked) = event else { panic!("{event:?}") };
    assert_eq!((asked.revision.as_str(), asked.params.client_info.name.as_str()), ("2025-06-18", "test"));
    assert!(asked.params.capabilities.roots.is_some() && asked.principal.is_none());
    assert!(script.connection.is_open(asked.key) && !script.connection.wants_input() && !script.connection.is_idle());
    assert_eq!(script.connection.negotiated(), None);
    script.silence();
    // Who does not wait is refused, and not cut off.
    script.send(request(1, "tools/list", json!({})));
    script.refusal(1, -32600);
    script.send(request("init", "ping", json!({})));
    script.refusal("init", -32600);
    script.send(initialize(2, "2025-06-18", json!({})));
    script.refusal(2, -32600);
    while script.connection.poll_event().is_some() {}
    assert!(script.connection.accept_handshake(None));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-06-18");
    assert!(!script.connection.is_open(asked.key) && script.connection.wants_input());
    assert!(!script.connection.accept_handshake(None), "there is none any more");
    // The second one is none of its business.
    script.send(initialize(3, "2025-06-18", json!({})));
    script.refusal(3, -32600);
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::InitializedTwice)));
    script.assert_nothing_left();
}

/// A handshake may be accepted with another configuration, which then holds.
// covers: GW-5
#[test]
fn gw_5_a_handshake_chooses_the_configuration() {
    let mut script = Script::with(deciding());
    script.send(initialize("init", "2025-11-25", json!({})));
    let mut other = config();
    other.revisions = vec![mcp_types::Revision::V2025_06_18];
    other.instructions = Some("other".to_owned());
    let _ = script.event();
    assert!(script.connection.accept_handshake(Some(std::sync::Arc::new(other))));
    let reply = script.reply();
    assert_eq!(
        (&reply["result"]["protocolVersion"], &reply["result"]["instructions"]),
        (&json!("2025-06-18"), &json!("other"))
    );

    let mut script = Script::with(deciding());
    script.send(initialize("init", "2025-11-25", json!({})));
    let mut modern = config();
    modern.revisions = vec![mcp_types::Revision::LATEST];
    let _ = script.event();
    assert!(!script.connection.accept_handshake(Some(std::sync::Arc::new(modern))), "it has no handshake");
    script.refusal("init", -32022);
    let _ = script.event();
    script.send(initialize("again", "2025-11-25", json!({})));
    let _ = script.event();
    assert!(script.connection.accept_handshake(None), "the configuration is the first one again");
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-11-25");
}

/// A handshake that is refused changes nothing; the client may try again, or leave.
// covers: GW-5
#[test]
fn gw_5_the_application_refuses_a_handshake() {
    let mut script = Script::with(deciding());
    script.send(initialize(1, "2025-11-25", json!({})));
    let _ = script.event();
    script.connection.refuse_handshake(&ErrorObject::invalid_request("not for you"));
    assert_eq!(script.refusal(1, -32600)["message"], "not for you");
    assert!(script.connection.is_idle());
    script.send(initialize(2, "2025-11-25", json!({})));
    let _ = script.event();
    script.connection.handle_disconnect();
    assert!(matches!(script.event(), Event::Closed) && !script.connection.accept_handshake(None));
    script.assert_nothing_left();
    // Modern requests have no handshake.
    let mut script = Script::with(deciding());
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    script.reply();
    script.assert_nothing_left();
}
