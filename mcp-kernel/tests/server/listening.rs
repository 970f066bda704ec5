//! `subscriptions/listen`.

use mcp_kernel::server::{Announcement, Delivery, Event, Route};
use mcp_kernel::{Change, CommandError, PeerMisbehaved, RequestKey};
use mcp_testkit::envelope::{cancelled, modern_request};
use mcp_types::meta::key::SUBSCRIPTION_ID;
use mcp_types::{Method, RawObject};
use serde_json::{Value, json};

use crate::script::{Script, config, offering};

fn listen(id: impl Into<Value>, filter: Value) -> Value {
    modern_request(id, "subscriptions/listen", json!({ "notifications": filter }))
}

/// Opens a subscription and checks that the acknowledgement comes first.
fn opened(script: &mut Script, id: impl Into<Value>, filter: Value, honoured: Value) -> RequestKey {
    let id = id.into();
    script.send(listen(id.clone(), filter));
    let event = script.event();
    let Event::Listening { scope, .. } = event else { panic!("{event:?}") };
    let (route, message) = script.next();
    assert_eq!(route, Route::Listen(scope.key()));
    let params = json!({ "notifications": honoured, "_meta": { SUBSCRIPTION_ID: id } });
    let method = "notifications/subscriptions/acknowledged";
    assert_eq!(message, json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    scope.key()
}

fn ended(script: &mut Script, key: RequestKey) {
    let event = script.event();
    assert!(matches!(event, Event::ListeningEnded(ended) if ended == key), "{event:?}");
}

fn all() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["a:b"] })
}

