//! Calls that become tasks if they are not done after a time.

use std::time::Duration;

use mcp_server::types::Revision;
use mcp_server::{AskError, HandlerError, NoArguments, RequestContext, Tool, tool};
use mcp_tasks::{MemoryTaskStore, TaskLimits, TaskOptions};
use serde_json::json;
use tokio::time::sleep;

use crate::kit::{Counts, TestClient, accept, server, server_with, text};
use crate::tools;

fn options() -> TaskOptions {
    TaskOptions::allowed().after(Duration::from_secs(5))
}

/// Takes a step, asks, works for a time, asks again and takes another step.
fn booking(counts: &Counts, work: Duration) -> Tool {
    let counts = counts.clone();
    tool("book", move |ctx: RequestContext, _: NoArguments| {
        let counts = counts.clone();
        async move {
            counts.add("runs");
            let paid: usize = ctx.once("pay", async || Ok::<_, AskError>(counts.add("pay"))).await?;
            let tools::Name { name } = ctx.elicit("name", "Your name?").await?.accepted()?;
            let is_task = ctx.is_task();
            sleep(work).await;
            let late: usize = ctx.once("print", async || Ok::<_, AskError>(counts.add("print"))).await?;
            let again: tools::Name = ctx.elicit("again", "Sure?").await?.accepted()?;
            Ok::<_, HandlerError>(format!("{name} {} {paid} {late} {is_task}", again.name))
        }
    })
    .task(options())
}

/// A call that is done in time responds by itself; a slow one becomes a task and goes on.
// covers: TK-3
#[tokio::test(start_paused = true)]
async fn slow_calls_become_tasks() {
    let counts = Counts::default();
    let runs = counts.clone();
    let quick = tool("quick", async |_, _: NoArguments| "quick").task(options());
    let slow = tool("slow", move |ctx: RequestContext, _: NoArguments| {
        let runs = runs.clone();
        async move {
            runs.add("runs");
            assert!(!ctx.is_task());
            sleep(Duration::from_secs(8)).await;
            format!("slow {}", ctx.is_task())
        }
    })
    .task(options());
    let server = server([quick, slow]);
    let mut client = TestClient::modern(&server);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "quick" })).await), "quick");
    let task = client.start("slow").await;
    assert_eq!(client.get(&task).await["status"], "working");
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "slow true");
    assert_eq!(counts.of("runs"), 1, "the handler went on");
    // A client without the extension waits.
    let mut plain = TestClient::new(&server, Revision::V2026_07_28, json!({}));
    assert_eq!(text(&plain.result("tools/call", json!({ "name": "slow" })).await), "slow false");
}

/// Questions before the task follow the rules of rounds; what they brought is part of the task.
// covers: TK-13, TK-21
#[tokio::test(start_paused = true)]
async fn questions_before_a_task_are_rounds() {
    let counts = Counts::default();
    let server = server([booking(&counts, Duration::from_secs(10))]);
    let mut client = TestClient::modern(&server);
    let asked = client.result("tools/call", json!({ "name": "book" })).await;
    assert_eq!((&asked["resultType"], asked.get("taskId")), (&json!("input_required"), None));
    let retry = json!({
        "name": "book",
        "requestState": asked["requestState"],
        "inputResponses": { "name": accept(json!({ "name": "Alice" })) },
    });
    let created = client.result("tools/call", retry).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!((created.get("requestState"), created.get("inputRequests")), (None, None));
    let task = created["taskId"].as_str().unwrap();
    let state = client.until(task, "input_required").await;
    assert_eq!(state["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["again"]);
    client.update(task, json!({ "again": accept(json!({ "name": "yes" })) })).await;
    let state = client.until(task, "completed").await;
    // The last run finds everything in its journal, and is a task from its beginning.
    assert_eq!(text(&state["result"]), "Alice yes 1 1 true");
    assert_eq!((counts.of("pay"), counts.of("print")), (1, 1));
}

/// A retry of a call that is a task at once brings what earlier rounds had.
// covers: TK-13
#[tokio::test(start_paused = true)]
async fn a_retry_can_become_a_task_at_once() {
    let counts = Counts::default();
    let server = server([tools::order(&counts)]);
    // Without the extension the call is a round.
    let mut plain = TestClient::new(&server, Revision::V2026_07_28, json!({ "elicitation": {} }));
    let asked = plain.result("tools/call", json!({ "name": "order" })).await;
    assert_eq!(asked["resultType"], "input_required");
    let responses = json!({ "name": accept(json!({ "name": "Alice" })) });
    let retry = json!({ "name": "order", "requestState": asked["requestState"], "inputResponses": responses });
    let mut client = TestClient::modern(&server);
    let created = client.result("tools/call", retry).await;
    let task = created["taskId"].as_str().unwrap();
    assert_eq!(text(&client.until(task, "completed").await["result"]), "Alice: 1 1");
    assert_eq!((counts.of("pay"), counts.of("send")), (1, 1));
    // The format of tasks cannot be forged.
    client.error("tools/call", json!({ "name": "order", "requestState": "task:{}" }), -32602).await;
}

/// Cancelling the call before it is a task drops the handler.
#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_before_it_is_a_task() {
    let counts = Counts::default();
    let endless = tools::endless(&counts).task(options());
    let server = server([endless]);
    let mut client = TestClient::modern(&server);
    let id = client.scripted.start("tools/call", json!({ "name": "endless" }));
    sleep(Duration::from_secs(1)).await;
    client.scripted.cancel(id);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((counts.of("dropped"), counts.of("seen")), (1, 1));
    let task = client.start("endless").await;
    client.result("tasks/cancel", json!({ "taskId": task })).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!((counts.of("dropped"), counts.of("seen")), (2, 2));
}

/// A call that cannot become a task goes on without one.
#[tokio::test(start_paused = true)]
async fn a_call_goes_on_without_a_task() {
    let slow = tool("slow", async |_, _: NoArguments| {
        sleep(Duration::from_secs(8)).await;
        "done"
    })
    .task(options());
    let store = MemoryTaskStore::new(TaskLimits::default().max_unfinished(0));
    let server = server_with(store, [slow]);
    let mut client = TestClient::modern(&server);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "slow" })).await), "done");
}
