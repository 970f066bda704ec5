//! Options of a server-to-client request.

use std::time::Duration;

use mcp_kernel::CallOptions;
use mcp_types::ProgressNotificationParams;

/// Is called with the progress of a server-to-client request.
pub(crate) type ProgressHandler = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// The timeouts and the progress callback of a server-to-client request, for
/// [`ConnectionHandle::request`](crate::ConnectionHandle::request).
#[derive(Default)]
pub struct AskOptions {
    pub(crate) time: CallOptions,
    pub(crate) watcher: Option<ProgressHandler>,
}

impl AskOptions {
    /// Sets how long the client may take without reporting progress, or `None` for no limit. Defaults to 60 seconds.
    #[must_use]
    pub fn idle_timeout(mut self, idle: Option<Duration>) -> Self {
        self.time.idle_timeout = idle;
        self
    }

    /// Sets how long the client may take in all, or `None` for no limit. Defaults to 10 minutes.
    #[must_use]
    pub fn total_timeout(mut self, limit: Option<Duration>) -> Self {
        self.time.total_timeout = limit;
        self
    }

    /// Sets a function that is called with each progress notification of the client.
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
