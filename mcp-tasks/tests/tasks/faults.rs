//! Stores whose responses are late or lost, and processes that stood still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_server::{AskError, HandlerError, NoArguments, RequestContext, Server, Tool, tool};
use mcp_tasks::{
    MemoryTaskStore, QueueAction, TaskClaim, TaskLimits, TaskOptions, TaskStore as _, TaskSupport, TaskWrite, Tasks,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::dying_store::DyingStore;
use crate::kit::{Counts, TestClient, build, settings, text, unix_time};
use crate::tools;

const LEASE: Duration = Duration::from_secs(30);

fn now() -> u64 {
    u64::try_from(unix_time().as_millis()).expect("a time of this age")
}

/// A tool that takes some seconds, and becomes a task after five.
fn slow(counts: &Counts, name: &str, seconds: u64) -> Tool {
    let counts = counts.clone();
    tool(name, move |_: RequestContext, _: NoArguments| {
        let counts = counts.clone();
        async move {
            counts.add("runs");
            sleep(Duration::from_secs(seconds)).await;
            "done"
        }
    })
    .task(TaskOptions::allowed().after(Duration::from_secs(5)))
}

fn process(store: &DyingStore, tool: Tool) -> Server {
    build(Tasks::with_settings(store.clone(), settings()), |builder| builder.tool(tool))
}

/// A call that may have become a task goes on without one, and no other process runs it.
#[tokio::test(start_paused = true)]
async fn a_task_of_unknown_fate_is_removed() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let faulty = DyingStore::new(&store);
    faulty.lose_insertions();
    let server = process(&faulty, slow(&counts, "slow", 8));
    let mut client = TestClient::modern(&server);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "slow" })).await), "done");
    sleep(2 * LEASE).await;
    assert_eq!(counts.of("runs"), 1);
    assert_eq!(store.usage(now()).await.unwrap().kept, 0);
}

/// If the store stays away, the call fails before another process can run it.
#[tokio::test(start_paused = true)]
async fn a_task_of_unknown_fate_does_not_run_twice_at_a_time() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let faulty = DyingStore::new(&store);
    faulty.lose_insertions();
    let server = process(&faulty, tools::endless(&counts).task(TaskOptions::allowed().after(Duration::from_secs(5))));
    let mut client = TestClient::modern(&server);
    let id = client.scripted.start("tools/call", json!({ "name": "endless" }));
    sleep(Duration::from_secs(4)).await;
    faulty.refuse_removals();
    let begun = Instant::now();
    assert_eq!(client.response(id).await["error"]["code"], -32603);
    assert!(begun.elapsed() <= LEASE + Duration::from_secs(2));
    assert_eq!(counts.of("dropped"), 1);
}

/// A process whose machine was suspended for longer than its lease begins no step: another process may have done it.
#[tokio::test(start_paused = true)]
async fn a_suspended_process_begins_no_step() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let steps = counts.clone();
    let order = tool("order", move |ctx: RequestContext, _: NoArguments| {
        let counts = steps.clone();
        async move {
            for key in ["first", "second"] {
                counts.add("begun");
                sleep(Duration::from_secs(5)).await;
                let _: usize = ctx.once(key, async || Ok::<_, AskError>(counts.add(key))).await?;
            }
            Ok::<_, HandlerError>("done")
        }
    });
    // The time that passes while the clock of tokio stands still.
    let suspended = Arc::new(AtomicU64::new(0));
    let more = Arc::clone(&suspended);
    let settings = settings().unix_clock(move || unix_time() + Duration::from_secs(more.load(Ordering::Relaxed)));
    let tasks = Tasks::with_settings(DyingStore::new(&store), settings);
    let server = build(tasks, |builder| builder.tool(order.task(TaskSupport::Required)));
    TestClient::modern(&server).start("order").await;
    sleep(Duration::from_secs(6)).await;
    assert_eq!((counts.of("first"), counts.of("begun")), (1, 2));
    suspended.store(60, Ordering::Relaxed);
    let other =
        store.claim(now() + 60_000, TaskClaim::new("other", LEASE)).await.unwrap().expect("the lease has expired");
    assert_eq!(other.ticket.run, 2);
    sleep(Duration::from_secs(20)).await;
    assert_eq!((counts.of("second"), counts.of("begun")), (0, 2));
}

/// Calls that become tasks count for the limit of this process. Beyond it they stay calls, until there is room.
#[tokio::test(start_paused = true)]
async fn calls_that_become_tasks_are_limited() {
    let counts = Counts::default();
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), settings().max_running(1));
    let server = build(tasks, |builder| builder.tools([slow(&counts, "slow", 20), slow(&counts, "slower", 60)]));
    let (mut client, mut other) = (TestClient::modern(&server), TestClient::modern(&server));
    let first = client.start("slow").await;
    let begun = Instant::now();
    let second = other.start("slower").await;
    assert!(begun.elapsed() > Duration::from_secs(14), "the first has ended");
    assert_eq!(client.get(&first).await["status"], "completed");
    assert_eq!(text(&other.until(&second, "completed").await["result"]), "done");
    assert_eq!(counts.of("runs"), 2);
}

/// A shutdown waits for a claim in flight, whose task runs nowhere else.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_claims() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let late = DyingStore::new(&store);
    let tasks = Tasks::with_settings(late.clone(), settings());
    let server = build(tasks.clone(), |builder| {
        builder.tool(slow(&counts, "slow", 1).task(TaskOptions::required().not_restartable()))
    });
    let mut client = TestClient::modern(&server);
    late.delay_claims(2);
    let task = client.start("slow").await;
    sleep(Duration::from_millis(500)).await;
    tasks.shutdown(Duration::from_secs(10)).await;
    assert_eq!(client.get(&task).await["status"], "completed");
    assert_eq!(counts.of("runs"), 1);
}

