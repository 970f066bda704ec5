//! Changes for legacy clients: unasked lists and subscribed resources.

use mcp_kernel::server::{Announcement, Delivery, Event, Route};
use mcp_kernel::{Change, PeerMisbehaved};
use mcp_testkit::envelope::{initialize, request};
use mcp_types::{Method, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config, offering};

fn resource(uri: &str) -> Change {
    Change::Resource(uri.into())
}

fn subscribe(script: &mut Script, uri: &str) -> Value {
    script.send(request("s", "resources/subscribe", json!({ "uri": uri })));
    script.reply()
}

/// Lists are told of unasked, once the handshake is complete.
// covers: B-44, S1.1, S1.10, S1.38
#[test]
fn list_changes_come_unasked() {
    let mut script = Script::initialized("2025-06-18");
    for (change, method) in [
        (Change::Tools, "notifications/tools/list_changed"),
        (Change::Prompts, "notifications/prompts/list_changed"),
        (Change::Resources, "notifications/resources/list_changed"),
    ] {
        script.connection.publish(&change);
        let (route, message) = script.next();
        assert_eq!((route, &message["method"]), (Route::Standalone, &json!(method)));
        assert!(message["params"].get("_meta").is_none(), "{message}");
    }
    script.assert_nothing_left();
}

