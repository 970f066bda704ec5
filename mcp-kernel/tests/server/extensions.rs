//! What extensions and applications add.

use mcp_kernel::CommandError;
use mcp_kernel::server::{Delivery, Event, ProtocolExtension, Route, ServerConfig};
use mcp_testkit::envelope::modern_request;
use mcp_types::gate::Revisions;
use mcp_types::meta::key::CLIENT_CAPABILITIES;
use mcp_types::{Method, RawObject, Revision};
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