/// A task that is cancelled while its claim is in flight is told soon.
#[tokio::test(start_paused = true)]
async fn a_cancellation_during_a_claim_is_noticed() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let late = DyingStore::new(&store);
    let server = process(&late, tools::endless(&counts).task(TaskSupport::Required));
    let mut client = TestClient::modern(&server);
    late.delay_claims(2);
    let task = client.start("endless").await;
    sleep(Duration::from_secs(1)).await;
    client.result("tasks/cancel", json!({ "taskId": task })).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!((counts.of("started"), counts.of("dropped")), (1, 1));
}

/// A client of 2025-11-25 hears of a task that has ended before its creation was confirmed.
#[tokio::test(start_paused = true)]
async fn a_task_may_end_before_it_is_told() {
    let store = DyingStore::new(&Arc::new(MemoryTaskStore::default()));
    store.delay_insertions(2);
    let server = process(&store, tools::hello(TaskSupport::Allowed));
    let mut client = TestClient::core(&server);
    let task = client.start_core("hello").await;
    let notified = client.wait_for(|message| message["params"]["status"] == "completed").await;
    assert_eq!(notified["params"]["taskId"], json!(task));
}

/// A tool that completes a large step in a task of its own, six seconds after its beginning, and ends after ten.
fn large_step() -> Tool {
    let tool = tool("big", async |ctx: RequestContext, _: NoArguments| {
        let meanwhile = ctx.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(6)).await;
            let _ = meanwhile.once("large", async || Ok::<_, AskError>("x".repeat(2000))).await;
        });
        sleep(Duration::from_secs(10)).await;
        "done"
    });
    tool.task(TaskOptions::allowed().after(Duration::from_secs(5)))
}

/// A step that was completed while the call became a task, and does not fit, fails the task: another process would repeat it.
#[tokio::test(start_paused = true)]
async fn a_step_that_cannot_be_kept_fails_the_task() {
    let store = Arc::new(MemoryTaskStore::new(TaskLimits::default().max_journal_bytes(1000)));
    let late = DyingStore::new(&store);
    late.delay_insertions(2);
    let server = process(&late, large_step());
    let mut client = TestClient::modern(&server);
    let task = client.start("big").await;
    let state = client.until(&task, "failed").await;
    assert!(state["error"]["message"].as_str().unwrap().contains("`large`"), "{state}");
}

/// If it is not known whether such a step was stored, it is looked up.
#[tokio::test(start_paused = true)]
async fn a_step_of_unknown_fate_is_looked_up() {
    let late = DyingStore::new(&Arc::new(MemoryTaskStore::default()));
    late.delay_insertions(2);
    late.lose_replacement();
    let server = process(&late, large_step());
    let mut client = TestClient::modern(&server);
    let task = client.start("big").await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "done");
}

/// A shutdown does not wait for a store that stays away longer than for the lease.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_the_store() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let options = || TaskOptions::required().not_restartable();
    let first = DyingStore::new(&store);
    let server = process(&first, tools::endless(&counts).task(options()));
    TestClient::modern(&server).start("endless").await;
    sleep(Duration::from_secs(1)).await;
    first.die();
    // The second one wants to store that the task cannot be run again.
    let second = DyingStore::new(&store);
    second.die_at_the_end();
    let tasks = Tasks::with_settings(second.clone(), settings());
    let _server = build(tasks.clone(), |builder| builder.tool(tools::endless(&counts).task(options())));
    sleep(LEASE + Duration::from_secs(11)).await;
    let shutdown = tasks.shutdown(Duration::from_secs(1));
    tokio::time::timeout(2 * LEASE, shutdown).await.expect("it ends");
    assert_eq!(counts.of("started"), 1);
}

/// After a shutdown calls stay calls.
#[tokio::test(start_paused = true)]
async fn no_call_becomes_a_task_after_a_shutdown() {
    let counts = Counts::default();
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), settings());
    let server = build(tasks.clone(), |builder| builder.tool(slow(&counts, "slow", 8)));
    tasks.shutdown(Duration::ZERO).await;
    let mut client = TestClient::modern(&server);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "slow" })).await), "done");
}

/// A call that is too large for a task stays a call.
#[tokio::test(start_paused = true)]
async fn a_large_call_never_becomes_a_task() {
    let counts = Counts::default();
    let store = MemoryTaskStore::new(TaskLimits::default().max_call_bytes(10));
    let server = build(Tasks::with_settings(store, settings()), |builder| builder.tool(slow(&counts, "slow", 60)));
    let mut client = TestClient::modern(&server);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "slow" })).await), "done");
}

/// A record that this version cannot read is left out, and keeps no client from others.
#[tokio::test(start_paused = true)]
async fn unreadable_records_are_left_out() {
    let store = Arc::new(MemoryTaskStore::default());
    let server = process(&DyingStore::new(&store), tools::slow(TaskSupport::Allowed));
    let mut client = TestClient::core(&server).user("alice");
    let (newer, task) = (client.start_core("slow").await, client.start_core("slow").await);
    let read = store.load(now(), newer.parse().unwrap()).await.unwrap().unwrap().version;
    let content = bytes::Bytes::from_static(b"of another version");
    let write = TaskWrite { read, content, is_finished: false, queue: QueueAction::Keep, ticket: None };
    store.replace(now(), newer.parse().unwrap(), write).await.unwrap();
    let listed = client.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["tasks"][0]["taskId"], json!(task));
    let notified = client.wait_for(|message| message["params"]["status"] == "completed").await;
    assert_eq!(notified["params"]["taskId"], json!(task));
}
