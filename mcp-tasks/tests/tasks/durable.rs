//! Tasks whose process dies, in each phase of their lives.

use std::sync::Arc;
use std::time::Duration;

use mcp_server::{AskError, HandlerError, NoArguments, RequestContext, Server, Tool, tool};
use mcp_tasks::{MemoryTaskStore, TaskOptions, TaskSupport, Tasks};
use mcp_testkit::Gate;
use serde_json::json;
use tokio::time::sleep;

use crate::dying_store::DyingStore;
use crate::kit::{Counts, TestClient, accept, build, settings, text};
use crate::tools::{self, Name};

/// Where the handler of a process waits for a gate that nobody opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    InFirstStep,
    AfterFirstStep,
    AfterAnswer,
    AfterSecondStep,
    Never,
}

/// Two steps with a question in between. The process hangs in one phase.
fn order(counts: &Counts, hangs: Phase, options: TaskOptions) -> Tool {
    let counts = counts.clone();
    tool("order", move |ctx: RequestContext, _: NoArguments| {
        let counts = counts.clone();
        async move {
            let hang = async |phase: Phase| {
                if phase == hangs {
                    counts.add("hangs");
                    Gate::default().wait().await;
                }
            };
            counts.add("runs");
            hang(Phase::Begin).await;
            let paid: usize = ctx
                .once("pay", async || {
                    let count = counts.add("pay");
                    hang(Phase::InFirstStep).await;
                    Ok::<_, AskError>(count)
                })
                .await?;
            hang(Phase::AfterFirstStep).await;
            let Name { name } = ctx.elicit("name", "Your name?").await?.accepted()?;
            hang(Phase::AfterAnswer).await;
            let sent: usize = ctx.once("send", async || Ok::<_, AskError>(counts.add("send"))).await?;
            hang(Phase::AfterSecondStep).await;
            Ok::<_, HandlerError>(format!("{name}: {paid} {sent}"))
        }
    })
    .task(options)
}

/// A process: its server, and what kills it.
struct Process {
    server: Server,
    store: DyingStore,
}

fn process(store: &Arc<MemoryTaskStore>, tool: Tool) -> Process {
    let store = DyingStore::new(store);
    let server = build(Tasks::with_settings(store.clone(), settings()), |builder| builder.tool(tool));
    Process { server, store }
}

async fn wait_for(counts: &Counts, name: &str, count: usize) {
    for _ in 0..100_000 {
        if counts.of(name) >= count {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{name} does not happen {count} times");
}

/// Another process finishes the task: no completed step is repeated, and no answered question is asked again.
// covers: S4.21, S4.88, MIS-1
#[tokio::test(start_paused = true)]
async fn another_process_takes_over() {
    use Phase::{AfterAnswer, AfterFirstStep, AfterSecondStep, Begin, InFirstStep};
    for (phase, paid) in [(Begin, 1), (InFirstStep, 2), (AfterFirstStep, 1), (AfterAnswer, 1), (AfterSecondStep, 1)] {
        let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
        let first = process(&store, order(&counts, phase, TaskOptions::required()));
        let mut client = TestClient::modern(&first.server);
        let task = client.start("order").await;
        if matches!(phase, AfterAnswer | AfterSecondStep) {
            client.until(&task, "input_required").await;
            client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
        }
        wait_for(&counts, "hangs", 1).await;
        first.store.die();
        let second = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
        let mut client = TestClient::modern(&second.server);
        assert_eq!(client.get(&task).await["status"], "working");
        if !matches!(phase, AfterAnswer | AfterSecondStep) {
            client.until(&task, "input_required").await;
            client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
        }
        let state = client.until(&task, "completed").await;
        // A step whose result was not stored has to run again; its second result is the one that counts.
        assert_eq!(text(&state["result"]), format!("Ann: {paid} 1"));
        assert_eq!((counts.of("pay"), counts.of("send")), (paid, 1));
    }
}

/// A process that dies while its task waits for input holds nothing: the response can reach any process.
// covers: TK-12
#[tokio::test(start_paused = true)]
async fn waiting_tasks_belong_to_no_process() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&first.server);
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    first.store.die();
    let second = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&second.server);
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "Ann: 1 1");
    assert_eq!((counts.of("runs"), counts.of("pay")), (2, 1));
}