/// First comes what the server will honour.
// covers: L-3, L-5, L-19
#[test]
fn the_honoured_part_is_acknowledged() {
    let mut script = Script::with(offering(json!({ "tools": { "listChanged": true }, "resources": {} })));
    let asked = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"],
        "com.example/other": 1 });
    let key = opened(&mut script, 1, asked, json!({ "toolsListChanged": true }));
    script.connection.publish(&Change::Resource("a:b".into()));
    script.connection.publish(&Change::Prompts);
    script.silence();
    script.connection.handle_stream_closed(key);
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// Absent and `false` mean no.
// covers: L-2
#[test]
fn an_empty_filter_hears_nothing() {
    let mut script = Script::new();
    let key = opened(&mut script, 1, json!({ "toolsListChanged": false }), json!({}));
    script.connection.publish(&Change::Tools);
    script.silence();
    script.send(cancelled(1));
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// Each subscription hears what it asked for, under its own id with its kind.
// covers: L-1, L-7, L-9, AMB-12, S0.20
#[test]
fn each_hears_what_it_asked_for() {
    let mut script = Script::new();
    let first = opened(&mut script, 1, json!({ "toolsListChanged": true }), json!({ "toolsListChanged": true }));
    let second = opened(&mut script, "1", all(), all());
    script.connection.publish(&Change::Tools);
    for (key, id) in [(first, json!(1)), (second, json!("1"))] {
        let (route, message) = script.next();
        assert_eq!((route, &message["params"]), (Route::Listen(key), &json!({ "_meta": { SUBSCRIPTION_ID: id } })));
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
    for change in [Change::Prompts, Change::Resources, Change::Resource("a:b".into())] {
        script.connection.publish(&change);
        let (route, message) = script.next();
        assert_eq!((route, &message["params"]["_meta"][SUBSCRIPTION_ID]), (Route::Listen(second), &json!("1")));
        script.silence();
    }
    script.connection.publish(&Change::Resource("a:c".into()));
    script.silence();
    script.send(cancelled("1"));
    ended(&mut script, second);
    script.connection.publish(&Change::Prompts);
    script.silence();
    script.send(cancelled(1));
    ended(&mut script, first);
    script.assert_nothing_left();
}

/// With a legacy session on the same connection, each era gets its own copy.
// covers: L-14, DU-25, S0.20
#[test]
fn both_eras_hear_in_their_own_way() {
    let mut script = Script::initialized("2025-11-25");
    let key = opened(&mut script, 1, json!({ "toolsListChanged": true }), json!({ "toolsListChanged": true }));
    script.connection.publish(&Change::Tools);
    assert_eq!(script.next().0, Route::Standalone);
    assert_eq!(script.next().0, Route::Listen(key));
    script.send(cancelled(1));
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// The cancellation forgets what was queued.
// covers: K-5, L-10, S3.50
#[test]
fn a_cancelled_subscription_is_silent() {
    let mut script = Script::new();
    let key = opened(&mut script, 1, all(), all());
    script.connection.publish(&Change::Tools);
    script.send(cancelled(1));
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// The server ends a subscription with its result, once.
// covers: L-7, L-11, AMB-1
#[test]
fn the_server_ends_with_a_result() {
    let mut script = Script::new();
    let key = opened(&mut script, "x", all(), all());
    script.connection.publish(&Change::Tools);
    script.connection.end_listening(key).unwrap();
    assert_eq!(script.next().0, Route::Listen(key));
    let (route, reply) = script.next();
    assert_eq!((route, &reply["id"]), (Route::Reply(key), &json!("x")));
    assert_eq!(reply["result"]["resultType"], "complete");
    assert_eq!(reply["result"]["_meta"][SUBSCRIPTION_ID], json!("x"));
    ended(&mut script, key);
    assert_eq!(script.connection.end_listening(key), Err(CommandError::Ended));
    script.connection.publish(&Change::Tools);
    script.assert_nothing_left();
}

/// A request that is no subscription cannot be ended as one.
#[test]
fn only_subscriptions_end_like_this() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    assert_eq!(script.connection.end_listening(asked.key()), Err(CommandError::Ended));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Subscriptions and addresses have limits of their own.
// covers: L-18
#[test]
fn subscriptions_have_limits() {
    let mut small = config();
    (small.limits.max_listen_streams, small.limits.max_uris_per_listen_stream, small.limits.max_in_flight) = (2, 1, 1);
    let mut script = Script::with(small);
    script.send(listen(0, json!({ "resourceSubscriptions": ["a:1", "a:2"] })));
    script.refusal(0, -32602);
    assert!(matches!(script.complaint(), PeerMisbehaved::InvalidParams(_)));
    let first = opened(&mut script, 1, all(), all());
    let second = opened(&mut script, 2, all(), all());
    script.send(listen(3, all()));
    script.refusal(3, -32603);
    assert!(matches!(script.complaint(), PeerMisbehaved::TooManyListenStreams));
    // Subscriptions do not take the place of other requests.
    let asked = script.served(modern_request(4, "tools/call", json!({})));
    script.done(asked.responder);
    for key in [first, second] {
        script.connection.handle_stream_closed(key);
        ended(&mut script, key);
    }
    let third = opened(&mut script, 3, all(), all());
    script.connection.handle_stream_closed(third);
    ended(&mut script, third);
    script.assert_nothing_left();
}

/// The filter is required, and the id is in use as long as the subscription lasts.
// covers: L-2, M-4, S0.21
#[test]
fn a_subscription_is_a_request_like_others() {
    let mut script = Script::new();
    let error = script.refused(modern_request(1, "subscriptions/listen", json!({})), -32602);
    assert!(error["message"].as_str().unwrap().contains("notifications"), "{error}");
    script.refused(listen(1, json!({ "toolsListChanged": "yes" })), -32602);
    let key = opened(&mut script, 1, all(), all());
    script.refused(modern_request(1, "tools/call", json!({})), -32600);
    script.send(cancelled(1));
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// An address that is named twice is told of once, and a subscription has no deadline.
// covers: L-4, K-15
#[test]
fn an_address_named_twice_is_told_of_once() {
    let mut script = Script::new();
    let filter = json!({ "resourceSubscriptions": ["a:b", "a:b"] });
    let key = opened(&mut script, 1, filter.clone(), filter);
    assert_eq!(script.connection.poll_timeout(), None);
    script.connection.publish(&Change::Resource("a:b".into()));
    assert_eq!(script.next().1["params"]["uri"], "a:b");
    script.silence();
    script.connection.end_listening(key).unwrap();
    script.reply();
    ended(&mut script, key);
    script.assert_nothing_left();
}

/// What a command of its own says keeps the rules of that command.
// covers: S1.21, Y-2, K-4
#[test]
fn telling_does_not_bypass_the_rules() {
    for (method, params) in [
        (Method::NOTIFICATIONS_TOOLS_LIST_CHANGED, "{}"),
        (Method::NOTIFICATIONS_MESSAGE, r#"{"level":"info","data":1}"#),
        (Method::NOTIFICATIONS_CANCELLED, r#"{"requestId":1}"#),
        (Method::NOTIFICATIONS_PROGRESS, r#"{"progressToken":1,"progress":1}"#),
    ] {
        let mut script = Script::new();
        let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
        let params = RawObject::parse(params).expect("an object");
        let told = script.connection.notify(Some(asked.key()), &method, &params);
        assert_eq!(told, Err(CommandError::Reserved(method)));
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// What an extension tells on a subscription belongs to it.
// covers: L-7, EX-10, X-17
#[test]
fn what_is_told_on_a_subscription_carries_its_id() {
    let mut script = Script::new();
    script.send(modern_request("s", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })));
    script.next();
    let Event::Listening { scope, .. } = script.event() else { panic!("nobody listens") };
    let params = RawObject::parse(r#"{"a":1,"_meta":{"b":2}}"#).expect("an object");
    let told = script.connection.notify(Some(scope.key()), &Method::from("com.example/x"), &params);
    assert_eq!(told, Ok(Delivery::Queued));
    let (route, message) = script.next();
    assert_eq!(route, Route::Listen(scope.key()));
    let meta = json!({ "b": 2, "io.modelcontextprotocol/subscriptionId": "s" });
    assert_eq!(message["params"], json!({ "a": 1, "_meta": meta }));
    script.connection.end_listening(scope.key()).expect("a subscription");
    script.reply();
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    script.assert_nothing_left();
}

/// Each listen stream can be notified alone, and has the properties of its own request.
// covers: AUT-3
#[test]
fn aut_3_listen_streams_are_notified_one_by_one() {
    let mut script = Script::new();
    let first = opened(&mut script, 1, all(), all());
    let second = opened(&mut script, 2, json!({ "toolsListChanged": true }), json!({ "toolsListChanged": true }));
    let recipients = |script: &Script, change| script.connection.recipients(&change).collect::<Vec<_>>();
    assert_eq!(recipients(&script, Change::Tools), [Route::Listen(first), Route::Listen(second)]);
    assert_eq!(recipients(&script, Change::Prompts), [Route::Listen(first)]);
    assert_eq!(script.connection.listen_scope(second).map(|scope| scope.id().clone()), Some(2.into()));
    script.connection.announce_on(Route::Listen(second), &Announcement::new(&Change::Tools));
    let (route, message) = script.next();
    assert_eq!((route, &message["params"]["_meta"][SUBSCRIPTION_ID]), (Route::Listen(second), &json!(2)));
    // Its filter does not include this change.
    script.connection.announce_on(Route::Listen(second), &Announcement::new(&Change::Prompts));
    script.silence();
    script.connection.handle_stream_closed(second);
    ended(&mut script, second);
    script.connection.announce_on(Route::Listen(second), &Announcement::new(&Change::Tools));
    assert!(script.connection.listen_scope(second).is_none());
    script.silence();
}
