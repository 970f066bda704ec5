//! The settings of a runtime of tasks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The settings of [`Tasks`](crate::Tasks).
#[derive(Clone)]
#[non_exhaustive]
#[must_use = "pass them to `Tasks::with_settings`"]
pub struct TaskSettings {
    /// How long a task is reserved for the process that runs it. When a process ends without notice, others take its tasks over
    /// after this time. Defaults to 30 seconds.
    pub lease: Duration,
    /// The maximum number of tasks that this process runs at a time. Others wait in the queue of the store. Defaults to 100.
    pub max_running: usize,
    /// How long a task and its result are kept, from its creation, unless the tool or the client says it. Defaults to 1 hour.
    pub ttl: Duration,
    /// The maximum time that a client can request. Defaults to 24 hours.
    pub max_ttl: Duration,
    /// How often clients should poll, unless the tool says it. Defaults to 1 second.
    pub poll_interval: Duration,
    /// The maximum number of tasks in a page of `tasks/list`. Defaults to 100.
    pub page_size: usize,
    clock: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            max_running: 100,
            ttl: Duration::from_secs(60 * 60),
            max_ttl: Duration::from_secs(24 * 60 * 60),
            poll_interval: Duration::from_secs(1),
            page_size: 100,
            clock: None,
        }
    }
}

impl TaskSettings {
    /// Sets how long a task is reserved for the process that runs it. All processes that share a store should use the same
    /// time.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the maximum number of tasks that this process runs at a time, at least one.
    pub fn max_running(self, max_running: usize) -> Self {
        Self { max_running: max_running.max(1), ..self }
    }

    /// Sets how long a task and its result are kept.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// Sets the maximum time that a client can request.
    pub fn max_ttl(self, max_ttl: Duration) -> Self {
        Self { max_ttl, ..self }
    }

    /// Sets how often clients should poll.
    pub fn poll_interval(self, poll_interval: Duration) -> Self {
        Self { poll_interval, ..self }
    }

    /// Sets the maximum number of tasks in a page of `tasks/list`, at least one.
    pub fn page_size(self, page_size: usize) -> Self {
        Self { page_size: page_size.max(1), ..self }
    }

    /// Sets the clock, as the time since the Unix epoch. Defaults to the clock of the operating system.
    pub fn unix_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// The milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        let now = self.clock.as_ref().map_or_else(system_time, |clock| clock());
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long a task is kept: what the client requested, within limits, or else what the tool says.
    pub(crate) fn time_to_live(&self, requested: Option<i64>, of_tool: Option<Duration>) -> Duration {
        match requested {
            Some(requested) => Duration::from_millis(u64::try_from(requested).unwrap_or_default())
                .clamp(MIN_TTL, self.max_ttl.max(MIN_TTL)),
            None => of_tool.unwrap_or(self.ttl),
        }
    }
}

/// The minimum time that a client can request: it has to fetch the result.
const MIN_TTL: Duration = Duration::from_secs(1);

fn system_time() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "tasks expire by the clock that all instances share")]
    let now = SystemTime::now();
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

impl fmt::Debug for TaskSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSettings")
            .field("lease", &self.lease)
            .field("max_running", &self.max_running)
            .field("ttl", &self.ttl)
            .field("max_ttl", &self.max_ttl)
            .field("poll_interval", &self.poll_interval)
            .field("page_size", &self.page_size)
            .finish_non_exhaustive()
    }
}
