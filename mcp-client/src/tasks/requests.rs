//! The requests about a task.

use std::sync::Arc;

use mcp_kernel::client::CallHeaders;
use mcp_kernel::{CallOptions, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::tasks::{TaskRequestParams, UpdateTaskRequestParams};
use mcp_types::{Era, InputResponses, Method, RawObject};

use super::state::TaskModel;
use crate::call::Call;
use crate::client::Client;
use crate::context::CallContext;
use crate::error::Error;
use crate::state::{Core, Phase};

/// Sends requests about one task, with what the caller attached to the call that created it.
#[derive(Clone)]
pub(super) struct TaskRequests {
    pub(super) client: Client,
    pub(super) id: Arc<str>,
    pub(super) context: CallContext,
    /// The timeouts of each request.
    pub(super) options: CallOptions,
}

impl TaskRequests {
    /// Returns the state of the task.
    pub(super) async fn get(&self) -> Result<PayloadBuf, Error> {
        self.send(Method::TASKS_GET, self.params(), self.options).await
    }

    /// Waits for the result of the task, which may take as long as the task.
    pub(super) async fn result(self) -> Result<PayloadBuf, Error> {
        let options = self.options.idle_timeout(None).total_timeout(None);
        self.send(Method::TASKS_RESULT, self.params(), options).await
    }

    /// Sends responses to input requests.
    pub(super) async fn update(&self, responses: InputResponses) -> Result<(), Error> {
        let params = RawObject::new(&UpdateTaskRequestParams::new(&*self.id, responses));
        self.send(Method::TASKS_UPDATE, params, self.options).await.map(drop)
    }

    /// Cancels the task.
    pub(super) async fn cancel(&self) -> Result<(), Error> {
        self.send(Method::TASKS_CANCEL, self.params(), self.options).await.map(drop)
    }

    /// Cancels the task without waiting for the response.
    pub(super) fn cancel_and_forget(&self, model: TaskModel) {
        if let Ok(params) = self.params() {
            self.client.shared.with(|core, now| core.cancel_task(now, model, &self.id, &params, &self.context));
        }
    }

    fn params(&self) -> Result<RawObject, serde_json::Error> {
        RawObject::new(&TaskRequestParams::new(&*self.id))
    }

    async fn send(
        &self,
        method: Method,
        params: Result<RawObject, serde_json::Error>,
        options: CallOptions,
    ) -> Result<PayloadBuf, Error> {
        let call = Call::<RawObject>::new(&self.client, method, params).context(self.context.clone());
        // Boxed without its type, because a call may follow a task.
        let sent: crate::request_handlers::BoxFuture<_> = Box::pin(call.options(options).payload());
        sent.await
    }
}

impl Core {
    /// Cancels a task that is no longer followed, if the connection allows it now. A server that misses it ends the task
    /// with its time to live.
    fn cancel_task(&mut self, now: Time, model: TaskModel, id: &str, params: &RawObject, context: &CallContext) {
        let Phase::Ready(revision) = self.phase else { return };
        if TaskModel::of(revision) != Some(model) || (model == TaskModel::Core && !self.tool_tasks.has_cancel) {
            return;
        }
        // TK-34
        let name = (self.has_streams && revision.era() == Era::Modern).then(|| id.to_owned());
        let (method, options) = (Method::TASKS_CANCEL, CallOptions::default());
        let headers = CallHeaders::new(name, Vec::new());
        if let Ok(call) = self.kernel.call_with_headers(now, &method, params, options, headers) {
            self.forget_outcome(call, context);
            self.wake_transport();
        }
    }
}
