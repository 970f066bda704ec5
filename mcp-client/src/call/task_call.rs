//! Tool calls that become tasks.

use std::time::Duration;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    CallToolResult, JsonObject, Method, ObjectBuf, ObjectRef, RawJson, RawObject, RequestParams, TaskMetadata, tasks,
};
use serde::de::DeserializeOwned;

use crate::call::tool_refresh::refresh_tools;
use crate::call::{Call, Extent, Finished, invalid, telemetry, unexpected};
use crate::client::Client;
use crate::context::CallExtensions;
use crate::error::Error;
use crate::request_handlers::BoxFuture;
use crate::tasks::support::Support;
use crate::tasks::{CreatedTask, Started, TaskHandle, TaskModel, follow};

impl Call<CallToolResult> {
    /// Sends the call, and returns a handle if it becomes a task, instead of following the task to its end.
    ///
    /// A server with the extension `io.modelcontextprotocol/tasks` decides by itself whether a call becomes a task. A server
    /// of 2025-11-25 is asked for one if it has tasks and the tool allows them; to know that, the client lists the tools if it
    /// has not yet. Any other call is [`Done`](Started::Done) when it is complete.
    ///
    /// # Errors
    ///
    /// Returns the error of the call.
    pub async fn as_task(self) -> Result<Started, Error> {
        let started = self.start(Extent::UntilTask, |call, finished| match finished {
            Finished::Task(created) => {
                let (client, context) = (call.client.clone(), call.context.clone());
                Ok(Started::Task(TaskHandle::new(client, context, (*created).into())))
            }
            Finished::Complete(result, owner) | Finished::InputRequired(result, owner) => {
                Ok(Started::Done(call.decode(&result, owner)?.0))
            }
        });
        started.await
    }

    /// Sets how long a server of 2025-11-25 should keep the task that the call becomes, from its creation. It may keep it for
    /// another time ([`TaskState::ttl`](crate::TaskState::ttl)). Other servers decide by themselves, which is the default.
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.task_ttl = Some(ttl);
        self
    }
}

/// The tool calls that ask for a task, as in 2025-11-25.
#[derive(Clone)]
pub(super) struct Augmentation {
    client: Client,
    extensions: CallExtensions,
    ttl: Option<Duration>,
}

impl Augmentation {
    /// Returns the parameters that ask for a task, if the tool requires one, or allows one that the caller wants.
    // B-81, B-82
    pub(super) async fn apply(self, params: &ObjectBuf, wants_task: bool) -> Result<Option<ObjectBuf>, Error> {
        let Some(tool) = telemetry::name_param(ObjectRef::from(params)) else { return Ok(None) };
        let mut support = self.support(&tool);
        if support.is_none() && wants_task && refresh_tools(&self.client, &self.extensions).await {
            support = self.support(&tool);
        }
        let is_task = match support {
            Some(Support::Required) => true,
            Some(Support::Optional) => wants_task,
            Some(Support::Forbidden) | None => false,
        };
        if !is_task {
            return Ok(None);
        }
        let mut object: JsonObject = params.decode().map_err(invalid)?;
        // A caller that asks for a task itself gets the response as it is.
        if object.contains("task") {
            return Ok(None);
        }
        let mut task = TaskMetadata::default();
        task.ttl = self.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        object.insert("task", RawJson::new(&task).map_err(invalid)?);
        Ok(Some(RawObject::new(&object).map_err(invalid)?.into()))
    }

    /// Looks whether a tool that "does not exist" requires a task, which is what its server says without one.
    pub(super) async fn apply_if_required(self, params: &ObjectBuf) -> Result<Option<ObjectBuf>, Error> {
        if !refresh_tools(&self.client, &self.extensions).await {
            return Ok(None);
        }
        self.apply(params, false).await
    }

    fn support(&self, tool: &str) -> Option<Support> {
        self.client.shared.read(|core| core.tool_tasks.get(tool))
    }
}

impl<R: DeserializeOwned + Send + 'static> Call<R> {
    pub(super) fn augmentation(&self) -> Augmentation {
        let extensions = self.context.extensions.clone();
        Augmentation { client: self.client.clone(), extensions, ttl: self.task_ttl }
    }

    /// Reads the task that the server has created instead of a result.
    pub(super) fn read_task(
        &self,
        model: TaskModel,
        params: ObjectRef<'_>,
        result: &PayloadBuf,
    ) -> Result<CreatedTask, Error> {
        // TK-6
        if self.method != Method::TOOLS_CALL {
            return Err(Error::InvalidResponse(format!("the server created a task for `{}`", self.method)));
        }
        // TK-4
        if model == TaskModel::Extension && !declares_tasks(params) {
            return Err(unexpected("the server created a task for a request that did not declare the extension"));
        }
        CreatedTask::read(model, result)
    }

    /// Follows a task to its end.
    pub(super) fn follow(&self, created: CreatedTask) -> BoxFuture<Result<PayloadBuf, Error>> {
        // Boxed without its type, because the requests for a task are calls, too.
        Box::pin(follow(self.client.clone(), self.context.clone(), self.options, created.into()))
    }
}

/// Returns whether a request declares the extension: by itself, or with the capabilities of the client.
fn declares_tasks(params: ObjectRef<'_>) -> bool {
    let meta = params.decode::<RequestParams>().ok().and_then(|params| params.meta);
    let Some(own) = meta.and_then(|meta| meta.client_capabilities) else { return true };
    own.extensions.is_some_and(|extensions| extensions.contains(tasks::EXTENSION))
}
