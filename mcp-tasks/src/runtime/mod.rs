//! The runtime of the tasks of a server.

pub(crate) mod credentials;
pub(crate) mod delayed;
pub(crate) mod hub;
pub(crate) mod lease;
pub(crate) mod listeners;
pub(crate) mod metrics;
pub(crate) mod new_task;
pub(crate) mod outcome;
pub(crate) mod port;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod worker;
pub(crate) mod write;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_server::tasks::{TaskListener, TaskOptions, TaskRuntime};
use mcp_server::{BoxFuture, RequestContext, ResponseFuture, Server, WeakServer};
use mcp_types::{ErrorObject, RawObject};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::runtime::hub::Hub;
use crate::runtime::listeners::Listeners;
use crate::runtime::metrics::TaskMetrics;
use crate::runtime::settings::TaskSettings;
use crate::{TaskId, TaskOwner, TaskStore};

/// Runs the tasks of a server, with a store that several processes may share.
///
/// Pass it to [`ServerBuilder::tasks`](mcp_server::ServerBuilder::tasks). It needs a tokio runtime: it begins to run tasks when
/// the server is built inside of one, and otherwise with the first request. Clones share everything. The handlers of tasks keep
/// their server: call [`shutdown`](Self::shutdown) to end it. A server without running tasks ends when it is dropped.
///
/// # Examples
///
/// ```
/// use mcp_server::tasks::TaskSupport;
/// use mcp_server::{HandlerError, NoArguments, RequestContext, Server, tool};
/// use mcp_tasks::{MemoryTaskStore, Tasks};
///
/// async fn render(ctx: RequestContext, _: NoArguments) -> Result<String, HandlerError> {
///     // Not repeated if another process has to take over.
///     let frames: u32 = ctx.once("render", async || Ok::<_, HandlerError>(240)).await?;
///     Ok(format!("{frames} frames"))
/// }
///
/// let server = Server::builder("farm", "1.0")
///     .tool(tool("render", render).task(TaskSupport::Required))
///     .tasks(Tasks::new(MemoryTaskStore::default()))
///     .build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Tasks {
    shared: Arc<Shared>,
    /// Stops the workers when the last clone is dropped.
    _stop: Arc<StopOnDrop>,
}

/// What the workers share with the handlers of requests.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) settings: TaskSettings,
    /// The name of this process for operators.
    pub(crate) worker: Arc<str>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) listeners: Listeners,
    server: OnceLock<WeakServer>,
    is_started: AtomicBool,
    pub(crate) stage: watch::Sender<Stage>,
    /// One permit for each task that this process may run at a time.
    pub(crate) slots: Arc<Semaphore>,
    /// The number of runs in this process, and of claims in flight.
    running: watch::Sender<usize>,
    pub(crate) metrics: Arc<TaskMetrics>,
}

impl Drop for Shared {
    /// The observer keeps the metrics.
    fn drop(&mut self) {
        self.metrics.end();
    }
}

/// Counts a run of this process until it is dropped.
pub(crate) struct RunCount(Arc<Shared>);

impl Drop for RunCount {
    fn drop(&mut self) {
        self.0.running.send_modify(|count| *count -= 1);
    }
}

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Tasks are claimed and run.
    Open,
    /// No task is claimed any more.
    Draining,
    /// Tasks that run are handed back.
    Stopped,
}

struct StopOnDrop(watch::Sender<Stage>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(Stage::Stopped);
    }
}

impl Tasks {
    /// Creates a runtime with the default settings.
    #[must_use]
    pub fn new(store: impl TaskStore) -> Self {
        Self::with_settings(store, TaskSettings::default())
    }

    /// Creates a runtime with other settings.
    #[must_use]
    pub fn with_settings(store: impl TaskStore, settings: TaskSettings) -> Self {
        Self::shared(Arc::new(store), settings)
    }

