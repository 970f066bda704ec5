//! The tasks of 2025-11-25.

use std::time::Duration;

use mcp_client::types::{CallToolResult, Revision};
use mcp_client::{Client, ClientBuilder, CommandError, Error, Mode, Started, TaskError, TransportKind};
use mcp_testkit::envelope::{initialize_result, tool_result};
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use super::{Calling, SECOND};
use crate::fixtures::{KINDS, builder};

/// The state of the task `t1`.
pub(super) fn task(status: &str) -> Value {
    json!({
        "taskId": "t1", "status": status, "ttl": 60_000, "pollInterval": 1000,
        "createdAt": "2025-12-01T00:00:00Z", "lastUpdatedAt": "2025-12-01T00:00:00Z",
    })
}

pub(super) fn created() -> Value {
    json!({ "task": task("working") })
}

/// A client of a server of 2025-11-25 with these capabilities for tasks.
#[track_caller]
fn connected(kind: TransportKind, builder: ClientBuilder, tasks: Value) -> (Client, ScriptedServer) {
    let (mut connecting, mut server) = ScriptedServer::connect(kind, builder.mode(Mode::Legacy));
    let initialize = server.expect_request("initialize");
    let mut capabilities = ScriptedServer::capabilities();
    capabilities["tasks"] = tasks;
    server.respond(&initialize, initialize_result(Revision::LATEST_LEGACY.as_str(), capabilities));
    server.expect_notification("notifications/initialized");
    server.poll();
    (connecting.finish().unwrap(), server)
}

/// A client of a server with all of them.
#[track_caller]
pub(super) fn with_tasks(kind: TransportKind, builder: ClientBuilder) -> (Client, ScriptedServer) {
    connected(kind, builder, json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }))
}

fn tools() -> Value {
    let tool = |name: &str, support: Option<&str>| {
        let mut tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        if let Some(support) = support {
            tool["execution"] = json!({ "taskSupport": support });
        }
        tool
    };
    json!({ "tools": [
        tool("never", Some("forbidden")), tool("silent", None), tool("may", Some("optional")),
        tool("must", Some("required")), tool("strange", Some("sometimes")),
    ] })
}

#[track_caller]
fn list(server: &mut ScriptedServer) {
    let request = server.expect_request("tools/list");
    server.respond(&request, tools());
}

/// A call of a tool that has become a task.
#[track_caller]
pub(super) fn started(client: &Client, server: &mut ScriptedServer) -> Calling {
    started_with(server, Task::start(client.call_tool("must")))
}

/// Makes a task of a call, whose server says first that it has to be one.
#[track_caller]
pub(super) fn started_with(server: &mut ScriptedServer, mut call: Calling) -> Calling {
    let mut request = server.expect_request("tools/call");
    if request.params.get("task").is_none() {
        server.respond_error(&request, -32601);
        call.assert_pending();
        list(server);
        call.assert_pending();
        request = server.expect_request("tools/call");
    }
    assert_eq!(request.params["task"], json!({}));
    server.respond(&request, created());
    call.assert_pending();
    call
}

#[track_caller]
pub(super) fn polled(server: &mut ScriptedServer, call: &mut Calling, after: Duration) -> ReceivedRequest {
    super::polled(server, call, after)
}

/// The extension means nothing there, and the client hosts no tasks.
// covers: TK-36, B-80, B-92
#[test]
fn tk_36_the_extension_is_not_declared_to_legacy_servers() {
    let (_connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder().mode(Mode::Legacy));
    assert_eq!(server.expect_request("initialize").params["capabilities"], json!({}));
}

