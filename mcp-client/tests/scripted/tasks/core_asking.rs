//! What tasks of 2025-11-25 ask.

use mcp_client::types::{ElicitAction, ElicitResult, InputRequest};
use mcp_client::{Error, TransportKind};
use mcp_testkit::envelope::{request, tool_result};
use mcp_testkit::{ScriptedServer, Task};
use serde_json::{Value, json};

use super::SECOND;
use super::core::{polled, started, started_with, task, with_tasks};
use crate::fixtures::{KINDS, builder};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// An elicitation request for a task.
fn asks(task: &str) -> Value {
    let schema = json!({ "type": "object", "properties": {} });
    json!({ "message": "?", "requestedSchema": schema, "_meta": { RELATED: { "taskId": task } } })
}

fn response(server: &mut ScriptedServer) -> Value {
    server.poll();
    server.next_message()
}

/// While a task needs input, its result is waited for: then the server asks. The function of the call answers, and the response
/// names the task.
// covers: B-85, B-86
#[test]
fn b_86_a_task_asks_while_its_result_is_waited_for() {
    for kind in KINDS {
        let (client, mut server) =
            with_tasks(kind, builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Cancel)));
        let call = Task::start(client.call_tool("must").on_input(async |request| match request {
            InputRequest::Elicit(_) => Ok(Some(ElicitResult::new(ElicitAction::Decline).into())),
            InputRequest::CreateMessage(_) | InputRequest::ListRoots(_) | InputRequest::Unknown(_) | _ => Ok(None),
        }));
        let mut call = started_with(&mut server, call);
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("input_required"));
        call.assert_pending();
        let result = server.expect_request("tasks/result");
        // On the stream of that call, or on that of the session.
        for (id, is_on_call) in [("q1", true), ("q2", false)] {
            let message = request(id, "elicitation/create", asks("t1"));
            if is_on_call {
                server.send_on(&result, &message)
            } else {
                server.send(&message)
            }
            let response = response(&mut server);
            assert_eq!(response["id"], id);
            assert_eq!(response["result"]["action"], "decline", "{kind:?} {response}");
            assert_eq!(response["result"]["_meta"], json!({ RELATED: { "taskId": "t1" } }));
        }
        // One of another task, and one of none.
        for params in [asks("t2"), json!({ "message": "?", "requestedSchema": asks("")["requestedSchema"] })] {
            let is_related = params.get("_meta").is_some();
            server.send(&request("q3", "elicitation/create", params));
            let response = response(&mut server);
            if kind == TransportKind::RequestPerCall || is_related {
                assert_eq!(response["result"]["action"], "cancel", "{kind:?} {response}");
            }
            assert_eq!(response["result"].get("_meta").is_some(), is_related);
        }
        server.respond(&result, tool_result("done"));
        assert_eq!(call.finish().unwrap().to_text(), "done");
        server.assert_quiet();
    }
}

/// The result may be long in coming, and the task is polled meanwhile, but rarely.
#[test]
fn the_result_may_be_waited_for_for_long() {
    let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
    let mut call = Task::start(client.call_tool("must").total_timeout(None));
    call = started_with(&mut server, call);
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, task("input_required"));
    call.assert_pending();
    let result = server.expect_request("tasks/result");
    for _ in 0..10 {
        server.advance(SECOND * 29);
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("input_required"));
        call.assert_pending();
    }
    server.respond(&result, tool_result("done"));
    call.finish().unwrap();
    server.assert_quiet();
}

/// A result that is refused too early is the error of the call only if the task has ended.
// covers: B-85, B-89
#[test]
fn a_refused_result_is_looked_into() {
    for (status, is_vanished) in [("failed", false), ("working", false), ("", true)] {
        let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
        let mut call = started(&client, &mut server);
        let poll = polled(&mut server, &mut call, SECOND);
        server.respond(&poll, task("input_required"));
        call.assert_pending();
        let result = server.expect_request("tasks/result");
        server.respond_error(&result, -32602);
        call.assert_pending();
        let poll = server.expect_request("tasks/get");
        if is_vanished {
            server.respond_error(&poll, -32602);
            assert!(matches!(call.finish(), Err(Error::Task(mcp_client::TaskError::Unknown))));
        } else {
            server.respond(&poll, task(status));
            assert!(matches!(call.finish(), Err(Error::Rejected(_))), "{status}");
        }
        if status == "working" {
            server.expect_request("tasks/cancel");
        }
        server.assert_quiet();
    }
}
