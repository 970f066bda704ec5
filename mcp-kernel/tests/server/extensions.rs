//! What extensions and applications add.

use std::sync::atomic::Ordering;

use mcp_kernel::CommandError;
use mcp_kernel::server::{
    Delivery, DetachedRequest, Event, Principal, ProtocolExtension, RequestScope, Route, ServerConfig,
};
use mcp_testkit::envelope::{initialize, modern_request};
use mcp_types::gate::Revisions;
use mcp_types::meta::key::{CLIENT_CAPABILITIES, SUBSCRIPTION_ID};
use mcp_types::{Method, RawObject, Revision, ServerCapabilities, ServerTasksCapability, SubscriptionFilter};
use serde_json::json;

use crate::script::{Script, config};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn with_tasks() -> ServerConfig {
    let mut tasks = ProtocolExtension::default();
    tasks.methods.insert(Method::TASKS_GET, Revisions::since(Revision::V2026_07_28));
    tasks.filter_members.insert("taskIds".to_owned());
    let mut config = config();
    config.extensions.insert(TASKS.to_owned(), tasks);
    config
}

/// Nothing without registration, nothing without the client's declaration.
// covers: EX-11, EX-13, TK-29, TK-36, N-5
#[test]
fn an_extension_needs_both_sides() {
    let get = |capabilities| {
        modern_request(1, "tasks/get", json!({ "taskId": "t", "_meta": { CLIENT_CAPABILITIES: capabilities } }))
    };
    let declared = json!({ "extensions": { TASKS: {} } });
    let mut script = Script::new();
    script.refused(get(declared.clone()), -32601);
    script.assert_nothing_left();

    let mut script = Script::with(with_tasks());
    let error = script.refused(get(json!({})), -32021);
    assert_eq!(error["data"], json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } }));
    let asked = script.served(get(declared));
    let result = RawObject::parse(r#"{"taskId":"t"}"#).expect("an object");
    assert_eq!(script.connection.respond_raw(asked.responder, &result), Delivery::Queued);
    assert_eq!(script.reply()["result"]["taskId"], "t");
    script.assert_nothing_left();
}

/// What is registered is declared.
// covers: N-3, S3.F17
#[test]
fn extensions_are_discovered() {
    let mut script = Script::with(with_tasks());
    script.send(modern_request(1, "server/discover", json!({})));
    assert_eq!(script.reply()["result"]["capabilities"]["extensions"], json!({ TASKS: {} }));
    script.assert_nothing_left();
}

/// Members that an extension adds to a filter need its declaration; what nobody knows is left out.
// covers: L-17
#[test]
fn an_extension_adds_to_the_filter() {
    let listen = |id: i64, capabilities| {
        let filter = json!({ "taskIds": ["t"], "colours": true });
        modern_request(
            id,
            "subscriptions/listen",
            json!({ "notifications": filter, "_meta": { CLIENT_CAPABILITIES: capabilities } }),
        )
    };
    let mut script = Script::with(with_tasks());
    script.refused(listen(1, json!({})), -32021);
    script.send(listen(2, json!({ "extensions": { TASKS: {} } })));
    assert_eq!(script.next().1["params"]["notifications"], json!({ "taskIds": ["t"] }));
    let Event::Listening { scope, .. } = script.event() else { panic!("listening") };
    script.connection.end_listening(scope.key()).expect("it is open");
    script.reply();
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    script.assert_nothing_left();
}

/// An extension of some revisions is declared in them alone; the tasks of 2025-11-25 are declared there alone, and their list
/// to known users.
// covers: TK-2, TK-36, B-80, B-90
#[test]
fn declarations_depend_on_the_revision() {
    let mut config = with_tasks();
    config.capabilities = tasks_capability();
    config.task_list_needs_principal = true;
    if let Some(tasks) = config.extensions.get_mut(TASKS) {
        tasks.revisions = Revisions::since(Revision::V2026_07_28);
    }
    let mut script = Script::with(config.clone());
    script.send(modern_request(1, "server/discover", json!({})));
    let declared = script.reply()["result"]["capabilities"].take();
    assert_eq!((&declared["extensions"], declared.get("tasks")), (&json!({ TASKS: {} }), None));
    for (version, principal, expected) in [
        ("2025-06-18", None, None),
        ("2025-11-25", None, Some(json!({ "cancel": {} }))),
        ("2025-11-25", Some(Principal::new(None, "ann")), Some(json!({ "cancel": {}, "list": {} }))),
    ] {
        for intercept in [false, true] {
            let mut config = config.clone();
            config.intercept_initialize = intercept;
            let mut script = Script::with(config);
            let text = initialize(1, version, json!({})).to_string();
            script.connection.handle_bytes(script.now(), text.as_bytes(), principal.as_ref());
            if intercept {
                assert!(matches!(script.event(), Event::Handshake(_)));
                assert!(script.connection.accept_handshake(None));
            }
            let declared = script.reply()["result"]["capabilities"].take();
            assert_eq!((declared.get("extensions"), declared.get("tasks")), (None, expected.as_ref()), "{version}");
        }
    }
}

