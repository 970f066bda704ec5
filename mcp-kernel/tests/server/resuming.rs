//! Sessions that go on elsewhere.

use std::sync::Arc;

use mcp_kernel::Change;
use mcp_kernel::server::{Connection, Event, SessionState};
use mcp_testkit::envelope::{initialize, modern_request, notification, request};
use mcp_types::{ClientCapability, InitializeRequestParams, LoggingLevel, RawObject, Revision};
use serde_json::json;

use crate::script::{Script, config};

/// What was settled in a session holds where it goes on, without another handshake.
// covers: S4.116
#[test]
fn a_session_goes_on_elsewhere() {
    let mut first = Script::with(config());
    let hello = initialize(1, "2025-06-18", json!({ "sampling": {} }));
    let client = RawObject::new(&hello["params"]).unwrap();
    first.send(hello);
    first.reply();
    let fresh = first.connection.session_state().unwrap();
    assert_eq!((fresh.revision, fresh.is_ready), (Revision::V2025_06_18, false));
    first.send(notification("notifications/initialized", json!({})));
    first.send(request(2, "logging/setLevel", json!({ "level": "error" })));
    first.send(request(3, "resources/subscribe", json!({ "uri": "a:b" })));
    let state = first.connection.session_state().unwrap();
    assert_eq!((state.is_ready, state.log_level), (true, LoggingLevel::Error));
    assert_eq!(state.subscriptions, ["a:b"]);

    let mut second = Script::over(Connection::resume(Arc::new(config()), client.clone(), state.clone()).unwrap());
    assert_eq!(second.connection.initialize_params(), Some(&client));
    assert_eq!(second.connection.session_state(), Some(state));
    assert!(matches!(second.event(), Event::Subscription { uri, active: true } if uri == "a:b"));
    assert_eq!(second.connection.client_info().map(|info| info.name).as_deref(), client_name(&client).as_deref());
    second.refused(initialize(4, "2025-06-18", json!({})), -32600);
    let asked = second.served(request(5, "tools/call", json!({ "name": "a" })));
    assert_eq!(asked.scope.revision(), Revision::V2025_06_18);
    assert!(asked.scope.supports(ClientCapability::Sampling) && !asked.scope.may_log(LoggingLevel::Info));
    second.done(asked.responder);
    second.connection.publish(&Change::Resource("a:b".into()));
    assert_eq!(second.next().1["method"], "notifications/resources/updated");
    // What is settled elsewhere meanwhile is taken over.
    second.connection.refresh(SessionState::new(Revision::V2025_06_18));
    assert!(matches!(second.event(), Event::Subscription { uri, active: false } if uri == "a:b"));
    second.connection.publish(&Change::Resource("a:b".into()));
    second.silence();
    second.assert_nothing_left();
}

fn client_name(initialize: &RawObject) -> Option<String> {
    initialize.decode::<InitializeRequestParams>().ok().map(|params| params.client_info.name)
}

/// Subscriptions that other processes change do not pile up while nothing polls the events.
// covers: GW-8
#[test]
fn gw_8_changes_of_other_processes_do_not_pile_up() {
    let mut script = Script::initialized("2025-06-18");
    let state = |uris: &[String]| {
        let mut state = SessionState::new(Revision::V2025_06_18);
        state.is_ready = true;
        state.subscriptions = uris.to_vec();
        state
    };
    for round in 0..100 {
        script.connection.refresh(state(&[format!("a:{round}"), "a:always".to_owned()]));
    }
    for expected in ["a:always", "a:99"] {
        let event = script.event();
        assert!(matches!(&event, Event::Subscription { uri, active: true } if uri == expected), "{event:?}");
    }
    script.connection.refresh(state(&["a:always".to_owned()]));
    script.connection.refresh(state(&["a:99".to_owned(), "a:always".to_owned()]));
    script.assert_nothing_left();
}

/// However many requests of a client are at work, what it declared is there once.
// covers: SEC-5
#[test]
fn sec_5_requests_at_the_same_time_share_what_was_declared() {
    let declared = json!({ "sampling": {}, "experimental": { "a": {}, "b": {} } });
    let mut script = Script::initialized_with(config(), "2025-06-18", declared);
    let asked: Vec<_> = (0..3).map(|id| script.served(request(id, "tools/call", json!({ "name": "a" })))).collect();
    assert!(asked[0].scope.supports(ClientCapability::Sampling));
    for other in &asked[1..] {
        assert!(std::ptr::eq(asked[0].scope.capabilities(), other.scope.capabilities()));
    }
    for asked in asked {
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}

/// What is kept of a client is what it said, and not what can be made of it.
// covers: SEC-5
#[test]
fn sec_5_a_client_is_kept_as_text() {
    let mut script = Script::with(config());
    let before = script.connection.kept_bytes();
    let hello = initialize(1, "2025-06-18", json!({ "sampling": {}, "experimental": { "a": {}, "b": {} } }));
    let text = hello["params"].to_string();
    script.send(hello);
    script.reply();
    assert_eq!((before, script.connection.kept_bytes()), (0, text.len()));
    script.send(notification("notifications/initialized", json!({})));
    script.send(request(3, "resources/subscribe", json!({ "uri": "a:b" })));
    assert!(script.connection.kept_bytes() > text.len() + 3, "subscriptions count as well");
    let (params, state) = (script.connection.initialize_params().unwrap(), script.connection.session_state().unwrap());
    let mut second = Script::over(Connection::resume(Arc::new(config()), params.clone(), state).unwrap());
    second.event();
    let asked = second.served(request(5, "tools/call", json!({ "name": "a" })));
    assert!(asked.scope.supports(ClientCapability::Sampling) && !asked.scope.supports(ClientCapability::Roots));
    assert_eq!(asked.scope.capabilities().experimental.as_ref().map(|experimental| experimental.len()), Some(2));
    second.done(asked.responder);
    let nonsense = RawObject::new(&json!({ "protocolVersion": 1 })).unwrap();
    assert!(Connection::resume(Arc::new(config()), nonsense, SessionState::new(Revision::V2025_06_18)).is_err());
}

/// Only a session has something to go on with.
// covers: S4.116
#[test]
fn what_is_no_session_has_no_state() {
    assert_eq!(Script::new().connection.session_state(), None);
    assert_eq!(Script::legacy_request(Revision::V2025_06_18).connection.session_state(), None);
    let mut script = Script::modern_request();
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "a" })));
    assert_eq!(script.connection.session_state(), None);
    script.done(asked.responder);
    script.assert_nothing_left();
}
