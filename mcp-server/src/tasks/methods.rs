//! The methods, capabilities and listen streams of a server with tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_kernel::server::{ProtocolExtension, ServerConfig};
use mcp_types::gate::Revisions;
use mcp_types::tasks::EXTENSION;
use mcp_types::{
    ErrorObject, Method, RawObject, Revision, ServerTaskRequests, ServerTasksCapability, SubscriptionFilter,
    ToolTaskRequests,
};

use crate::build::builder::ServerBuilder;
use crate::build::registry::Registry;
use crate::handlers::extension_method;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::Dispatched;
use crate::serve::response::Response;
use crate::tasks::runtime::TaskRuntime;

impl ServerBuilder {
    /// Sets what runs the tools with [`Tool::task`](crate::Tool::task), such as `mcp_tasks::Tasks`. The server declares tasks,
    /// as an extension to modern clients and as a capability in 2025-11-25, and has their methods.
    pub fn tasks(mut self, runtime: impl TaskRuntime) -> Self {
        self.settings.tasks = Some(Arc::new(runtime));
        self
    }
}

/// The methods of the extension.
const EXTENSION_METHODS: [Method; 3] = [Method::TASKS_GET, Method::TASKS_UPDATE, Method::TASKS_CANCEL];

/// The methods of 2025-11-25 that the extension does not have.
const CORE_METHODS: [Method; 2] = [Method::TASKS_RESULT, Method::TASKS_LIST];

/// The member of a filter with the ids of tasks.
const TASK_IDS: &str = "taskIds";

/// Declares tasks and adds their methods, if there is a runtime for them.
pub(crate) fn declare(config: &mut ServerConfig, registry: &mut Registry, runtime: Option<&Arc<dyn TaskRuntime>>) {
    let Some(runtime) = runtime else { return };
    config.capabilities.tasks = Some(capability());
    config.task_list_needs_principal = true;
    config.extensions.insert(EXTENSION.to_owned(), extension());
    // The tasks that a client may listen to are known to the runtime.
    config.intercept_builtin.store(true, Ordering::Relaxed);
    for method in EXTENSION_METHODS.into_iter().chain(CORE_METHODS) {
        let runtime = Arc::clone(runtime);
        let handler = extension_method::boxed(move |ctx, params| runtime.serve(ctx, params));
        registry.methods.insert(method, handler);
    }
}

/// The extension, which only modern clients know.
// TK-1, TK-36
fn extension() -> ProtocolExtension {
    let since = Revisions::since(Revision::V2026_07_28);
    let mut extension = ProtocolExtension::default();
    extension.revisions = since;
    extension.methods = EXTENSION_METHODS.into_iter().map(|method| (method, since)).collect();
    extension.filter_members.insert(TASK_IDS.to_owned());
    extension
}

/// The capability in 2025-11-25.
// B-80
fn capability() -> ServerTasksCapability {
    let tools = ToolTaskRequests::default().call(RawObject::empty());
    ServerTasksCapability::default()
        .cancel(RawObject::empty())
        .list(RawObject::empty())
        .requests(ServerTaskRequests::default().tools(tools))
}

/// Opens a listen stream for the tasks that the client may listen to.
// TK-29, TK-32, TK-35
pub(crate) fn listen(
    runtime: &Arc<dyn TaskRuntime>,
    ctx: RequestContext,
    mut filter: SubscriptionFilter,
) -> Dispatched {
    let invalid = |fault: String| Dispatched::Ready(Err(ErrorObject::invalid_params(format!("`taskIds`: {fault}"))));
    let task_ids = match filter.decode_task_ids() {
        Ok(Some(task_ids)) => task_ids,
        Ok(None) => return Dispatched::Ready(Ok(Response::ByProtocol)),
        Err(fault) => return invalid(fault.to_string()),
    };
    let most = ctx.server().config().limits.max_uris_per_listen_stream;
    if task_ids.len() > most {
        return invalid(format!("more than {most} tasks (`max_uris_per_listen_stream`)"));
    }
    let selected = runtime.select(ctx, task_ids);
    Dispatched::Pending(Box::pin(async move {
        filter = filter.task_ids(selected.await?);
        Ok(Response::Listening(Box::new(filter)))
    }))
}
