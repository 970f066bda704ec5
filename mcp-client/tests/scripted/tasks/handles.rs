//! Handles of tasks, and tasks that another client goes on with.

use futures_util::StreamExt as _;
use mcp_client::types::{ElicitAction, ElicitResult, TaskStatus};
use mcp_client::{
    Client, Error, RoundOutcome, Started, TaskError, TaskHandle, TaskReference, TaskState, TransportKind,
};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ScriptedServer, Task, expect_ready};
use serde_json::json;

use super::{SECOND, answer_first, completed, create, created, expect_task_cancelled, polled, task};
use crate::fixtures::{KINDS, builder};

/// A handle of the task `t1`.
#[track_caller]
fn handle(client: &Client, server: &mut ScriptedServer) -> TaskHandle {
    let mut starting = Task::start(client.call_tool("render").as_task());
    create(server, created());
    let Ok(Started::Task(task)) = starting.finish() else { panic!("not a task") };
    task
}

fn result_of(mut task: TaskHandle) -> Task<(Result<String, Error>, TaskHandle)> {
    Task::start(async move {
        let result = task.result().await.map(|result| result.to_text());
        (result, task)
    })
}

/// A call that becomes no task is done; one that does has a handle.
// covers: TK-5
#[test]
fn tk_38_a_handle_follows_a_task() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut starting = Task::start(client.call_tool("render").as_task());
        create(&mut server, tool_result("fast"));
        let Ok(Started::Done(result)) = starting.finish() else { panic!("not done") };
        assert_eq!(result.to_text(), "fast");

        let task_handle = handle(&client, &mut server);
        assert_eq!((task_handle.id(), task_handle.state().status), ("t1", TaskStatus::Working));
        assert_eq!(task_handle.state().poll_interval, Some(SECOND));
        server.advance(SECOND * 100);
        server.assert_quiet();
        let mut waiting = result_of(task_handle);
        let poll = polled(&mut server, &mut waiting, SECOND);
        server.respond(&poll, completed("done"));
        let (result, task_handle) = waiting.finish();
        assert_eq!(result.unwrap(), "done");
        // It can be read again, and there is nothing to cancel.
        let (result, task_handle) = expect_ready(async move {
            let mut task_handle = task_handle;
            (task_handle.result().await, task_handle)
        });
        assert_eq!(result.unwrap().to_text(), "done");
        drop(task_handle);
        server.assert_quiet();
    }
}

/// Each change of the state is an update, and the last one ends the stream.
#[test]
fn updates_end_with_the_task() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut task_handle = handle(&client, &mut server);
    let mut updates = Task::start(async move {
        let states: Vec<Result<TaskState, Error>> = task_handle.updates().collect().await;
        (states, task_handle)
    });
    let poll = polled(&mut server, &mut updates, SECOND);
    answer_first(&mut server, &mut updates, &poll, task("working", json!({})));
    let poll = polled(&mut server, &mut updates, SECOND);
    server.respond(&poll, task("working", json!({ "statusMessage": "half" })));
    updates.assert_pending();
    let poll = polled(&mut server, &mut updates, SECOND);
    server.respond(&poll, completed("done"));
    let (states, task_handle) = updates.finish();
    let seen: Vec<_> =
        states.into_iter().map(|state| state.unwrap()).map(|state| (state.status, state.message)).collect();
    let half = Some("half".to_owned());
    assert_eq!(seen, [(TaskStatus::Working, None), (TaskStatus::Working, half), (TaskStatus::Completed, None)]);
    assert_eq!(expect_ready(async move { { task_handle }.result().await }).unwrap().to_text(), "done");

    // An error is the last update.
    let mut task_handle = handle(&client, &mut server);
    let mut updates = Task::start(async move { task_handle.updates().collect::<Vec<_>>().await });
    let poll = polled(&mut server, &mut updates, SECOND);
    server.respond_error(&poll, -32602);
    let states = updates.finish();
    assert!(matches!(states[..], [Ok(_), Err(Error::Task(TaskError::Unknown))]), "{states:?}");
    server.assert_quiet();
}