fn tasks_capability() -> ServerCapabilities {
    let tasks = ServerTasksCapability::default().cancel(RawObject::empty()).list(RawObject::empty());
    ServerCapabilities::default().tasks(tasks)
}

/// The application can restrict the filter of a listen stream, and notify it of what an extension defines.
// covers: L-7, L-17, TK-32
#[test]
fn an_application_restricts_a_filter() {
    let listen = |id: i64| {
        let meta = json!({ CLIENT_CAPABILITIES: { "extensions": { TASKS: {} } } });
        modern_request(id, "subscriptions/listen", json!({ "notifications": { "taskIds": ["t", "u"] }, "_meta": meta }))
    };
    let config = with_tasks();
    config.intercept_builtin.store(true, Ordering::Relaxed);
    let mut script = Script::with(config);
    let asked = script.served(listen(1));
    let (key, filter) = (asked.key(), SubscriptionFilter::default().task_ids(["t"]));
    let params = RawObject::parse(r#"{"taskId":"t"}"#).expect("an object");
    let early = script.connection.notify_listener(key, &Method::NOTIFICATIONS_TASKS, &params);
    assert_eq!(early, Err(CommandError::Ended), "it is not open yet");
    assert_eq!(script.connection.respond_listening(asked.responder, filter), Delivery::Queued);
    assert_eq!(script.next().1["params"]["notifications"], json!({ "taskIds": ["t"] }));
    assert!(matches!(script.event(), Event::Listening { .. }));
    let sent = script.connection.notify_listener(key, &Method::NOTIFICATIONS_TASKS, &params);
    assert_eq!(sent, Ok(Delivery::Queued));
    let (route, message) = script.next();
    assert_eq!((route, &message["method"]), (Route::Listen(key), &json!("notifications/tasks")));
    assert_eq!(message["params"], json!({ "taskId": "t", "_meta": { SUBSCRIPTION_ID: 1 } }));
    let own = script.connection.notify_listener(key, &Method::NOTIFICATIONS_TOOLS_LIST_CHANGED, &params);
    assert!(matches!(own, Err(CommandError::Reserved(_))));
    // A request that is not one for a stream gets no stream.
    let other = script.served(modern_request(2, "tools/list", json!({})));
    script.connection.respond_listening(other.responder, SubscriptionFilter::default());
    assert_eq!(script.reply()["error"]["code"], -32601);
    script.connection.end_listening(key).expect("it is open");
    script.reply();
    assert!(matches!(script.event(), Event::ListeningEnded(_)));
    script.assert_nothing_left();
}

/// A listener that does not read what an extension tells it is ended, so that it learns that it missed something.
#[test]
fn a_listener_that_does_not_read_is_ended() {
    let meta = json!({ CLIENT_CAPABILITIES: { "extensions": { TASKS: {} } } });
    let mut script = Script::with(with_tasks());
    script.send(modern_request(
        1,
        "subscriptions/listen",
        json!({ "notifications": { "taskIds": ["t"] }, "_meta": meta }),
    ));
    let Event::Listening { scope, .. } = script.event() else { panic!("listening") };
    script.connection.block(Route::Listen(scope.key()));
    for number in 0..10_000 {
        let params = RawObject::new(&json!({ "n": number })).expect("an object");
        if script.connection.notify_listener(scope.key(), &Method::NOTIFICATIONS_TASKS, &params).is_err() {
            return;
        }
    }
    panic!("it goes on without end");
}

/// A request that no connection knows has the properties that it is given.
// covers: S2.24
#[test]
fn requests_can_be_detached() {
    let mut request = DetachedRequest::new("task", Method::TOOLS_CALL, Revision::V2025_11_25);
    request.principal = Some(Principal::new(None, "ann"));
    request.request_state = Some("state".to_owned());
    request.has_back_channel = true;
    let scope = RequestScope::from(request);
    assert_eq!((scope.method(), scope.revision()), (&Method::TOOLS_CALL, Revision::V2025_11_25));
    assert_eq!((scope.request_state(), scope.is_stateless()), (Some("state"), false));
    assert_eq!(scope.principal().map(|user| &*user.subject), Some("ann"));
    let other = RequestScope::from(DetachedRequest::new("task", Method::TOOLS_CALL, Revision::V2026_07_28));
    assert!(other.request_state().is_none() && other.input_responses().is_empty() && other.is_stateless());
}

/// What no other command says can be told, on the stream of a request or on its own.
// covers: S1.7, S1.33
#[test]
fn an_application_tells_what_it_likes() {
    let (custom, params) = (Method::from("com.example/tick"), RawObject::parse(r#"{"n":1.50}"#).expect("an object"));
    let mut script = Script::new();
    assert_eq!(script.connection.notify(None, &custom, &params), Ok(Delivery::NotSent), "no client is connected yet");
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "x" })));
    assert_eq!(script.connection.notify(Some(asked.key()), &custom, &params), Ok(Delivery::Queued));
    let (route, message) = script.next();
    assert_eq!((route, &message["params"]), (Route::Related(asked.key()), &json!({ "n": 1.5 })));
    let foreign = script.connection.notify(Some(asked.key()), &Method::NOTIFICATIONS_ELICITATION_COMPLETE, &params);
    assert!(matches!(foreign, Err(CommandError::NotInRevision { .. })), "{foreign:?}");
    script.done(asked.responder);
    script.assert_nothing_left();

    let mut script = Script::initialized("2025-11-25");
    assert_eq!(script.connection.notify(None, &custom, &params), Ok(Delivery::Queued));
    assert_eq!(script.next().0, Route::Standalone);
    script.assert_nothing_left();
}

