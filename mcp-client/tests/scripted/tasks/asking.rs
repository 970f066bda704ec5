//! Input requests of tasks of the extension.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ElicitAction, ElicitResult, InputRequest, Root};
use mcp_client::{ClientBuilder, Error, FollowLimits, TaskError, TransportKind};
use mcp_testkit::{Gate, Task};
use serde_json::{Value, json};

use super::{SECOND, answer_first, completed, create, created, expect_task_cancelled, polled, started, task};
use crate::fixtures::{KINDS, builder};

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": {} });
    json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } })
}

fn asks(questions: Value) -> Value {
    task("input_required", json!({ "inputRequests": questions }))
}

/// A client that counts how often it is asked.
fn counting() -> (ClientBuilder, Arc<Mutex<usize>>) {
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let builder = builder().roots([Root::new("file:///r")]).on_form_elicitation(move |_, _| {
        *counted.lock().unwrap() += 1;
        async { ElicitResult::new(ElicitAction::Decline) }
    });
    (builder, asked)
}

/// Input requests are answered by the handlers of the client, each once, however often the server lists it.
// covers: TK-21, TK-22, TK-23
#[test]
fn tk_22_each_input_request_is_answered_once() {
    for kind in KINDS {
        let (builder, asked) = counting();
        let (_client, mut server, mut call) = started(kind, builder);
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, asks(json!({ "a": form(), "b": { "method": "roots/list" } })));
        call.assert_pending();
        let update = server.expect_request("tasks/update");
        let declined = json!({ "action": "decline" });
        let roots = json!({ "roots": [{ "uri": "file:///r" }] });
        assert_eq!(update.params["inputResponses"], json!({ "a": declined, "b": roots }));
        let name = (kind == TransportKind::RequestPerCall).then_some("t1");
        assert_eq!((&update.params["taskId"], update.headers.name.as_deref()), (&json!("t1"), name));
        server.respond(&update, json!({ "resultType": "complete" }));
        call.assert_pending();
        let listen = server.expect_request("subscriptions/listen");
        server.respond_error(&listen, -32601);
        call.assert_pending();
        // The responses have not taken effect yet, and there is another request.
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, asks(json!({ "a": form(), "c": form() })));
        call.assert_pending();
        let update = server.expect_request("tasks/update");
        assert_eq!(update.params["inputResponses"], json!({ "c": declined }));
        server.respond(&update, json!({ "resultType": "complete" }));
        call.assert_pending();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, asks(json!({ "c": form() })));
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, completed("done"));
        call.finish().unwrap();
        assert_eq!(*asked.lock().unwrap(), 2);
    }
}

/// The function of the call comes first, as for direct requests; without any, the call fails and the task is cancelled.
// covers: TK-23
#[test]
fn tk_23_calls_answer_the_input_requests_of_their_tasks() {
    let (client, mut server) = mcp_testkit::ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut call = Task::start(client.call_tool("render").on_input(async |request| match request {
        InputRequest::Elicit(_) => Ok(Some(ElicitResult::new(ElicitAction::Cancel).into())),
        InputRequest::CreateMessage(_) | InputRequest::ListRoots(_) | InputRequest::Unknown(_) | _ => Ok(None),
    }));
    create(&mut server, created());
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, asks(json!({ "a": form() })));
    call.assert_pending();
    let update = server.expect_request("tasks/update");
    assert_eq!(update.params["inputResponses"]["a"]["action"], "cancel");
    server.respond(&update, json!({}));
    call.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.respond_error(&listen, -32601);
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, asks(json!({ "b": { "method": "roots/list" } })));
    assert!(matches!(call.finish(), Err(Error::InputRequestFailed { key, .. }) if key == "b"));
    expect_task_cancelled(&mut server);
}

/// Responses that did not arrive are sent again, without asking the user again.
// covers: TK-22
#[test]
fn tk_22_responses_are_sent_until_they_arrive() {
    let (builder, asked) = counting();
    let (_client, mut server, mut call) = started(TransportKind::RequestPerCall, builder);
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, asks(json!({ "a": form() })));
    call.assert_pending();
    let lost = server.expect_request("tasks/update");
    server.handle.responses().handle_stream_ended(lost.call, None);
    call.assert_pending();
    server.advance(SECOND);
    call.assert_pending();
    let again = server.expect_request("tasks/update");
    assert_eq!(again.params["inputResponses"], lost.params["inputResponses"]);
    server.respond(&again, json!({ "resultType": "complete" }));
    call.assert_pending();
    assert_eq!(*asked.lock().unwrap(), 1);
}

/// The time that a user takes does not count.
#[test]
fn the_timeout_does_not_run_while_users_answer() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let builder = builder().on_form_elicitation(move |_, _| {
        let waiting = waiting.clone();
        async move {
            waiting.wait().await;
            ElicitResult::new(ElicitAction::Decline)
        }
    });
    let (client, mut server) = mcp_testkit::ScriptedServer::modern(TransportKind::Pipe, builder);
    let mut call = Task::start(client.call_tool("render").total_timeout(SECOND * 5));
    create(&mut server, created());
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, asks(json!({ "a": form() })));
    call.assert_pending();
    server.advance(Duration::from_secs(3600));
    call.assert_pending();
    gate.open();
    call.assert_pending();
    let update = server.expect_request("tasks/update");
    server.respond(&update, json!({}));
    call.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.respond_error(&listen, -32601);
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, completed("done"));
    call.finish().unwrap();
}

/// A server that asks without end is given up, and one that asks for too much at once before anything is answered.
// covers: SEC-11
#[test]
fn sec_11_input_requests_of_a_task_are_bounded() {
    let (builder, asked) = counting();
    let limits = FollowLimits::default().max_input_requests(2);
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder.follow_limits(limits));
    let mut poll = polled(&mut server, &mut call, SECOND);
    for key in ["a", "b"] {
        server.respond(&poll, asks(json!({ key: form() })));
        call.assert_pending();
        let update = server.expect_request("tasks/update");
        server.respond(&update, json!({}));
        call.assert_pending();
        if key == "a" {
            let listen = server.expect_request("subscriptions/listen");
            server.respond_error(&listen, -32601);
            call.assert_pending();
        }
        poll = polled(&mut server, &mut call, SECOND);
    }
    server.respond(&poll, asks(json!({ "c": form() })));
    assert!(matches!(call.finish(), Err(Error::Task(TaskError::TooManyInputRequests { limit: 2 }))));
    assert_eq!(*asked.lock().unwrap(), 2);
    expect_task_cancelled(&mut server);

    let (builder, asked) = counting();
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder);
    let many: serde_json::Map<_, _> = (0..65).map(|number| (number.to_string(), json!("unreadable"))).collect();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, asks(many.into()));
    let error = call.finish().unwrap_err();
    assert!(error.to_string().contains("more than 64 input requests"), "{error}");
    assert_eq!(*asked.lock().unwrap(), 0);
    expect_task_cancelled(&mut server);
}

/// A task that waits for input without saying for what is polled.
#[test]
fn a_task_may_wait_without_input_requests() {
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
    let poll = polled(&mut server, &mut call, SECOND);
    answer_first(&mut server, &mut call, &poll, task("input_required", json!({})));
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, completed("done"));
    call.finish().unwrap();
}
