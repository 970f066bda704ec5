//! What a client gives up, and what a server may give up in its place.

use std::sync::Arc;

use mcp_kernel::client::{CancelStyle, ClientConfig, Connection, DetectedRevision, Event, ServerFacts, Transmit};
use mcp_kernel::{CallError, CallOptions, CommandError, Time};
use mcp_types::{ClientCapabilities, Implementation, Method, RawObject, ResultType, Revision, SubscriptionFilter};
use serde_json::{Value, json};

use crate::Script;

fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// Only a call that is open is cancelled; about one that was answered, or never was, nothing is said.
// covers: K-3
#[test]
fn only_open_calls_are_cancelled() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut script = Script::ready(revision);
        let (answered, id) = script.call();
        let (open, open_id) = script.call();
        script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
        assert!(matches!(script.event(), Event::CallFinished { call, outcome: Ok(_) } if call == answered));
        assert_eq!(script.client.cancel(answered), Err(CommandError::Ended));
        assert_eq!(script.client.poll_transmit(), None);
        script.client.cancel(open).expect("it is open");
        assert_eq!(script.sent(), cancelled(&open_id));
        assert!(matches!(script.event(), Event::CallFinished { outcome: Err(CallError::Cancelled), .. }));
        assert_eq!(script.client.cancel(open), Err(CommandError::Ended));
        script.assert_nothing_left();
    }
}

/// The probe and `initialize` are not the application's to give up.
// covers: K-3, B-6, S4.81
#[test]
fn the_handshake_is_not_cancelled() {
    for detected in [None, Some(DetectedRevision::new(Revision::V2025_11_25))] {
        for style in [CancelStyle::Notify, CancelStyle::CloseStream] {
            let mut config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
            config.cancel_style = style;
            let now = Time::EPOCH;
            let mut client = Connection::new(Arc::new(config));
            client.start(now, detected);
            let Some(Transmit::Send { call: Some(call), .. }) = client.poll_transmit() else { panic!("a request") };
            assert_eq!(client.cancel(call), Err(CommandError::Ended));
            assert_eq!(client.poll_transmit(), None);
            assert!(client.poll_event().is_none() && client.poll_timeout().is_some(), "it goes on");
        }
    }
}

/// Where each call has a stream of its own, that is closed; a legacy server is told why before.
// covers: K-2, B-6
#[test]
fn streams_of_given_up_calls_are_closed() {
    for (revision, is_told) in [(Revision::V2026_07_28, false), (Revision::V2025_11_25, true)] {
        let mut config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
        config.cancel_style = CancelStyle::CloseStream;
        let now = Time::EPOCH;
        let mut client = Connection::new(Arc::new(config));
        client.resume(revision, ServerFacts::default());
        let call = client.call(now, &Method::TOOLS_LIST, &RawObject::empty(), CallOptions::default()).expect("ready");
        assert!(matches!(client.poll_transmit(), Some(Transmit::Send { call: Some(_), .. })));
        client.cancel(call).expect("it is open");
        if is_told {
            let told = client.poll_transmit();
            let Some(Transmit::Send { call: None, method, .. }) = told else { panic!("{told:?}") };
            assert_eq!(method, Some(Method::NOTIFICATIONS_CANCELLED));
        }
        assert_eq!(client.poll_transmit(), Some(Transmit::Abort { call }));
        assert_eq!(client.poll_transmit(), None);
    }
}

/// A server may give up a subscription, and nothing else that the client asked for.
// covers: K-4, AMB-1
#[test]
fn a_server_gives_up_nothing_but_subscriptions() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (call, id) = script.call();
    let listen = script.client.listen(script.now, SubscriptionFilter::default().tools_list_changed(true), None);
    let listen = listen.expect("modern");
    let listen_id = script.sent()["id"].clone();
    script.say(&cancelled(&id));
    script.say(&cancelled(&json!(listen_id.to_string())));
    assert!(script.client.poll_event().is_none(), "neither the call nor a subscription of that name");
    script.say(&cancelled(&listen_id));
    let event = script.event();
    let Event::CallFinished { call: ended, outcome } = event else { panic!("{event:?}") };
    assert_eq!((ended, outcome), (listen, Err(CallError::Cancelled)));
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
    assert!(matches!(script.event(), Event::CallFinished { call: ended, outcome: Ok(_) } if ended == call));
    script.assert_nothing_left();
}

/// A call that became a task is over, so the notification cannot reach the task; `tasks/cancel` does.
// covers: K-16, S4.91
#[test]
fn a_task_is_cancelled_by_its_own_request() {
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let capabilities = serde_json::from_value(capabilities).expect("capabilities");
    let mut script = Script::ready_with(Revision::V2026_07_28, capabilities);
    let params = RawObject::parse(r#"{"name":"slow"}"#).expect("an object");
    let call = script.client.call(script.now, &Method::TOOLS_CALL, &params, CallOptions::default()).expect("a call");
    let id = script.sent()["id"].clone();
    let task = json!({ "resultType": "task", "taskId": "t", "status": "working" });
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": task }));
    let event = script.event();
    let Event::CallFinished { outcome: Ok(outcome), .. } = event else { panic!("{event:?}") };
    assert_eq!(outcome.result_type, ResultType::TASK);
    assert_eq!(script.client.cancel(call), Err(CommandError::Ended));
    assert_eq!(script.client.poll_transmit(), None);
    let params = RawObject::parse(r#"{"taskId":"t"}"#).expect("an object");
    script.client.call(script.now, &Method::TASKS_CANCEL, &params, CallOptions::default()).expect("a call");
    let request = script.sent();
    assert_eq!((&request["method"], &request["params"]["taskId"]), (&json!("tasks/cancel"), &json!("t")));
    script.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "resultType": "complete" } }));
    assert!(matches!(script.event(), Event::CallFinished { outcome: Ok(_), .. }));
    script.assert_nothing_left();
}

/// An answer on the stream of another call is one, but leaves a stream that nothing more is read from.
// covers: H-18
#[test]
fn a_stream_without_an_answer_is_closed() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut script = Script::ready(revision);
        let (first, id) = script.call();
        let (second, second_id) = script.call();
        let answer = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }).to_string();
        script.client.handle_reply(script.now, second, answer(&id).as_bytes());
        assert!(matches!(script.event(), Event::CallFinished { call, outcome: Ok(_) } if call == first));
        assert_eq!(script.client.poll_transmit(), Some(Transmit::Abort { call: first }));
        script.client.handle_reply(script.now, second, answer(&second_id).as_bytes());
        assert!(matches!(script.event(), Event::CallFinished { call, outcome: Ok(_) } if call == second));
        script.assert_nothing_left();
    }
}