/// A handler can see whether it may ask the client something.
// covers: S2.22
#[test]
fn a_request_knows_whether_it_may_ask() {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
    for (mut script, message, is_stateless) in [
        (Script::new(), modern_request(1, "tools/call", json!({ "name": "x" })), true),
        (Script::legacy_request(Revision::V2025_06_18), call.clone(), true),
        (Script::initialized("2025-06-18"), call, false),
    ] {
        let asked = script.served(message);
        assert_eq!(asked.scope.is_stateless(), is_stateless);
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// The handle that an input returns is the one that its answer comes under.
#[test]
fn an_answer_can_be_told_from_others() {
    let mut script = Script::new();
    let now = script.now();
    let discover = modern_request(1, "server/discover", json!({})).to_string();
    for text in [discover.as_str(), "{", r#"{"jsonrpc":"2.0","id":7,"method":"no/such"}"#] {
        let key = script.connection.handle_bytes(now, text.as_bytes(), None).expect("it is answered");
        assert_eq!(script.next().0, Route::Reply(key), "{text}");
        let _ = script.connection.poll_event();
    }
    let note = r#"{"jsonrpc":"2.0","method":"com.example/note"}"#;
    assert_eq!(script.connection.handle_bytes(now, note.as_bytes(), None), None);
    assert!(matches!(script.event(), Event::Notification { .. }));
    script.assert_nothing_left();
}

/// Unknown methods reach an application that accepts them; methods that the protocol defines stay gated.
// covers: GW-3
#[test]
fn gw_3_unknown_methods_can_be_accepted() {
    let request = |method: &str, capabilities| {
        modern_request(1, method, json!({ "_meta": { CLIENT_CAPABILITIES: capabilities } }))
    };
    let mut script = Script::new();
    script.refused(request("acme/do", json!({})), -32601);

    let mut config = config();
    config.accept_unknown_methods = true;
    let mut script = Script::with(config.clone());
    let asked = script.served(request("acme/do", json!({})));
    let result = RawObject::parse(r#"{"done":true}"#).expect("an object");
    assert_eq!(script.connection.respond_raw(asked.responder, &result), Delivery::Queued);
    assert_eq!(script.reply()["result"]["done"], true);
    let declared = json!({ "extensions": { TASKS: {} } });
    for method in ["logging/setLevel", "sampling/createMessage", "tasks/get"] {
        script.refused(request(method, declared.clone()), -32601);
    }
    script.assert_nothing_left();

    config.extensions.insert(TASKS.to_owned(), ProtocolExtension::default());
    let mut script = Script::with(config);
    script.refused(request("tasks/get", json!({})), -32021);
    let asked = script.served(request("tasks/get", declared));
    script.connection.respond_raw(asked.responder, &result);
    assert_eq!(script.reply()["result"]["done"], true);
    script.assert_nothing_left();
}
