//! What the context of a task uses instead of a client.

use std::sync::{Arc, OnceLock};

use mcp_types::{ErrorObject, InputRequest, RawJson, RawObject};

use crate::asking::error::AskError;
use crate::serve::endpoint::BoxFuture;
use crate::serve::progress::Progress;

/// What the [`RequestContext`](crate::RequestContext) of a task uses instead of a client; a runtime of tasks implements it.
///
/// The futures do not borrow from it, so that handlers can wait for them in tasks of their own.
pub trait TaskPort: Send + Sync {
    /// Requests input from the client of the task, and returns its response. If the handler is to run again with the response,
    /// the future is never ready, and the handler is dropped.
    fn ask(&self, key: &str, request: InputRequest) -> BoxFuture<Result<RawObject, AskError>>;

    /// Returns the result of a step of [`once`](crate::RequestContext::once) that was completed in this run or an earlier one.
    fn step(&self, key: &str) -> Option<RawJson>;

    /// Makes sure that no other process runs the task, before a step that was not completed has its effects. Returns `None` if that
    /// is certain.
    fn begin_step(&self) -> Option<BoxFuture<Result<(), AskError>>>;

    /// Stores the result of a step, before the handler gets it.
    fn complete_step(&self, key: &str, result: RawJson) -> BoxFuture<Result<(), AskError>>;

    /// Reports progress.
    fn progress(&self, progress: Progress);

    /// Ends the task with an error, whatever its handler returns: what was stored does not fit the handler.
    fn fail(&self, error: ErrorObject);
}

/// The port of a call that may become a task.
#[derive(Default)]
pub(crate) struct TaskSlot(OnceLock<Arc<dyn TaskPort>>);

impl TaskSlot {
    pub(crate) fn port(&self) -> Option<&Arc<dyn TaskPort>> {
        self.0.get()
    }

    /// Turns the call into a task, unless it is one.
    pub(crate) fn set(&self, port: Arc<dyn TaskPort>) {
        let _ = self.0.set(port);
    }
}
