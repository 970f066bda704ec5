//! What operators see of tasks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_kernel::observe::{MetricSource, Observation, Observer, SourceMetric};
use mcp_server::{HandlerError, NoArguments, RequestContext, Server, Tool, tool};
use mcp_tasks::{MemoryTaskStore, TaskLimits, TaskOptions, TaskStore, TaskSupport, Tasks};
use mcp_testkit::{Recorder, TraceFields, TraceRecorder};
use serde_json::json;
use tokio::time::sleep;

use crate::dying_store::DyingStore;
use crate::kit::{Counts, TestClient, accept, build, settings};
use crate::tools::{self, Name};

fn watched(store: impl TaskStore, tools: impl IntoIterator<Item = Tool>) -> (Recorder, Server) {
    let recorder = Recorder::default();
    let tasks = Tasks::with_settings(store, settings());
    let server = build(tasks, |builder| builder.tools(tools).observer(recorder.observer()));
    (recorder, server)
}

/// The numbers of tasks that work and that wait for input in memory.
fn active(recorder: &Recorder) -> (u64, u64) {
    (recorder.metric(SourceMetric::WorkingTasks), recorder.metric(SourceMetric::WaitingTasks))
}

/// The numbers of tasks that completed, failed and were cancelled.
fn finished(recorder: &Recorder) -> [u64; 3] {
    ["completed", "failed", "cancelled"].map(|status| recorder.metric(SourceMetric::TasksFinished(status)))
}

/// Tasks are counted by their status.
#[tokio::test(start_paused = true)]
async fn tasks_are_counted() {
    let counts = Counts::default();
    let tools = [tools::slow(TaskSupport::Required), tools::faulty(), tools::broken(), tools::endless(&counts)];
    let (recorder, server) = watched(MemoryTaskStore::default(), tools);
    let mut client = TestClient::modern(&server);
    let slow = client.start("slow").await;
    let endless = client.start("endless").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!((active(&recorder), finished(&recorder)), ((2, 0), [0, 0, 0]));
    let (faulty, broken) = (client.start("faulty").await, client.start("broken").await);
    client.until(&faulty, "failed").await;
    client.until(&broken, "completed").await;
    client.until(&slow, "completed").await;
    for _ in 0..2 {
        // The second time changes nothing.
        client.result("tasks/cancel", json!({ "taskId": endless })).await;
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!((active(&recorder), finished(&recorder)), ((0, 0), [2, 1, 1]));
    assert_eq!(recorder.metric(SourceMetric::TasksCreated), 4);
    assert_eq!(recorder.metric(SourceMetric::TasksTakenOver), 0);
}

/// The length of the queue is looked at from time to time, and left out while the store does not respond.
#[tokio::test(start_paused = true)]
async fn the_queue_is_measured() {
    let counts = Counts::default();
    let (recorder, store) = (Recorder::default(), DyingStore::new(&Arc::new(MemoryTaskStore::default())));
    let tasks = Tasks::with_settings(store.clone(), settings().max_running(1));
    let server = build(tasks, |builder| builder.tool(tools::endless(&counts)).observer(recorder.observer()));
    let mut client = TestClient::modern(&server);
    let ids = [client.start("endless").await, client.start("endless").await, client.start("endless").await];
    sleep(Duration::from_secs(11)).await;
    assert_eq!((active(&recorder), recorder.metric(SourceMetric::QueuedTasks)), ((1, 0), 2));
    for id in ids {
        client.result("tasks/cancel", json!({ "taskId": id })).await;
    }
    sleep(Duration::from_secs(11)).await;
    assert_eq!(recorder.metric(SourceMetric::QueuedTasks), 0);
    client.start("endless").await;
    client.start("endless").await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(recorder.metric(SourceMetric::QueuedTasks), 1);
    store.die();
    sleep(Duration::from_secs(21)).await;
    assert_eq!(recorder.metric(SourceMetric::QueuedTasks), 0, "it is not known");
}

/// A task that waits for input belongs to no process, unless its handler cannot be run again.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_for_input_are_counted() {
    async fn ask(ctx: RequestContext, _: NoArguments) -> Result<String, HandlerError> {
        let (name, other) =
            futures_util::future::join(async { ctx.elicit::<Name>("name", "Your name?").await }, async {
                ctx.elicit::<Name>("other", "And yours?").await
            })
            .await;
        Ok(name?.accepted()?.name + &other?.accepted()?.name)
    }
    for (options, waiting) in [(TaskOptions::required(), 0), (TaskOptions::required().not_restartable(), 1)] {
        let (recorder, server) = watched(MemoryTaskStore::default(), [tool("ask", ask).task(options)]);
        let mut client = TestClient::modern(&server);
        let task = client.start("ask").await;
        client.until(&task, "input_required").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!((active(&recorder), recorder.metric(SourceMetric::TaskInputRounds)), ((0, waiting), 1));
        let answer = accept(json!({ "name": "Ann" }));
        client.update(&task, json!({ "name": answer, "other": answer })).await;
        client.until(&task, "completed").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!((active(&recorder), finished(&recorder)), ((0, 0), [1, 0, 0]));
        assert_eq!(recorder.metric(SourceMetric::TasksTakenOver), 0, "an earlier run has ended in order");
    }
}