    /// Creates a runtime for a store that others use, too.
    #[must_use]
    pub fn shared(store: Arc<dyn TaskStore>, settings: TaskSettings) -> Self {
        // The name is for operators only, so that it need not be random if there is no randomness.
        let worker =
            TaskId::random().map_or_else(|_| "worker".to_owned(), |id| format!("{id:?}").replace("TaskId", ""));
        let stage = watch::Sender::new(Stage::Open);
        let max_running = settings.max_running.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            store,
            settings,
            worker: worker.into(),
            hub: Arc::default(),
            listeners: Listeners::default(),
            server: OnceLock::new(),
            is_started: AtomicBool::new(false),
            stage: stage.clone(),
            slots: Arc::new(Semaphore::new(max_running)),
            running: watch::Sender::new(0),
            metrics: Arc::default(),
        });
        Self { shared, _stop: Arc::new(StopOnDrop(stage)) }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn TaskStore> {
        &self.shared.store
    }

    /// Shuts down: claims no further tasks, waits until those that run have finished, but not longer than this time, and hands
    /// the others back to the store, so that another process runs them again at once. Tasks that are not restartable fail
    /// there. Clients can still poll their tasks.
    pub async fn shutdown(&self, timeout: Duration) {
        let advance = |to: Stage| {
            self.shared.stage.send_if_modified(|stage| {
                let is_next = *stage < to;
                *stage = (*stage).max(to);
                is_next
            });
        };
        advance(Stage::Draining);
        let mut running = self.shared.running.subscribe();
        let is_idle = |count: &usize| *count == 0;
        let _ = tokio::time::timeout(timeout, running.wait_for(is_idle)).await;
        advance(Stage::Stopped);
        let _ = running.wait_for(is_idle).await;
    }
}

impl Shared {
    pub(crate) fn now(&self) -> u64 {
        self.settings.now()
    }

    /// Returns the server, unless it was dropped.
    pub(crate) fn server(&self) -> Option<Server> {
        self.server.get()?.upgrade()
    }

    /// Starts the workers, if there is a tokio runtime and they are not started yet. Returns whether they are.
    pub(crate) fn start(self: &Arc<Self>) -> bool {
        if self.is_started.load(Ordering::Acquire) {
            return true;
        }
        let Ok(tokio) = Handle::try_current() else { return false };
        if !self.is_started.swap(true, Ordering::AcqRel) {
            // Before anything is claimed, so that no change is missed.
            let changes = self.store.changes();
            tokio.spawn(listeners::distribute(Arc::clone(self), changes));
            tokio.spawn(listeners::publish(Arc::clone(self)));
            tokio.spawn(worker::work(Arc::clone(self)));
            if self.server().is_some_and(|server| server.observer().is_some()) {
                tokio.spawn(metrics::watch_queue(Arc::clone(self)));
            }
        }
        true
    }

    /// Counts a run, so that the shutdown waits for it.
    pub(crate) fn count_run(self: &Arc<Self>) -> RunCount {
        self.running.send_modify(|count| *count += 1);
        RunCount(Arc::clone(self))
    }

    /// Waits for a stage of the shutdown.
    pub(crate) async fn reached(&self, stage: Stage) {
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// The owner of the tasks of a request; `None` for anonymous callers.
    // B-90
    pub(crate) fn owner_of(ctx: &RequestContext) -> Option<TaskOwner> {
        let principal = ctx.principal()?;
        Some(TaskOwner::new(principal, &ctx.server().info().name))
    }
}

impl TaskRuntime for Tasks {
    fn attach(&self, server: WeakServer) {
        if self.shared.server.set(server).is_err() {
            tracing::error!(target: "mcp", "a runtime of tasks belongs to one server: create another one for each");
        }
        if let Some(observer) = self.shared.server().as_ref().and_then(Server::observer) {
            observer.watch(Arc::clone(&self.shared.metrics) as _);
        }
        self.shared.start();
    }

    fn call_tool(&self, ctx: &RequestContext, options: &TaskOptions) -> Option<ResponseFuture> {
        new_task::decide(&self.shared, ctx, options)
    }

    fn serve(&self, ctx: RequestContext, params: RawObject) -> BoxFuture<Result<RawObject, ErrorObject>> {
        self.shared.start();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { crate::wire::serve(&shared, &ctx, &params).await })
    }

    fn select(&self, ctx: RequestContext, task_ids: Vec<String>) -> BoxFuture<Result<Vec<String>, ErrorObject>> {
        self.shared.start();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { crate::wire::extension::select(&shared, &ctx, task_ids).await })
    }

    fn listen(&self, listener: TaskListener, task_ids: Vec<String>) {
        self.shared.listeners.add(&listener, task_ids.iter().filter_map(|id| id.parse().ok()));
    }

    fn stop_listening(&self, listener: &TaskListener, task_ids: Vec<String>) {
        self.shared.listeners.remove(listener, task_ids.iter().filter_map(|id| id.parse().ok()));
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}