/// Tools that require a task get one, without being asked for it; others only if they allow it and the caller wants it.
// covers: B-80, B-81, B-82
#[test]
fn b_81_tasks_are_asked_for_where_tools_have_them() {
    for kind in KINDS {
        let (client, mut server) = with_tasks(kind, builder());
        let mut listing = Task::start(client.list_tools(None));
        list(&mut server);
        listing.finish().unwrap();
        // A call that is dropped would be cancelled.
        let mut kept = Vec::new();
        for (tool, is_task_alone, is_task_if_wanted) in [
            ("never", false, false),
            ("silent", false, false),
            ("strange", false, false),
            ("may", false, true),
            ("must", true, true),
        ] {
            let call = Task::start(client.call_tool(tool));
            let request = server.expect_request("tools/call");
            assert_eq!(request.params.get("task").is_some(), is_task_alone, "{tool}");
            let starting = Task::start(client.call_tool(tool).task_ttl(SECOND).as_task());
            let request = server.expect_request("tools/call");
            let expected = is_task_if_wanted.then(|| json!({ "ttl": 1000 }));
            assert_eq!(request.params.get("task"), expected.as_ref(), "{tool}");
            server.assert_quiet();
            kept.push((call, starting));
        }
    }
}

/// Without a list, the client looks: before it asks for a task, and if a server says that it has to.
// covers: B-81
#[test]
fn b_81_tools_are_listed_when_it_matters() {
    for kind in KINDS {
        let (client, mut server) = with_tasks(kind, builder());
        let mut starting = Task::start(client.call_tool("may").as_task());
        list(&mut server);
        starting.assert_pending();
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["task"], json!({}));
        server.respond(&request, created());
        let Ok(Started::Task(task)) = starting.finish() else { panic!("not a task") };
        let _ = task.detach();
        // The list has changed.
        server.notify("notifications/tools/list_changed", json!({}));
        let mut call = Task::start(client.call_tool("must"));
        let request = server.expect_request("tools/call");
        assert_eq!(request.params.get("task"), None);
        server.respond_error(&request, -32601);
        call.assert_pending();
        list(&mut server);
        call.assert_pending();
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["task"], json!({}));
        server.respond(&request, created());
        call.assert_pending();
        drop(call);
        server.expect_request("tasks/cancel");
        // A tool that does not exist is looked for once.
        let mut call = Task::start(client.call_tool("nowhere"));
        let request = server.expect_request("tools/call");
        server.respond_error(&request, -32601);
        call.assert_pending();
        list(&mut server);
        assert!(matches!(call.finish(), Err(Error::Rejected(_))));
        server.assert_quiet();
    }
}

/// Servers without tasks are not asked for any, nor are tools listed for it; and one may respond with the result.
// covers: B-80, B-83
#[test]
fn b_83_servers_without_tasks_are_called_as_ever() {
    for tasks in [json!({}), json!({ "list": {} }), json!({ "requests": { "tools": {} } })] {
        let (client, mut server) = connected(TransportKind::Pipe, builder(), tasks);
        let mut listing = Task::start(client.list_tools(None));
        list(&mut server);
        listing.finish().unwrap();
        let mut starting = Task::start(client.call_tool("must").as_task());
        let request = server.expect_request("tools/call");
        assert_eq!(request.params.get("task"), None);
        server.respond_error(&request, -32601);
        assert!(matches!(starting.finish(), Err(Error::Rejected(_))));
        server.assert_quiet();
    }
    let (client, mut server) = with_tasks(TransportKind::Pipe, builder().without_tasks());
    let _call = Task::start(client.call_tool("must"));
    assert_eq!(server.expect_request("tools/call").params.get("task"), None);

    let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
    let mut starting = Task::start(client.call_tool("may").as_task());
    list(&mut server);
    starting.assert_pending();
    let request = server.expect_request("tools/call");
    server.respond(&request, tool_result("at once"));
    assert!(matches!(starting.finish(), Ok(Started::Done(_))));
}

