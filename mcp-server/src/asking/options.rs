//! How a question to the client is put.

use std::time::Duration;

use mcp_kernel::CallOptions;
use mcp_types::ProgressNotificationParams;

/// What is called with the progress of a question.
pub(crate) type ProgressHandler = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// How long a question may take, and who hears of its progress.
#[derive(Default)]
pub struct AskOptions {
    pub(crate) time: CallOptions,
    pub(crate) watcher: Option<ProgressHandler>,
}

impl AskOptions {
    /// How long the client may be silent, 60 s unless told; progress starts it anew.
    #[must_use]
    pub fn idle_timeout(mut self, idle: Option<Duration>) -> Self {
        self.time.idle = idle;
        self
    }

    /// How long the question may take whatever progress there is, 10 min unless told.
    #[must_use]
    pub fn total_timeout(mut self, limit: Option<Duration>) -> Self {
        self.time.limit = limit;
        self
    }

    /// Calls `watcher` with what the client reports while it works on the question.
    #[must_use]
    pub fn on_progress(mut self, watcher: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }
}

impl std::fmt::Debug for AskOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskOptions").field("time", &self.time).field("watched", &self.watcher.is_some()).finish()
    }
}
