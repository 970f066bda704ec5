//! Floods and huge tasks.

use std::time::Duration;

use mcp_server::{AskError, HandlerError, NoArguments, RequestContext, tool};
use mcp_tasks::{MemoryTaskStore, TaskLimits, TaskSupport, Tasks};
use serde_json::json;

use crate::kit::{Counts, TestClient, accept, build, server, server_with, settings};
use crate::tools;

/// Tasks beyond a limit are refused, with the name of the limit, and others are not affected.
// covers: S4.99
#[tokio::test(start_paused = true)]
async fn floods_of_tasks_are_refused() {
    let counts = Counts::default();
    let limits = TaskLimits::default().max_unfinished(8).max_unfinished_per_owner(3).max_unfinished_per_tool(5);
    let store = MemoryTaskStore::new(limits);
    let server = server_with(store, [tools::endless(&counts), tools::slow(TaskSupport::Required)]);
    let mut ann = TestClient::modern(&server).user("ann");
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(ann.start("endless").await);
    }
    for _ in 0..100 {
        let error = ann.error("tools/call", json!({ "name": "endless" }), -32603).await;
        assert!(error["message"].as_str().unwrap().contains("max_unfinished_per_owner"), "{error}");
    }
    let mut others: Vec<_> = (0..4).map(|user| TestClient::modern(&server).user(&format!("user {user}"))).collect();
    others[0].start("endless").await;
    others[1].start("endless").await;
    let error = others[2].error("tools/call", json!({ "name": "endless" }), -32603).await;
    assert!(error["message"].as_str().unwrap().contains("max_unfinished_per_tool"), "{error}");
    for client in &mut others[..3] {
        client.start("slow").await;
    }
    let error = others[3].error("tools/call", json!({ "name": "slow" }), -32603).await;
    assert!(error["message"].as_str().unwrap().contains("`TaskLimits::max_unfinished`"), "{error}");
    ann.result("tasks/cancel", json!({ "taskId": tasks[0] })).await;
    ann.start("endless").await;
}

/// A process runs no more tasks at a time than it should; the others are queued.
#[tokio::test(start_paused = true)]
async fn tasks_are_queued() {
    let counts = Counts::default();
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), settings().max_running(2));
    let server = build(tasks, |builder| builder.tools([tools::endless(&counts), tools::hello(TaskSupport::Allowed)]));
    let mut client = TestClient::modern(&server);
    let first = client.start("endless").await;
    client.start("endless").await;
    let queued = client.start("hello").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(client.get(&queued).await["status"], "working");
    client.result("tasks/cancel", json!({ "taskId": first })).await;
    client.until(&queued, "completed").await;
    assert_eq!(counts.of("started"), 2);
}

/// Floods of polls and of responses to nothing change nothing, and cost no version.
// covers: TK-19, TK-25
#[tokio::test(start_paused = true)]
async fn floods_of_updates_change_nothing() {
    let server = server([tools::curious()]);
    let mut client = TestClient::modern(&server);
    let task = client.start("curious").await;
    let before = client.until(&task, "input_required").await;
    for number in 0..500 {
        client.update(&task, json!({ format!("key {number}"): { "action": "accept" } })).await;
        client.get(&task).await;
    }
    let many: serde_json::Map<_, _> = (0..10_000).map(|number| (format!("{number}"), json!({}))).collect();
    let error = client.error("tasks/update", json!({ "taskId": task, "inputResponses": many }), -32602).await;
    assert!(error["message"].as_str().unwrap().contains("max_input_responses"), "{error}");
    assert_eq!(client.get(&task).await, before);
}

/// What is too large to be kept is an error that names the limit.
#[tokio::test(start_paused = true)]
async fn huge_tasks_fail_clearly() {
    let limits = TaskLimits::default().max_call_bytes(2000).max_journal_bytes(2000).max_outcome_bytes(2000);
    let huge = tool("huge", async |_, _: NoArguments| "x".repeat(3000)).task(TaskSupport::Allowed);
    let step = tool("step", async |ctx: RequestContext, _: NoArguments| {
        ctx.once("small", async || Ok::<_, AskError>(1)).await?;
        let huge: String = ctx.once("download", async || Ok::<_, AskError>("x".repeat(3000))).await?;
        Ok::<_, HandlerError>(huge)
    })
    .task(TaskSupport::Allowed);
    let question = tool("question", async |ctx: RequestContext, _: NoArguments| {
        let name: tools::Name = ctx.elicit("name", "x".repeat(3000)).await?.accepted()?;
        Ok::<_, HandlerError>(name.name)
    })
    .task(TaskSupport::Allowed);
    let server = server_with(MemoryTaskStore::new(limits), [huge, step, question, tools::curious()]);
    let mut client = TestClient::modern(&server);
    for (tool, words) in [
        ("huge", ["outcome", "max_outcome_bytes"]),
        ("step", ["step `download`", "max_journal_bytes"]),
        ("question", ["outcome of the task", "max_journal_bytes"]),
    ] {
        let task = client.start(tool).await;
        let state = client.until(&task, "failed").await;
        let message = state["error"]["message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    let arguments = json!({ "name": "hello", "arguments": {}, "_meta": { "com.example/note": "x".repeat(3000) } });
    let call = json!({ "name": "huge", "_meta": arguments["_meta"] });
    let error = client.error("tools/call", call, -32602).await;
    assert!(error["message"].as_str().unwrap().contains("max_call_bytes"), "{error}");
    // A response that is too large is refused, and another one is not.
    let task = client.start("curious").await;
    client.until(&task, "input_required").await;
    let long = json!({ "name": accept(json!({ "name": "x".repeat(3000) })) });
    let error = client.error("tasks/update", json!({ "taskId": task, "inputResponses": long }), -32602).await;
    assert!(error["message"].as_str().unwrap().contains("max_journal_bytes"), "{error}");
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    let mut keys = client.get(&task).await["inputRequests"].take();
    assert_eq!(keys.as_object_mut().unwrap().keys().collect::<Vec<_>>(), ["colour"]);
}
