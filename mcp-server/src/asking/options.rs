//! Options of a server-to-client request.

use mcp_kernel::CallOptions;
use mcp_types::{ProgressNotificationParams, RequestMeta};

/// Is called with the progress of a server-to-client request.
pub(crate) type ProgressHandler = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// The timeouts, the progress callback and the metadata of a server-to-client request.
#[derive(Default)]
pub(crate) struct AskOptions {
    pub(crate) time: CallOptions,
    pub(crate) watcher: Option<ProgressHandler>,
    pub(crate) meta: Option<Box<RequestMeta>>,
}

impl AskOptions {
    /// The options of requests that a user may have to confirm: users take their time, and clients report no progress
    /// meanwhile.
    pub(crate) fn of_users() -> Self {
        Self { time: CallOptions::default().idle_timeout(None), ..Self::default() }
    }
}