/// A task is polled until it has ended; then its result is fetched.
// covers: B-82, B-84, B-85, B-87
#[test]
fn b_85_the_result_is_fetched_at_the_end() {
    for kind in KINDS {
        for status in ["completed", "failed"] {
            let (client, mut server) = with_tasks(kind, builder());
            let mut call = started(&client, &mut server);
            let poll = polled(&mut server, &mut call, SECOND);
            assert_eq!((&poll.params["taskId"], poll.params["_meta"].get("related")), (&json!("t1"), None));
            let mut slower = task("working");
            slower["pollInterval"] = json!(2000);
            server.respond(&poll, slower);
            call.assert_pending();
            server.advance(SECOND);
            call.assert_pending();
            server.assert_quiet();
            let poll = polled(&mut server, &mut call, SECOND);
            server.respond(&poll, task(status));
            call.assert_pending();
            let result = server.expect_request("tasks/result");
            assert_eq!(result.params["taskId"], "t1");
            let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
            let is_error = status == "failed";
            server.respond(&result, json!({ "content": [], "isError": is_error, "_meta": related }));
            assert_eq!(call.finish().unwrap().is_error, Some(is_error));
            server.assert_quiet();
        }
    }
}

type Outcome = Result<CallToolResult, Error>;

/// How a call ends whose task ends like this.
fn end(status: &str, respond: impl FnOnce(&ScriptedServer, &ReceivedRequest)) -> (Outcome, ScriptedServer) {
    let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
    let mut call = started(&client, &mut server);
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, task(status));
    if status != "cancelled" {
        call.assert_pending();
        let result = server.expect_request("tasks/result");
        respond(&server, &result);
    }
    (call.finish(), server)
}

/// The error of the request is that of the call; a task that is cancelled or unknown is an error of its own.
// covers: B-85, B-89, B-91
#[test]
fn b_85_errors_are_those_of_the_request() {
    let (outcome, mut server) = end("failed", |server, result| server.respond_error(result, -32602));
    assert!(matches!(outcome, Err(Error::Rejected(_))));
    server.assert_quiet();
    let (outcome, mut server) = end("cancelled", |_, _| ());
    assert!(matches!(outcome, Err(Error::Task(TaskError::Cancelled { .. }))));
    server.assert_quiet();
    let other = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t2" } });
    let (outcome, mut server) =
        end("completed", |server, result| server.respond(result, json!({ "content": [], "_meta": other })));
    assert!(matches!(&outcome, Err(Error::InvalidResponse(why)) if why.contains("`t2`")), "{outcome:?}");
    server.assert_quiet();

    let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
    let mut call = started(&client, &mut server);
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond_error(&poll, -32602);
    assert!(matches!(call.finish(), Err(Error::Task(TaskError::Unknown))));
    server.assert_quiet();
}

/// Status notifications hasten the next poll, within the limits.
// covers: B-87
#[test]
fn status_notifications_hasten_polls() {
    for kind in KINDS {
        let (client, mut server) = with_tasks(kind, builder());
        let mut call = started(&client, &mut server);
        let poll = polled(&mut server, &mut call, SECOND);
        let mut slow = task("working");
        slow["pollInterval"] = json!(60_000);
        server.respond(&poll, slow);
        call.assert_pending();
        server.notify("notifications/tasks/status", task("completed"));
        call.assert_pending();
        server.advance(Duration::from_millis(249));
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, Duration::from_millis(1));
        server.respond(&poll, task("completed"));
        call.assert_pending();
        let result = server.expect_request("tasks/result");
        server.respond(&result, tool_result("done"));
        call.finish().unwrap();
    }
}