/// The state can be requested without following the task.
#[test]
fn the_state_can_be_requested() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut task_handle = handle(&client, &mut server);
    let mut asking = Task::start(async move {
        let status = task_handle.status().await.map(|state| state.status);
        (status, task_handle)
    });
    let poll = server.expect_request("tasks/get");
    server.respond(&poll, task("input_required", json!({ "inputRequests": { "a": { "method": "roots/list" } } })));
    let (status, task_handle) = asking.finish();
    assert_eq!(status.unwrap(), TaskStatus::InputRequired);
    server.assert_quiet();
    drop(task_handle);
    expect_task_cancelled(&mut server);
}

/// A task can be cancelled, and then ends as it likes.
#[test]
fn tk_26_a_task_can_be_cancelled() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut task_handle = handle(&client, &mut server);
    let mut cancelling = Task::start(async move {
        let outcome = task_handle.cancel().await;
        (outcome, task_handle)
    });
    expect_task_cancelled(&mut server);
    let (outcome, task_handle) = cancelling.finish();
    outcome.unwrap();
    let mut waiting = result_of(task_handle);
    let poll = polled(&mut server, &mut waiting, SECOND);
    server.respond(&poll, completed("too late"));
    let (result, task_handle) = waiting.finish();
    assert_eq!(result.unwrap(), "too late");
    drop(task_handle);
    server.assert_quiet();
}

/// A handle that is dropped cancels its task; one that is detached does not, and another client goes on with it.
// covers: TK-18, TK-22
#[test]
fn tk_18_another_client_goes_on_with_a_task() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    drop(handle(&client, &mut server));
    expect_task_cancelled(&mut server);

    let asking = || builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline));
    let schema = json!({ "type": "object", "properties": {} });
    let form = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } });
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, asking());
    let mut task_handle = handle(&client, &mut server);
    let mut updates = Task::start(async move {
        let _ = task_handle.next_update().await;
        let _ = task_handle.next_update().await;
        task_handle
    });
    let poll = polled(&mut server, &mut updates, SECOND);
    server.respond(&poll, task("input_required", json!({ "inputRequests": { "a": form } })));
    updates.assert_pending();
    let update = server.expect_request("tasks/update");
    server.respond(&update, json!({}));
    let reference = updates.finish().detach();
    server.assert_quiet();
    let saved = serde_json::to_string(&reference).unwrap();
    assert!(!format!("{reference:?}").contains("t1"), "the id may be a secret");

    let (other, mut server) = ScriptedServer::modern(TransportKind::Pipe, asking());
    let reference: TaskReference = serde_json::from_str(&saved).unwrap();
    assert_eq!(reference.state.status, TaskStatus::InputRequired);
    let mut waiting = result_of(other.resume_task(reference));
    let poll = server.expect_request("tasks/get");
    server.respond(&poll, task("input_required", json!({ "inputRequests": { "a": form } })));
    waiting.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.respond_error(&listen, -32601);
    waiting.assert_pending();
    // The first client has answered that.
    server.assert_quiet();
    let poll = polled(&mut server, &mut waiting, SECOND);
    server.respond(&poll, completed("by another"));
    assert_eq!(waiting.finish().0.unwrap(), "by another");
}

/// A gateway gets the task instead of its result.
#[test]
fn one_round_may_end_with_a_task() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut round = Task::start(client.call_tool("render").one_round());
    create(&mut server, created());
    let Ok(RoundOutcome::Task(reference)) = round.finish() else { panic!("not a task") };
    assert_eq!((&*reference.id, reference.revision.as_str()), ("t1", "2026-07-28"));
    server.assert_quiet();
}