/// Calls that cannot become tasks are counted by the reason.
#[tokio::test(start_paused = true)]
async fn refused_tasks_are_counted() {
    let counts = Counts::default();
    let limits = TaskLimits::default().max_unfinished(1).max_call_bytes(2000);
    let (recorder, server) = watched(MemoryTaskStore::new(limits), [tools::endless(&counts)]);
    let mut client = TestClient::modern(&server);
    let huge = json!({ "name": "endless", "_meta": { "com.example/note": "x".repeat(3000) } });
    client.error("tools/call", huge, -32602).await;
    client.start("endless").await;
    for _ in 0..3 {
        client.error("tools/call", json!({ "name": "endless" }), -32603).await;
    }
    let refused = |reason| recorder.metric(SourceMetric::TasksRefused(reason));
    assert_eq!((refused("full"), refused("too_large"), refused("store_failed")), (3, 1, 0));
    assert_eq!(recorder.metric(SourceMetric::TasksCreated), 1);
}

/// The process that runs a task instead of a dead one counts it.
#[tokio::test(start_paused = true)]
async fn tasks_that_were_taken_over_are_counted() {
    let (counts, store) = (Counts::default(), Arc::new(MemoryTaskStore::default()));
    let dying = DyingStore::new(&store);
    let (first, server) = watched(dying.clone(), [tools::endless(&counts)]);
    let task = TestClient::modern(&server).start("endless").await;
    sleep(Duration::from_secs(1)).await;
    dying.die();
    let hello = tool("endless", async |_, _: NoArguments| "hello").task(TaskSupport::Allowed);
    let (second, server) = watched(DyingStore::new(&store), [hello]);
    TestClient::modern(&server).until(&task, "completed").await;
    assert_eq!([&first, &second].map(|process| process.metric(SourceMetric::TasksTakenOver)), [0, 1]);
    assert_eq!([&first, &second].map(|process| process.metric(SourceMetric::TasksCreated)), [1, 0]);
    assert_eq!([finished(&first), finished(&second)], [[0, 0, 0], [1, 0, 0]]);
    assert_eq!(active(&first), (0, 0), "the lease was lost");
}

/// The observer forgets the tasks of a server that has ended.
#[tokio::test(start_paused = true)]
async fn the_metrics_end_with_the_server() {
    #[derive(Default)]
    struct Sources(Mutex<Vec<Arc<dyn MetricSource>>>);
    impl Observer for Sources {
        fn observe(&self, _: &Observation<'_>) {}

        fn watch(&self, source: Arc<dyn MetricSource>) {
            self.0.lock().expect("no panic").push(source);
        }
    }
    let sources = Arc::new(Sources::default());
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), settings());
    let server = build(tasks, |builder| builder.observer(Arc::clone(&sources) as _));
    let source = sources.0.lock().expect("no panic").pop().expect("a source");
    sleep(Duration::from_secs(1)).await;
    assert!(!source.is_ended());
    drop(server);
    sleep(Duration::from_secs(10)).await;
    assert!(source.is_ended());
}

/// Each run of a task has a span of its own, with the trace context of the call.
// covers: S4.102
#[tokio::test(start_paused = true)]
async fn runs_have_spans() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let recorder = TraceRecorder::start();
    let server = crate::kit::server([tools::order(&Counts::default()), tools::faulty()]);
    let mut client = TestClient::modern(&server);
    let mut tasks = Vec::new();
    for tool in ["order", "faulty"] {
        let created = client.result("tools/call", json!({ "name": tool, "_meta": { "traceparent": trace } })).await;
        tasks.push(created["taskId"].as_str().unwrap().to_owned());
    }
    client.until(&tasks[0], "input_required").await;
    client.update(&tasks[0], json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    client.until(&tasks[0], "completed").await;
    client.until(&tasks[1], "failed").await;
    let spans = recorder.finish().spans;
    // A run belongs to no request, and the id of a task gives access to it.
    let has_id = |span: &TraceFields| span.values().any(|value| tasks.iter().any(|task| value.contains(task)));
    assert!(!spans.iter().any(has_id), "{spans:#?}");
    let runs = ["order", "faulty"].map(|tool| -> Vec<_> {
        let is_run =
            |span: &&TraceFields| span["otel.name"].ends_with(tool) && !span.contains_key("jsonrpc.request.id");
        spans.iter().filter(is_run).cloned().collect()
    });
    assert_eq!(runs.each_ref().map(Vec::len), [2, 1], "{spans:#?}");
    for (runs, (tool, error)) in runs.into_iter().zip([("order", None), ("faulty", Some("-32602"))]) {
        for mut run in runs {
            assert!(run.remove("mcp.session.id").is_some());
            let mut expected: TraceFields = [
                ("gen_ai.tool.name", tool.to_owned()),
                ("mcp.method.name", "tools/call".to_owned()),
                ("mcp.protocol.version", "2026-07-28".to_owned()),
                ("otel.kind", "server".to_owned()),
                ("otel.name", format!("tools/call {tool}")),
                ("span", "mcp.request".to_owned()),
                ("traceparent", trace.to_owned()),
            ]
            .into();
            for field in ["error.type", "rpc.response.status_code"] {
                expected.extend(error.map(|error| (field, error.to_owned())));
            }
            assert_eq!(run, expected);
        }
    }
}
