//! What the observer of a server learns about its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mcp_kernel::observe::{MetricSource, SourceMetric};
use mcp_types::TaskStatus;

use tokio::time::{sleep, timeout};

use crate::TaskStoreError;
use crate::runtime::{Shared, listeners};

/// Counts what this process does with tasks. The store is not asked when they are read, as it may be far away.
pub(crate) struct TaskMetrics {
    /// The number of runs, of which some wait for input.
    running: AtomicU64,
    waiting: AtomicU64,
    created: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    full: AtomicU64,
    too_large: AtomicU64,
    store_failed: AtomicU64,
    input_rounds: AtomicU64,
    taken_over: AtomicU64,
    /// The length of the queue, when it was last looked at.
    queued: AtomicU64,
    is_ended: AtomicBool,
}

/// Stands for a length of the queue that is not known.
const UNKNOWN: u64 = u64::MAX;

/// How often the length of the queue is looked at, and how long that may take.
const QUEUE_INTERVAL: Duration = Duration::from_secs(10);

impl Default for TaskMetrics {
    fn default() -> Self {
        Self {
            running: AtomicU64::default(),
            waiting: AtomicU64::default(),
            created: AtomicU64::default(),
            completed: AtomicU64::default(),
            failed: AtomicU64::default(),
            cancelled: AtomicU64::default(),
            full: AtomicU64::default(),
            too_large: AtomicU64::default(),
            store_failed: AtomicU64::default(),
            input_rounds: AtomicU64::default(),
            taken_over: AtomicU64::default(),
            queued: AtomicU64::new(UNKNOWN),
            is_ended: AtomicBool::default(),
        }
    }
}

/// Looks at the length of the queue from time to time.
pub(crate) async fn watch_queue(shared: Arc<Shared>) {
    let watch = async {
        loop {
            let usage = timeout(QUEUE_INTERVAL, shared.store.usage(shared.now())).await;
            let queued = usage.ok().and_then(Result::ok).map(|usage| usage.queued);
            let queued = queued.and_then(|queued| u64::try_from(queued).ok()).unwrap_or(UNKNOWN);
            shared.metrics.queued.store(queued, Ordering::Relaxed);
            sleep(QUEUE_INTERVAL).await;
        }
    };
    tokio::select! {
        () = watch => {}
        () = listeners::released(&shared) => {}
    }
}

impl TaskMetrics {
    pub(crate) fn task_created(&self) {
        add(&self.created);
    }

    /// Counts a task that could not be stored.
    pub(crate) fn task_refused(&self, error: &TaskStoreError) {
        add(match error {
            TaskStoreError::Full { .. } => &self.full,
            TaskStoreError::TooLarge { .. } => &self.too_large,
            TaskStoreError::Invalid(_) | TaskStoreError::Failed(_) => &self.store_failed,
        });
    }

    /// Counts a task whose end this process has written.
    pub(crate) fn task_finished(&self, status: TaskStatus) {
        match status {
            TaskStatus::Completed => add(&self.completed),
            TaskStatus::Failed => add(&self.failed),
            TaskStatus::Cancelled => add(&self.cancelled),
            TaskStatus::Working | TaskStatus::InputRequired => {}
        }
    }

    /// Counts a task that waits for input without a process.
    pub(crate) fn task_parked(&self) {
        add(&self.input_rounds);
    }

    pub(crate) fn task_taken_over(&self) {
        add(&self.taken_over);
    }

    /// Counts a run until the guard is dropped.
    pub(crate) fn run(self: &Arc<Self>) -> ActiveGuard {
        ActiveGuard::new(self, |metrics| &metrics.running)
    }

    /// Counts a run whose handler waits for input in memory, until the guard is dropped.
    pub(crate) fn wait_for_input(self: &Arc<Self>) -> ActiveGuard {
        add(&self.input_rounds);
        ActiveGuard::new(self, |metrics| &metrics.waiting)
    }

    /// Ends the source: nothing is counted from now on.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl MetricSource for TaskMetrics {
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
        let waiting = value(&self.waiting);
        report(SourceMetric::WorkingTasks, value(&self.running).saturating_sub(waiting));
        report(SourceMetric::WaitingTasks, waiting);
        report(SourceMetric::TasksCreated, value(&self.created));
        for (status, counter) in
            [("completed", &self.completed), ("failed", &self.failed), ("cancelled", &self.cancelled)]
        {
            report(SourceMetric::TasksFinished(status), value(counter));
        }
        for (reason, counter) in
            [("full", &self.full), ("too_large", &self.too_large), ("store_failed", &self.store_failed)]
        {
            report(SourceMetric::TasksRefused(reason), value(counter));
        }
        let queued = value(&self.queued);
        if queued != UNKNOWN && !self.is_ended() {
            report(SourceMetric::QueuedTasks, queued);
        }
        report(SourceMetric::TaskInputRounds, value(&self.input_rounds));
        report(SourceMetric::TasksTakenOver, value(&self.taken_over));
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

/// Adds one to a number until it is dropped.
pub(crate) struct ActiveGuard {
    metrics: Arc<TaskMetrics>,
    number: fn(&TaskMetrics) -> &AtomicU64,
}

impl ActiveGuard {
    fn new(metrics: &Arc<TaskMetrics>, number: fn(&TaskMetrics) -> &AtomicU64) -> Self {
        add(number(metrics));
        Self { metrics: Arc::clone(metrics), number }
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        (self.number)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}