/// A process that dies before it has stored the outcome: the handler runs again, with all its steps.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_not_stored_is_made_again() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&first.server);
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    first.store.die_at_the_end();
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    wait_for(&counts, "send", 1).await;
    let second = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&second.server);
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "Ann: 1 1");
    assert_eq!((counts.of("pay"), counts.of("send")), (1, 1));
}

/// A task that is not restartable waits in memory, and fails clearly when its process dies.
#[tokio::test(start_paused = true)]
async fn tasks_that_are_not_restartable_fail() {
    let options = || TaskOptions::required().not_restartable();
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::AfterSecondStep, options()));
    let mut client = TestClient::modern(&first.server);
    let task = client.start("order").await;
    let state = client.until(&task, "input_required").await;
    assert_eq!(state["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["name"]);
    // Longer than a lease, which is renewed meanwhile.
    sleep(Duration::from_secs(300)).await;
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    wait_for(&counts, "hangs", 1).await;
    assert_eq!((counts.of("runs"), counts.of("pay"), counts.of("send")), (1, 1, 1));
    first.store.die();
    let second = process(&store, order(&counts, Phase::Never, options()));
    let state = TestClient::modern(&second.server).until(&task, "failed").await;
    let message = state["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the process that ran the task has ended, and its tool cannot be run again");
    assert_eq!(counts.of("runs"), 1);
}

/// A task that is not restartable and whose process lives ends as any other.
#[tokio::test(start_paused = true)]
async fn a_handler_can_wait_in_memory() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let process = process(&store, order(&counts, Phase::Never, TaskOptions::required().not_restartable()));
    let mut client = TestClient::modern(&process.server);
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "Ann: 1 1");
    assert_eq!(counts.of("runs"), 1);
}

/// What another version of the handler has stored is never a wrong result.
#[tokio::test(start_paused = true)]
async fn a_journal_of_another_version_names_its_step() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::AfterFirstStep, TaskOptions::required()));
    let task = TestClient::modern(&first.server).start("order").await;
    wait_for(&counts, "hangs", 1).await;
    first.store.die();
    let newer = tool("order", async |ctx: RequestContext, _: NoArguments| {
        // An error that is ignored does not make the result right.
        let paid: Result<Vec<String>, AskError> = ctx.once("pay", async || Ok(Vec::new())).await;
        paid.unwrap_or_default().concat()
    });
    let second = process(&store, newer.task(TaskSupport::Required));
    let state = TestClient::modern(&second.server).until(&task, "failed").await;
    let message = state["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the step `pay` of the task was stored by another version of the server");
}

/// A question that another version asks differently is asked again, under another key.
// covers: TK-21
#[tokio::test(start_paused = true)]
async fn a_changed_question_is_asked_again() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::AfterAnswer, TaskOptions::required()));
    let mut client = TestClient::modern(&first.server);
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    wait_for(&counts, "hangs", 1).await;
    first.store.die();
    let newer = tool("order", async |ctx: RequestContext, _: NoArguments| {
        let Name { name } = ctx.elicit("name", "The name on your card?").await?.accepted()?;
        Ok::<_, HandlerError>(name)
    });
    let second = process(&store, newer.task(TaskSupport::Required));
    let mut client = TestClient::modern(&second.server);
    let state = client.until(&task, "input_required").await;
    assert_eq!(state["inputRequests"]["name#2"]["params"]["message"], "The name on your card?");
    client.update(&task, json!({ "name#2": accept(json!({ "name": "A. Smith" })) })).await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "A. Smith");
}

