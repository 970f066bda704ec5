//! Handles of tasks.

use std::any::Any;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use mcp_types::{CallToolResult, ErrorObject, InputRequest};

use super::follower::Follower;
use super::reference::TaskReference;
use super::state::{TaskState, invalid};
use crate::client::Client;
use crate::context::CallContext;
use crate::error::Error;
use crate::input::InputResult;

/// The outcome of [`Call::as_task`](crate::Call::as_task).
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a call starts in one of these ways")]
#[expect(clippy::large_enum_variant, reason = "it is returned once for each call")]
pub enum Started {
    /// The call is complete: the server, its revision or the tool has no tasks, or the tool was fast.
    Done(CallToolResult),
    /// The server has created a task.
    Task(TaskHandle),
}

/// A task on the server: a tool call whose result is fetched later.
///
/// [`Call::as_task`](crate::Call::as_task) and [`Client::resume_task`] create it. Nothing is requested until one of its
/// methods is awaited. [`result`](Self::result) and [`updates`](Self::updates) follow the task: they poll it, listen to its
/// changes where the server has a stream for them, wait out outages of the server and the connection, and pass its input
/// requests to the handlers of the call and of the client.
///
/// Dropping the handle cancels a task that has not ended; [`detach`](Self::detach) lets it go on. The cancellation is sent
/// without waiting for the response, so the client must stay open for a moment.
///
/// # Examples
///
/// ```no_run
/// use mcp_client::{Client, Error, Started, TaskReference};
///
/// # async fn example(client: Client, save: fn(TaskReference)) -> Result<(), Error> {
/// match client.call_tool("render").as_task().await? {
///     Started::Done(result) => println!("{}", result.to_text()),
///     Started::Task(mut task) => {
///         save(task.reference());
///         while let Some(state) = task.next_update().await {
///             println!("{}", state?.message.unwrap_or_default());
///         }
///         println!("{}", task.result().await?.to_text());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a handle cancels its task"]
pub struct TaskHandle {
    follower: Follower,
    /// The state that was last returned as an update.
    reported: Option<TaskState>,
    /// Whether an update was an error, which is the last one.
    has_failed: bool,
}

impl TaskHandle {
    pub(crate) fn new(client: Client, context: CallContext, reference: TaskReference) -> Self {
        let options = client.shared.settings.call_options;
        Self { follower: Follower::new(client, context, options, None, reference), reported: None, has_failed: false }
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> &str {
        self.follower.id()
    }

    /// Returns the last known state, without a request.
    #[must_use]
    pub fn state(&self) -> &TaskState {
        self.follower.state()
    }

    /// Requests the current state. Input requests are left to [`result`](Self::result) and [`updates`](Self::updates).
    ///
    /// # Errors
    ///
    /// Returns [`TaskError::Unknown`](crate::TaskError::Unknown) if the server does not know the task, and the errors of any
    /// call.
    pub async fn status(&mut self) -> Result<&TaskState, Error> {
        self.follower.refresh().await?;
        Ok(self.follower.state())
    }

    /// Follows the task until its state changes, and returns the new state; the first time it returns the current state.
    /// Returns `None` after the final state, and after an error. No update is lost if the returned future is dropped.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`result`](Self::result), except that of the tool call.
    pub async fn next_update(&mut self) -> Option<Result<TaskState, Error>> {
        if self.has_failed {
            return None;
        }
        while self.reported.as_ref() == Some(self.follower.state()) {
            if self.follower.state().is_final() {
                return None;
            }
            if let Err(error) = self.follower.advance().await {
                self.has_failed = true;
                return Some(Err(error));
            }
        }
        let state = self.follower.state().clone();
        self.reported = Some(state.clone());
        Some(Ok(state))
    }

    /// Returns the updates of [`next_update`](Self::next_update) as a stream.
    pub fn updates(&mut self) -> impl Stream<Item = Result<TaskState, Error>> + Send + '_ {
        unfold(self, |this| async move { Some((this.next_update().await?, this)) })
    }

    /// Follows the task to its end, and returns its result, also if it has ended before. There is no timeout; that of the
    /// client applies to each request.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Rejected`] with the error of the tool call if the task failed, [`Error::Task`] if it was cancelled,
    /// is unknown or exceeds a limit, [`Error::InputRequestFailed`] if a handler failed, and the errors of any call. After
    /// an error the handle can be used again.
    pub async fn result(&mut self) -> Result<CallToolResult, Error> {
        self.follower.run().await?.decode().map_err(invalid)
    }

    /// Requests that the task be cancelled. A task may go on, or complete; [`result`](Self::result) returns how it ends.
    ///
    /// # Errors
    ///
    /// Returns [`TaskError::Unknown`](crate::TaskError::Unknown) if the server does not know the task, and the errors of any
    /// call. It is no error if the task has ended.
    pub async fn cancel(&mut self) -> Result<(), Error> {
        self.follower.cancel().await
    }

    /// Returns what is needed to go on with the task elsewhere or later. The handle still cancels the task when it is
    /// dropped.
    #[must_use]
    pub fn reference(&self) -> TaskReference {
        self.follower.reference()
    }

    /// Lets the task go on without this handle. [`Client::resume_task`] continues it.
    pub fn detach(mut self) -> TaskReference {
        self.follower.keep();
        self.follower.reference()
    }

    /// Handles the input requests of the task, as [`Call::on_input`](crate::Call::on_input) does. A handle that a call has
    /// created has the function of the call.
    pub fn on_input<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(InputRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<InputResult>, ErrorObject>> + Send + 'static,
    {
        self.follower.context_mut().on_input = Some(Arc::new(move |request| Box::pin(function(request))));
        self
    }

    /// Attaches a value to the requests of the task, as [`Call::extension`](crate::Call::extension) does. A handle that a
    /// call has created has the values of the call.
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.follower.context_mut().extensions.insert(value);
        self
    }
}

impl std::fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The id may be a secret.
        f.debug_struct("TaskHandle").field("state", self.state()).finish_non_exhaustive()
    }
}
