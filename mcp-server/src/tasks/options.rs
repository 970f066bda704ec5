//! Whether and how the calls of a tool become tasks.

use std::time::Duration;

use mcp_types::ToolExecution;

use crate::handlers::tool::Tool;

/// Whether calls of a tool run as tasks, whose result the client fetches later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum TaskSupport {
    /// Calls are never tasks. The default.
    #[default]
    Never,
    /// Calls of clients that can follow tasks are tasks. In 2025-11-25 the client decides for each call.
    Allowed,
    /// Calls are tasks, and clients that cannot follow tasks get an error.
    Required,
}

/// The options of [`Tool::task`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_server::tasks::TaskOptions;
/// use mcp_server::{NoArguments, tool};
///
/// // Most reports are ready at once; the others become tasks.
/// let options = TaskOptions::allowed().after(Duration::from_secs(5));
/// let report = tool("report", async |_, _: NoArguments| "profit").task(options);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "pass it to `Tool::task`"]
pub struct TaskOptions {
    support: TaskSupport,
    after: Option<Duration>,
    is_restartable: bool,
    ttl: Option<Duration>,
    poll_interval: Option<Duration>,
}

impl From<TaskSupport> for TaskOptions {
    fn from(support: TaskSupport) -> Self {
        Self { support, after: None, is_restartable: true, ttl: None, poll_interval: None }
    }
}

impl TaskOptions {
    /// Creates the options of a tool whose calls may be tasks.
    pub fn allowed() -> Self {
        TaskSupport::Allowed.into()
    }

    /// Creates the options of a tool whose calls are always tasks.
    pub fn required() -> Self {
        TaskSupport::Required.into()
    }

    /// Lets a call become a task only if it is not done after this time. Defaults to tasks from the beginning.
    ///
    /// It applies to modern clients that can follow tasks. Server-to-client requests before that end the call with input
    /// requests, as those of any other tool.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = Some(delay);
        self
    }

    /// Lets a task fail whose process ended, instead of running its handler again in another one. While the handler waits for
    /// input, it stays in memory.
    pub fn not_restartable(mut self) -> Self {
        self.is_restartable = false;
        self
    }

    /// Sets how long a task and its result are kept, from its creation. Defaults to that of the runtime. A client of 2025-11-25 may
    /// request another time.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets how often clients should poll a task. Defaults to that of the runtime.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = Some(interval);
        self
    }

    /// Returns whether calls may or must be tasks.
    #[must_use]
    pub fn support(&self) -> TaskSupport {
        self.support
    }

    /// Returns the time after which a call becomes a task, if that is not at once.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.after
    }

    /// Returns whether another process may run the handler again.
    #[must_use]
    pub fn is_restartable(&self) -> bool {
        self.is_restartable
    }

    /// Returns how long a task is kept, if the tool says it.
    #[must_use]
    pub fn kept_for(&self) -> Option<Duration> {
        self.ttl
    }

    /// Returns how often clients should poll, if the tool says it.
    #[must_use]
    pub fn polled_every(&self) -> Option<Duration> {
        self.poll_interval
    }
}

impl Tool {
    /// Sets whether and how calls of the tool run as tasks. The server needs a runtime for them
    /// ([`ServerBuilder::tasks`](crate::ServerBuilder::tasks)). Defaults to never.
    ///
    /// The handler is the same as for other calls. In a task, [`elicit`](crate::RequestContext::elicit),
    /// [`sample`](crate::RequestContext::sample) and [`list_roots`](crate::RequestContext::list_roots) let it wait for input,
    /// [`progress`](crate::RequestContext::progress) is its status message, and the results of
    /// [`once`](crate::RequestContext::once) are kept: if its process ends, another one runs the handler again from its
    /// beginning. Middleware of the server does not see these runs; [`layer`](Self::layer)s of the tool do.
    // B-81
    pub fn task(mut self, options: impl Into<TaskOptions>) -> Self {
        let options = options.into();
        let support = match options.support {
            TaskSupport::Never => None,
            TaskSupport::Allowed => Some(mcp_types::TaskSupport::OPTIONAL),
            TaskSupport::Required => Some(mcp_types::TaskSupport::REQUIRED),
        };
        self.definition.execution = support.map(|support| ToolExecution::default().task_support(support));
        self.task = Some(Box::new(options));
        self
    }
}