/// The tasks of one model are unknown in the other.
// covers: TK-36
#[test]
fn tk_36_tasks_belong_to_their_revision() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let reference = handle(&client, &mut server).detach();
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut of_revision = serde_json::to_value(&reference).unwrap();
        of_revision["revision"] = json!(revision);
        let mut task_handle = client.resume_task(serde_json::from_value(of_revision).unwrap());
        let error = expect_ready(async move { task_handle.result().await }).unwrap_err();
        assert!(matches!(error, Error::Task(TaskError::OtherRevision(_))), "{error}");
        assert!(error.to_string().contains(revision), "{error}");
    }
    let (legacy, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder());
    let mut task_handle = legacy.resume_task(reference);
    let error = expect_ready(async move { task_handle.result().await }).unwrap_err();
    assert!(matches!(error, Error::Task(TaskError::OtherRevision(_))), "{error}");
    server.assert_quiet();
}

/// Responses that the server rejects are not sent again: the handle can be used with others. If the server does not know the task
/// any more, the error says so.
#[test]
fn rejected_responses_are_given_up() {
    let decline = async |_, _| ElicitResult::new(ElicitAction::Decline);
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().on_form_elicitation(decline));
    let schema = json!({ "type": "object", "properties": {} });
    let form = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } });
    let asks = || task("input_required", json!({ "inputRequests": { "a": form.clone() } }));
    let mut waiting = result_of(handle(&client, &mut server));
    let poll = polled(&mut server, &mut waiting, SECOND);
    server.respond(&poll, asks());
    waiting.assert_pending();
    let update = server.expect_request("tasks/update");
    server.respond_error(&update, -32602);
    waiting.assert_pending();
    let poll = server.expect_request("tasks/get");
    server.respond(&poll, asks());
    let (result, task_handle) = waiting.finish();
    assert!(matches!(result, Err(Error::Rejected(_))), "{result:?}");

    let mut waiting = result_of(task_handle);
    let listen = server.expect_request("subscriptions/listen");
    server.respond_error(&listen, -32601);
    let poll = polled(&mut server, &mut waiting, SECOND);
    server.respond(&poll, asks());
    waiting.assert_pending();
    let update = server.expect_request("tasks/update");
    assert_eq!(update.params["inputResponses"]["a"]["action"], "decline", "it is asked again");
    server.respond_error(&update, -32602);
    waiting.assert_pending();
    let poll = server.expect_request("tasks/get");
    server.respond_error(&poll, -32602);
    let (result, task_handle) = waiting.finish();
    assert!(matches!(result, Err(Error::Task(TaskError::Unknown))), "{result:?}");
    drop(task_handle);
    server.assert_quiet();
}

/// Responses that were not rejected by the server are kept: they are sent when the handle is used again, for example after a
/// login, and the user is not asked again.
#[test]
fn responses_that_did_not_reach_the_server_are_kept() {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(0));
    let counted = std::sync::Arc::clone(&asked);
    let decline = move |_, _| {
        *counted.lock().unwrap() += 1;
        async { ElicitResult::new(ElicitAction::Decline) }
    };
    let (client, mut server) =
        ScriptedServer::modern(TransportKind::RequestPerCall, builder().on_form_elicitation(decline));
    let schema = json!({ "type": "object", "properties": {} });
    let form = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } });
    let mut waiting = result_of(handle(&client, &mut server));
    let poll = polled(&mut server, &mut waiting, SECOND);
    server.respond(&poll, task("input_required", json!({ "inputRequests": { "a": form } })));
    waiting.assert_pending();
    let update = server.expect_request("tasks/update");
    server.handle.responses().handle_status(update.call, 403, b"");
    let (result, task_handle) = waiting.finish();
    assert!(matches!(result, Err(Error::Status { status: 403, .. })), "{result:?}");

    let mut waiting = result_of(task_handle);
    let again = server.expect_request("tasks/update");
    assert_eq!(again.params["inputResponses"], update.params["inputResponses"]);
    server.respond(&again, json!({ "resultType": "complete" }));
    waiting.assert_pending();
    assert_eq!(*asked.lock().unwrap(), 1);
}