/// During a roll-out, an instance of the old version leaves tasks of new tools to others, also those that may run only once.
#[tokio::test(start_paused = true)]
async fn tasks_of_new_tools_are_left_to_others() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let options = || TaskOptions::required().not_restartable();
    let tasks = Tasks::with_settings(DyingStore::new(&store), settings());
    let ending = build(tasks.clone(), |builder| builder.tool(order(&counts, Phase::Never, options())));
    tasks.shutdown(Duration::ZERO).await;
    let task = TestClient::modern(&ending).start("order").await;
    let old = process(&store, tools::hello(TaskSupport::Allowed));
    let mut client = TestClient::modern(&old.server);
    sleep(Duration::from_secs(300)).await;
    assert_eq!(client.get(&task).await["status"], "working", "the old version does not fail it");
    let hello = client.start("hello").await;
    client.until(&hello, "completed").await;
    let new = process(&store, order(&counts, Phase::Never, options()));
    let mut client = TestClient::modern(&new.server);
    client.until(&task, "input_required").await;
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "Ann: 1 1");
    assert_eq!(counts.of("runs"), 1);
}

/// A tool that no process has any more is an error of the task, when its time is nearly over.
#[tokio::test(start_paused = true)]
async fn a_tool_can_be_gone() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let first = process(&store, order(&counts, Phase::Begin, TaskOptions::required()));
    let task = TestClient::modern(&first.server).start("order").await;
    wait_for(&counts, "hangs", 1).await;
    first.store.die();
    let second = process(&store, tools::hello(TaskSupport::Allowed));
    let state = TestClient::modern(&second.server).until(&task, "failed").await;
    assert!(state["error"]["message"].as_str().unwrap().contains("does not have the tool `order`"), "{state}");
}

/// Cancelling at one process reaches the handler at another one.
// covers: TK-26
#[tokio::test(start_paused = true)]
async fn cancelling_reaches_other_processes() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let runs = process(&store, tools::endless(&counts));
    let task = TestClient::modern(&runs.server).start("endless").await;
    wait_for(&counts, "started", 1).await;
    let other = process(&store, tools::hello(TaskSupport::Allowed));
    TestClient::modern(&other.server).result("tasks/cancel", json!({ "taskId": task })).await;
    wait_for(&counts, "dropped", 1).await;
    wait_for(&counts, "seen", 1).await;
}

/// A process that has lost its lease stops, so that two processes do not run a task for long.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_ends_the_run() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let process = process(&store, tools::endless(&counts));
    TestClient::modern(&process.server).start("endless").await;
    wait_for(&counts, "started", 1).await;
    process.store.die();
    sleep(Duration::from_secs(31)).await;
    assert_eq!((counts.of("dropped"), counts.of("seen")), (1, 1));
}

/// A shutdown hands running tasks back, and another process runs them at once.
#[tokio::test(start_paused = true)]
async fn a_shutdown_hands_tasks_back() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let shared = DyingStore::new(&store);
    let tasks = Tasks::with_settings(shared.clone(), settings());
    let server = build(tasks.clone(), |builder| {
        builder
            .tools([order(&counts, Phase::AfterFirstStep, TaskOptions::required()), tools::slow(TaskSupport::Allowed)])
    });
    let mut client = TestClient::modern(&server);
    let slow = client.start("slow").await;
    let task = client.start("order").await;
    wait_for(&counts, "hangs", 1).await;
    tasks.shutdown(Duration::from_secs(20)).await;
    assert_eq!(client.get(&slow).await["status"], "completed", "it had time to finish");
    let queued = client.start("slow").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(client.get(&queued).await["status"], "working", "nothing is claimed any more");
    let second = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&second.server);
    client.until(&task, "input_required").await;
    assert_eq!((counts.of("pay"), counts.of("runs")), (1, 2));
}

/// Nothing is left of a server that was dropped.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_dropped_ends() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let process = process(&store, order(&counts, Phase::Never, TaskOptions::required()));
    let mut client = TestClient::modern(&process.server);
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    drop((client, process));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(Arc::strong_count(&store), 1);
}