/// A change may carry metadata of the application's own.
// covers: S1.38
#[test]
fn a_change_may_carry_metadata() {
    let mut script = Script::initialized("2025-11-25");
    for (method, text) in [
        (Method::NOTIFICATIONS_TOOLS_LIST_CHANGED, r#"{"_meta":{"com.example/k":1}}"#),
        (Method::NOTIFICATIONS_PROMPTS_LIST_CHANGED, r#"{"_meta":{"com.example/k":1}}"#),
        (Method::NOTIFICATIONS_RESOURCES_LIST_CHANGED, r#"{"_meta":{"com.example/k":1}}"#),
        (Method::NOTIFICATIONS_RESOURCES_UPDATED, r#"{"uri":"a:b","_meta":{"com.example/k":1}}"#),
    ] {
        let params = RawObject::parse(text).expect("an object");
        assert_eq!(script.connection.notify(None, &method, &params), Ok(Delivery::Queued));
        let (route, message) = script.next();
        assert_eq!((route, &message["method"]), (Route::Standalone, &json!(method.as_str())));
        assert_eq!(message["params"], serde_json::from_str::<Value>(text).unwrap());
    }
    script.assert_nothing_left();
}

/// What was not declared is not told.
// covers: B-44
#[test]
fn undeclared_changes_are_not_told() {
    let config = offering(json!({ "tools": {}, "prompts": { "listChanged": false }, "resources": {} }));
    let mut script = Script::initialized_with(config, "2025-11-25", json!({}));
    for change in [Change::Tools, Change::Prompts, Change::Resources, resource("a:b")] {
        script.connection.publish(&change);
    }
    script.assert_nothing_left();
}

/// Nothing comes unasked before the handshake, in the modern era, or sessionless.
// covers: B-4, RB-18, S0.22, S1.21
#[test]
fn nothing_unasked_without_a_session() {
    let mut half = Script::new();
    half.send(initialize(1, "2025-11-25", json!({})));
    half.reply();
    for mut script in [Script::new(), half, Script::modern_request(), Script::legacy_request(Revision::V2025_11_25)] {
        for change in [Change::Tools, Change::Prompts, Change::Resources, resource("a:b")] {
            script.connection.publish(&change);
        }
        script.assert_nothing_left();
    }
}

/// A resource is told of between `subscribe` and `unsubscribe`; both answers are empty.
// covers: B-43, S0.22, S1.38
#[test]
fn resources_are_told_of_while_subscribed() {
    let mut script = Script::initialized("2025-11-25");
    script.connection.publish(&resource("a:b"));
    script.silence();
    assert_eq!(subscribe(&mut script, "a:b")["result"], json!({}));
    assert!(matches!(script.event(), Event::Subscription { uri, active: true } if uri == "a:b"));
    script.connection.publish(&resource("a:b"));
    script.connection.publish(&resource("a:c"));
    let (route, message) = script.next();
    assert_eq!((route, &message["params"]), (Route::Standalone, &json!({ "uri": "a:b" })));
    assert_eq!(message["method"], "notifications/resources/updated");
    script.send(request("u", "resources/unsubscribe", json!({ "uri": "a:b" })));
    assert_eq!(script.reply()["result"], json!({}));
    assert!(matches!(script.event(), Event::Subscription { uri, active: false } if uri == "a:b"));
    script.connection.publish(&resource("a:b"));
    // To end what never began is fine.
    script.send(request("u", "resources/unsubscribe", json!({ "uri": "a:b" })));
    assert_eq!(script.reply()["result"], json!({}));
    script.assert_nothing_left();
}

/// The number of subscriptions has a limit, which does not hit those that are there.
#[test]
fn subscriptions_have_a_limit() {
    let mut small = config();
    small.limits.max_subscriptions = 2;
    let mut script = Script::initialized_with(small, "2025-11-25", json!({}));
    for uri in ["a:1", "a:2"] {
        assert_eq!(subscribe(&mut script, uri)["result"], json!({}));
        script.event();
    }
    assert_eq!(subscribe(&mut script, "a:1")["result"], json!({}));
    assert_eq!(subscribe(&mut script, "a:3")["error"]["code"], -32603);
    assert!(matches!(script.complaint(), PeerMisbehaved::TooManySubscriptions));
    script.send(request(1, "resources/unsubscribe", json!({ "uri": "a:1" })));
    script.reply();
    script.event();
    assert_eq!(subscribe(&mut script, "a:3")["result"], json!({}));
    script.event();
    script.assert_nothing_left();
}

/// The addresses of subscriptions have a size together, which does not hit those that are there either.
#[test]
fn subscriptions_have_a_size() {
    let mut small = config();
    small.limits.max_subscription_bytes = 10;
    let mut script = Script::initialized_with(small, "2025-11-25", json!({}));
    for uri in ["a:1234", "a:12"] {
        assert_eq!(subscribe(&mut script, uri)["result"], json!({}));
        script.event();
    }
    assert_eq!(subscribe(&mut script, "a:1234")["result"], json!({}));
    assert_eq!(subscribe(&mut script, "b:1")["error"]["code"], -32603);
    assert!(matches!(script.complaint(), PeerMisbehaved::TooManySubscriptions));
    script.assert_nothing_left();
}

/// Malformed parameters name the member.
#[test]
fn a_subscription_needs_an_address() {
    let mut script = Script::initialized("2025-11-25");
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let error = script.refused(request(1, method, json!({})), -32602);
        assert!(error["message"].as_str().unwrap().contains("uri"), "{error}");
    }
    script.assert_nothing_left();
}

/// Nothing survives the connection.
// covers: L-13
#[test]
fn subscriptions_end_with_the_connection() {
    let mut script = Script::initialized("2025-11-25");
    subscribe(&mut script, "a:b");
    script.event();
    script.connection.handle_disconnect();
    assert!(matches!(script.event(), Event::Subscription { uri, active: false } if uri == "a:b"));
    assert!(matches!(script.event(), Event::Closed));
    script.connection.publish(&resource("a:b"));
    script.connection.publish(&Change::Tools);
    script.assert_nothing_left();
}

/// A subscription begins and ends once, however often the client requests it.
// covers: GW-8
#[test]
fn gw_8_repeated_subscriptions_begin_once() {
    let mut script = Script::initialized("2025-11-25");
    for _ in 0..3 {
        assert_eq!(subscribe(&mut script, "a:b")["result"], json!({}));
    }
    assert!(matches!(script.event(), Event::Subscription { uri, active: true } if uri == "a:b"));
    script.assert_nothing_left();
}

/// The application may notify some of the recipients only, and nothing is sent to others.
// covers: AUT-3
#[test]
fn aut_3_recipients_are_notified_one_by_one() {
    let mut script = Script::initialized("2025-11-25");
    subscribe(&mut script, "a:b");
    script.event();
    let recipients: Vec<_> = script.connection.recipients(&resource("a:b")).collect();
    assert_eq!(recipients, [Route::Standalone]);
    assert_eq!(script.connection.recipients(&resource("a:c")).count(), 0);
    script.connection.announce_on(Route::Standalone, &Announcement::new(&resource("a:c")));
    script.silence();
    script.connection.announce_on(Route::Standalone, &Announcement::new(&resource("a:b")));
    assert_eq!(script.next().1["params"], json!({ "uri": "a:b" }));
    script.connection.handle_disconnect();
    assert_eq!(script.connection.recipients(&resource("a:b")).count(), 0);
}

/// Without a session nobody could be told, so nothing of the kind is offered or accepted.
// covers: S0.22, S0.28
#[test]
fn no_subscription_without_a_session() {
    let mut script = Script::legacy_request(Revision::V2025_11_25);
    script.send(initialize(1, "2025-11-25", json!({})));
    let capabilities = &script.reply()["result"]["capabilities"];
    assert_eq!(capabilities["resources"], json!({}));
    assert_eq!(capabilities["tools"], json!({}));
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let error = script.refused(request(2, method, json!({ "uri": "a:b" })), -32601);
        assert!(error["message"].as_str().is_some_and(|text| text.contains("needs a session")), "{error}");
    }
    script.assert_nothing_left();
}
