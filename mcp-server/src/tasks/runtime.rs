//! The runtime of the tasks of a server, and the tools that it runs.

use std::sync::Arc;

use mcp_types::{ErrorObject, RawObject};

use crate::build::error::BuildError;
use crate::build::registry::Registry;
use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::{BoxFuture, ResponseFuture};
use crate::server::WeakServer;
use crate::tasks::listener::TaskListener;
use crate::tasks::options::{TaskOptions, TaskSupport};

/// Runs the tasks of a server: the crate `mcp-tasks` has one. See [`ServerBuilder::tasks`](crate::ServerBuilder::tasks).
pub trait TaskRuntime: Send + Sync + 'static {
    /// Is called when the server is built. A runtime must not keep its server alive.
    fn attach(&self, server: WeakServer);

    /// Decides about a call of a tool, whose arguments were validated. Returns `None` if it is not a task; the handler is
    /// called then.
    fn call_tool(&self, ctx: &RequestContext, options: &TaskOptions) -> Option<ResponseFuture>;

    /// Serves one of the methods `tasks/..`, of either model. Its name is that of the context.
    fn serve(&self, ctx: RequestContext, params: RawObject) -> BoxFuture<Result<RawObject, ErrorObject>>;

    /// Returns the tasks that a client may listen to, of those that it asked for.
    fn select(&self, ctx: RequestContext, task_ids: Vec<String>) -> BoxFuture<Result<Vec<String>, ErrorObject>>;

    /// Is called when a listen stream for tasks was opened. The method must not block.
    fn listen(&self, listener: TaskListener, task_ids: Vec<String>);

    /// Is called when a listen stream for tasks has ended. The method must not block.
    fn stop_listening(&self, listener: &TaskListener, task_ids: Vec<String>);
}

/// Lets a runtime decide about the calls of the tools of a registry that it does not know yet.
pub(crate) fn wrap_tools(registry: &mut Registry, runtime: Option<&Arc<dyn TaskRuntime>>) -> Result<(), BuildError> {
    let Some(runtime) = runtime else {
        let is_task =
            |tool: &&Arc<Tool>| tool.task.as_ref().is_some_and(|options| options.support() != TaskSupport::Never);
        return match registry.tools.items.iter().find(is_task) {
            Some(tool) => Err(BuildError::MissingTasks { tool: tool.name().to_owned() }),
            None => Ok(()),
        };
    };
    for tool in registry.tools.items.iter_mut().filter(|tool| !tool.has_task_runtime) {
        wrap(Arc::make_mut(tool), Arc::clone(runtime));
    }
    Ok(())
}

fn wrap(tool: &mut Tool, runtime: Arc<dyn TaskRuntime>) {
    let options = tool.task.as_deref().cloned().unwrap_or_else(|| TaskSupport::Never.into());
    let handler = Arc::clone(&tool.handler);
    tool.handler = Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| {
        // The runtime calls the handler in this way, too.
        let decided = if ctx.is_task_run() { None } else { runtime.call_tool(&ctx, &options) };
        decided.unwrap_or_else(|| handler(ctx, errors))
    });
    tool.has_task_runtime = true;
}