/// Dropping the call cancels the task where the server can; cancelling what has ended is no error.
// covers: B-88
#[test]
fn b_88_tasks_are_cancelled() {
    let (client, mut server) = with_tasks(TransportKind::Pipe, builder());
    drop(started(&client, &mut server));
    let cancel = server.expect_request("tasks/cancel");
    assert_eq!(cancel.params["taskId"], "t1");
    server.respond(&cancel, task("cancelled"));
    let tasks = json!({ "requests": { "tools": { "call": {} } } });
    let (without, mut other) = connected(TransportKind::Pipe, builder(), tasks);
    drop(started(&without, &mut other));
    other.assert_quiet();

    for (status, is_known) in [(Some("completed"), true), (Some("working"), false), (None, false)] {
        let mut starting = Task::start(client.call_tool("must").as_task());
        let request = server.expect_request("tools/call");
        server.respond(&request, created());
        let Ok(Started::Task(mut handle)) = starting.finish() else { panic!("not a task") };
        let mut cancelling = Task::start(async move {
            let outcome = handle.cancel().await;
            (outcome, handle.detach())
        });
        let cancel = server.expect_request("tasks/cancel");
        server.respond_error(&cancel, -32602);
        cancelling.assert_pending();
        let poll = server.expect_request("tasks/get");
        match status {
            Some(status) => server.respond(&poll, task(status)),
            None => server.respond_error(&poll, -32602),
        }
        assert_eq!(cancelling.finish().0.is_ok(), is_known, "{status:?}");
    }
}

/// An outage while the result is fetched is waited out.
#[test]
fn the_result_is_fetched_until_it_arrives() {
    let (client, mut server) = with_tasks(TransportKind::RequestPerCall, builder());
    let mut call = started(&client, &mut server);
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, task("completed"));
    call.assert_pending();
    let lost = server.expect_request("tasks/result");
    server.handle.responses().handle_status(lost.call, 503, b"");
    call.assert_pending();
    server.advance(SECOND);
    call.assert_pending();
    let result = server.expect_request("tasks/result");
    server.respond(&result, tool_result("done"));
    assert_eq!(call.finish().unwrap().to_text(), "done");
}

/// The tasks of a user are listed in pages, and each can be followed.
// covers: B-89, B-90
#[test]
fn tasks_are_listed() {
    for kind in KINDS {
        let (client, mut server) = with_tasks(kind, builder());
        let mut listing = Task::start(client.tasks().all());
        let request = server.expect_request("tasks/list");
        assert_eq!(request.params.get("cursor"), None);
        server.respond(&request, json!({ "tasks": [task("working")], "nextCursor": "2" }));
        listing.assert_pending();
        let request = server.expect_request("tasks/list");
        assert_eq!(request.params["cursor"], "2");
        let mut other = task("completed");
        other["taskId"] = json!("t2");
        server.respond(&request, json!({ "tasks": [other] }));
        let tasks = listing.finish().unwrap();
        let found: Vec<_> = tasks.iter().map(|task| (task.id.as_str(), task.state.is_final())).collect();
        assert_eq!(found, [("t1", false), ("t2", true)]);
        assert_eq!(tasks[0].state.poll_interval, Some(SECOND));

        let mut handle = client.resume_task(tasks[1].clone());
        let mut waiting = Task::start(async move { handle.result().await });
        let request = server.expect_request("tasks/result");
        assert_eq!(request.params["taskId"], "t2");
        server.respond(&request, tool_result("done"));
        assert_eq!(waiting.finish().unwrap().to_text(), "done");

        // One page, as the server sent it.
        let mut page = Task::start(async move { client.list_tasks(Some("2".to_owned())).await });
        let request = server.expect_request("tasks/list");
        server.respond(&request, json!({ "tasks": [], "nextCursor": "3" }));
        assert_eq!(page.finish().unwrap().next_cursor.as_deref(), Some("3"));
        server.assert_quiet();
    }
}

/// Other revisions have no list of tasks, and a server need not have one.
#[test]
fn lists_of_tasks_are_refused() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let error = expect_ready(client.tasks().all()).unwrap_err();
        assert!(matches!(error, Error::Command(CommandError::NotInRevision { .. })), "{error:?}");
        assert!(error.to_string().contains("tasks/list"), "{error}");
        server.assert_quiet();
        let (client, mut server) = connected(kind, builder(), json!({ "requests": { "tools": { "call": {} } } }));
        let mut listing = Task::start(client.tasks().all());
        let request = server.expect_request("tasks/list");
        server.respond_error(&request, -32601);
        assert!(listing.finish().unwrap_err().as_rejection().is_some());
    }
}
