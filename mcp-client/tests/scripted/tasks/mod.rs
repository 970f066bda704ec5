//! Calls that become tasks, in both models.

mod asking;
mod core;
mod core_asking;
mod following;
mod handles;
mod hostile;
mod listening;

use std::time::Duration;

use mcp_client::types::CallToolResult;
use mcp_client::{Client, ClientBuilder, Error, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

type Calling = Task<Result<CallToolResult, Error>>;

/// The state of the task `t1` in the extension, with these members.
fn task(status: &str, members: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t1", "status": status, "ttlMs": 60_000, "pollIntervalMs": 1000,
        "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z",
    });
    for (name, value) in members.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

fn created() -> Value {
    task("working", json!({ "resultType": "task" }))
}

fn completed(text: &str) -> Value {
    task("completed", json!({ "result": tool_result(text) }))
}

/// A client of a modern server without streams, with a call that has become a task.
#[track_caller]
fn started(kind: TransportKind, builder: ClientBuilder) -> (Client, ScriptedServer, Calling) {
    let (client, mut server) = ScriptedServer::modern(kind, builder);
    let mut call = Task::start(client.call_tool("render"));
    create(&mut server, created());
    call.assert_pending();
    (client, server, call)
}

/// Makes a task of the next call.
#[track_caller]
fn create(server: &mut ScriptedServer, created: Value) {
    let request = server.expect_request("tools/call");
    server.respond(&request, created);
}

/// Waits for a poll.
#[track_caller]
fn polled<T>(server: &mut ScriptedServer, waiting: &mut Task<T>, after: Duration) -> ReceivedRequest {
    server.advance(after);
    waiting.assert_pending();
    server.expect_request("tasks/get")
}

/// Answers a poll; the stream that the client wants then is refused.
#[track_caller]
fn answer_first<T>(server: &mut ScriptedServer, waiting: &mut Task<T>, poll: &ReceivedRequest, state: Value) {
    server.respond(poll, state);
    waiting.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    assert_eq!(listen.params["notifications"], json!({ "taskIds": ["t1"] }));
    server.respond_error(&listen, -32601);
    waiting.assert_pending();
}

#[track_caller]
fn expect_task_cancelled(server: &mut ScriptedServer) {
    let cancel = server.expect_request("tasks/cancel");
    assert_eq!(cancel.params["taskId"], "t1");
    server.respond(&cancel, json!({ "resultType": "complete" }));
    server.assert_quiet();
}
