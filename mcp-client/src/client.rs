//! The client.

use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use mcp_kernel::CommandError;
use mcp_kernel::client::ServerFacts;
use mcp_types::core_tasks::ListTasksResult;
use mcp_types::{
    CallToolResult, ClientCapability, CompleteRequestParams, CompleteResult, CompletionArgument, CompletionReference,
    DiscoverResult, EmptyResult, Era, GetPromptRequestParams, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, Method, NotificationParams,
    PaginatedRequestParams, Prompt, RawObject, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceTemplate, Revision, Root, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::ClientBuilder;
use crate::cache::is_public;
use crate::call::{Call, Params, telemetry};
use crate::close_reason::CloseReason;
use crate::context::CallContext;
use crate::detected_revision::DetectedRevision;
use crate::error::Error;
use crate::list::Items;
use crate::listen::Listen;
use crate::observed;
use crate::session::SavedSession;
use crate::state::waiters::Waiter;
use crate::state::{Phase, Shared};
use crate::tasks::{TaskHandle, TaskReference};
use crate::transport::{Transport, TransportKind};

/// A client of one server.
///
/// Clones are handles to the same client, which is closed when the last of them is dropped. Methods that send a request
/// return a [`Call`], which is sent when it is awaited.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    _guard: Arc<CloseOnDrop>,
}

/// Closes the client when the last handle is dropped.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.with(|core, _| core.close());
    }
}

impl Client {
    /// Connects to a server with default settings and without handlers for server-to-client requests.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Closed`] if the server cannot be reached, or if there is no common revision.
    pub async fn connect(transport: impl Transport) -> Result<Self, Error> {
        Self::builder("mcp-client", env!("CARGO_PKG_VERSION")).connect(transport).await
    }

    /// Creates a builder for a client with this name and version, which are sent to the server.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { _guard: Arc::new(CloseOnDrop(Arc::clone(&shared))), shared }
    }

    /// Waits until calls can be sent.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let mut waiter = Waiter::new(&self.shared, |core| &mut core.ready_waiters);
        let waiting = poll_fn(|cx| {
            self.shared.with(|core, _| match &core.phase {
                Phase::Ready(_) => Poll::Ready(Ok(())),
                Phase::Closing => Poll::Ready(Err(CloseReason::ByClient.into())),
                Phase::Closed(why) => Poll::Ready(Err(why.clone().into())),
                Phase::Connecting => {
                    waiter.wait(core, cx.waker());
                    Poll::Pending
                }
            })
        });
        waiting.await
    }

    /// Returns the protocol revision in use; `None` while there is no connection.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.shared.read(|core| match core.phase {
            Phase::Ready(revision) => Some(revision),
            Phase::Connecting | Phase::Closing | Phase::Closed(_) => None,
        })
    }

    /// Returns the revision that was detected, with the description of the server, to be stored and given to
    /// [`ClientBuilder::detected_revision`] for the next connection.
    #[must_use]
    pub fn detected_revision(&self) -> Option<DetectedRevision> {
        self.shared.read(|core| Some(DetectedRevision::of_kernel(core.detected?, core.server.clone())))
    }

    /// Returns the capabilities, name and instructions of the server, as far as they are known.
    ///
    /// They are requested when the client connects, with its credentials, and are kept if the credentials change. If a
    /// server returns different ones for each user, use one client per user. If the client connects to a modern server
    /// whose revision it knows, nothing is requested, and these are the ones of the [detected
    /// revision](DetectedRevision::server); [`server_facts`](Self::server_facts) requests the current ones.
    #[must_use]
    pub fn server(&self) -> ServerFacts {
        self.shared.read(|core| core.server.clone())
    }

    /// Returns the capabilities, name and instructions of the server, and requests them if this client has not done so yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not respond to `server/discover`, or if the client is closed.
    pub async fn server_facts(&self) -> Result<ServerFacts, Error> {
        self.ready().await?;
        let is_legacy = self.revision().is_some_and(|revision| revision.era() == Era::Legacy);
        if is_legacy || self.shared.read(|core| core.has_current_facts) {
            return Ok(self.server());
        }
        let facts = ServerFacts::from(self.discover().await?);
        self.shared.with(|core, _| core.set_facts(facts.clone()));
        Ok(facts)
    }

    /// Returns the id of the session with a legacy server over HTTP, if there is one.
    // S4.51
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.shared.read(|core| core.session_id.clone())
    }

    /// Calls a tool, with the arguments that [`Call::arguments`] sets. If the tool fails, the result has `is_error`.
    ///
    /// If the server makes a task of the call, it is followed to its end: the timeouts of the call apply, and dropping it
    /// cancels the task. [`Call::as_task`] returns a handle of the task instead.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// let result = client.call_tool("add").arguments(&serde_json::json!({ "a": 1, "b": 2 })).await?;
    /// println!("{:?}", result.content);
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tool(&self, name: impl AsRef<str>) -> Call<CallToolResult> {
        let has_headers = self.shared.settings.kind == TransportKind::RequestPerCall;
        Call::new(self, Method::TOOLS_CALL, Params::tool(name.as_ref(), has_headers))
    }

    /// Goes on with a task of this server, such as one that another process has started. Nothing is requested yet.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client, saved: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut task = client.resume_task(serde_json::from_str(saved)?);
    /// println!("{}", task.result().await?.to_text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_task(&self, task: TaskReference) -> TaskHandle {
        TaskHandle::new(self.clone(), CallContext::default(), task)
    }

    /// Lists all tasks of the user on a server of 2025-11-25, over all pages. [`resume_task`](Self::resume_task) makes a handle of
    /// each.
    ///
    /// The list is of tasks that any client of the user has created. A server has it if it declares the capability `tasks.list`;
    /// others reject the request. Later revisions have no list: the request fails with
    /// [`CommandError::NotInRevision`], and is not sent.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// for task in client.tasks().all().await? {
    ///     if task.state.is_final() {
    ///         let result = client.resume_task(task).result().await?;
    ///         println!("{}", result.to_text());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tasks(&self) -> Items<TaskReference> {
        Items::new(self)
    }

    /// Fetches one page of tasks; without a cursor, the first. [`tasks`](Self::tasks) says which servers have it.
    pub fn list_tasks(&self, cursor: Option<String>) -> Call<ListTasksResult> {
        self.page(Method::TASKS_LIST, "tasks", cursor)
    }

    /// Lists all tools of the server, over all pages.
    pub fn tools(&self) -> Items<Tool> {
        Items::new(self)
    }

    /// Fetches one page of tools; without a cursor, the first.
    pub fn list_tools(&self, cursor: Option<String>) -> Call<ListToolsResult> {
        let call = self.page(Method::TOOLS_LIST, "tools", cursor);
        call.inspect(|client, result, json, owner| {
            let is_modern = client.revision().is_some_and(|revision| revision.era() == Era::Modern);
            if is_modern && client.shared.settings.kind == TransportKind::RequestPerCall {
                client.shared.with(|core, _| core.tool_headers.record(owner, is_public(json), result));
            } else if !is_modern && client.shared.read(|core| core.tool_tasks.is_offered) {
                client.shared.with(|core, _| core.tool_tasks.record(result));
            }
        })
    }

    /// Lists all prompts of the server, over all pages.
    pub fn prompts(&self) -> Items<Prompt> {
        Items::new(self)
    }

    /// Fetches one page of prompts; without a cursor, the first.
    pub fn list_prompts(&self, cursor: Option<String>) -> Call<ListPromptsResult> {
        self.page(Method::PROMPTS_LIST, "prompts", cursor)
    }

    /// Gets a prompt, with the arguments that [`Call::argument`] sets.
    pub fn get_prompt(&self, name: impl Into<String>) -> Call<GetPromptResult> {
        Call::new(self, Method::PROMPTS_GET, Params::Prompt(Box::new(GetPromptRequestParams::new(name))))
    }

    /// Lists all resources of the server, over all pages.
    pub fn resources(&self) -> Items<Resource> {
        Items::new(self)
    }

    /// Fetches one page of resources; without a cursor, the first.
    pub fn list_resources(&self, cursor: Option<String>) -> Call<ListResourcesResult> {
        self.page(Method::RESOURCES_LIST, "resources", cursor)
    }

    /// Lists all resource templates of the server, over all pages.
    pub fn resource_templates(&self) -> Items<ResourceTemplate> {
        Items::new(self)
    }

    /// Fetches one page of resource templates; without a cursor, the first.
    pub fn list_resource_templates(&self, cursor: Option<String>) -> Call<ListResourceTemplatesResult> {
        self.page(Method::RESOURCES_TEMPLATES_LIST, "resourceTemplates", cursor)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        Call::new(self, Method::RESOURCES_READ, RawObject::new(&ReadResourceRequestParams::new(uri)))
    }

    /// Requests completions for the value of an argument of a prompt or resource template.
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<CompleteResult> {
        let argument = CompletionArgument::new(argument, value);
        self.complete_with(CompleteRequestParams::new(reference, argument))
    }

    /// Requests completions with all parameters of the protocol, such as the values of other arguments.
    pub fn complete_with(&self, params: CompleteRequestParams) -> Call<CompleteResult> {
        Call::new(self, Method::COMPLETION_COMPLETE, RawObject::new(&params))
    }

    /// Sends `server/discover` to a modern server. For legacy servers, [`server`](Self::server) returns the result of the
    /// handshake.
    pub fn discover(&self) -> Call<DiscoverResult> {
        Call::new(self, Method::SERVER_DISCOVER, Ok(RawObject::empty()))
    }

    /// Sends `ping` to a legacy server. Modern revisions do not have this method.
    pub fn ping(&self) -> Call<EmptyResult> {
        Call::new(self, Method::PING, Ok(RawObject::empty()))
    }

    /// Sets the minimum severity of log messages, in either era.
    ///
    /// A modern server gets it with each request from now on. A legacy server keeps it until the end of the session; the
    /// client sets it again after a restart of the server or the renewal of the session.
    ///
    /// # Errors
    ///
    /// Returns an error if a legacy server rejects it, or if the client is closed.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), Error> {
        self.ready().await?;
        if self.revision().is_some_and(|revision| revision.era() == Era::Legacy) {
            let params = RawObject::new(&SetLevelRequestParams::new(level));
            Call::<EmptyResult>::new(self, Method::LOGGING_SET_LEVEL, params).await?;
        }
        self.shared.with(|core, _| {
            core.log_level = Some(level);
            core.kernel.set_log_level(Some(level));
        });
        Ok(())
    }

    /// Replaces the roots. A legacy server is notified; modern servers request the roots when they need them.
    ///
    /// # Errors
    ///
    /// Returns an error if the client was built without [`roots`](ClientBuilder::roots), or if it is closed.
    pub async fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        let Some(known) = &self.shared.settings.roots else {
            return Err(CommandError::MissingCapability(ClientCapability::Roots).into());
        };
        *known.lock().unwrap_or_else(PoisonError::into_inner) = roots.into_iter().collect();
        self.ready().await?;
        if self.revision().is_some_and(|revision| revision.era() == Era::Legacy) {
            self.notify(Method::NOTIFICATIONS_ROOTS_LIST_CHANGED, &NotificationParams::default()).await?;
        }
        Ok(())
    }

    /// Returns the session with a legacy server over HTTP, which [`ClientBuilder::resume_session`] can resume later.
    #[must_use]
    pub fn save_session(&self) -> Option<SavedSession> {
        let (revision, server) = (self.revision()?, self.server());
        Some(SavedSession {
            id: self.session_id()?,
            revision,
            capabilities: server.capabilities,
            info: server.info,
            instructions: server.instructions,
            owner: self.shared.read(|core| core.session_owner),
        })
    }

    /// Sends a request with any method and parameters, such as those of an extension.
    pub fn request<R>(&self, method: impl Into<Method>, params: &(impl Serialize + ?Sized)) -> Call<R>
    where
        R: DeserializeOwned + Send + 'static,
    {
        Call::new(self, method.into(), RawObject::new(params))
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the client is closed, or if the revision does not have this notification.
    pub async fn notify(&self, method: impl Into<Method>, params: &impl Serialize) -> Result<(), Error> {
        self.ready().await?;
        let (shared, method) = (&self.shared, method.into());
        let span = telemetry::sent_span(&method, shared.settings.network);
        telemetry::describe(&span, shared, None, self.revision());
        // Without the lock, as this is code of the application.
        let traced = match telemetry::trace_context(shared, &span) {
            Some(trace) => {
                let params = RawObject::new(params).map_err(|_| CommandError::NotAnObject)?;
                trace.add_to(&params).ok()
            }
            None => None,
        };
        shared.with(|core, _| {
            match &traced {
                Some(traced) => core.kernel.notify(&method, traced)?,
                None => core.kernel.notify(&method, params)?,
            }
            core.wake_transport();
            Ok::<_, Error>(())
        })?;
        observed::notified(shared, &method);
        Ok(())
    }

    /// Subscribes to changes, until the [`Subscription`](crate::Subscription) is dropped.
    ///
    /// Awaiting it returns an error if the server rejects the subscription, or if the client is closed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_client::types::SubscriptionFilter;
    /// use mcp_client::{Change, Client, Error};
    ///
    /// async fn watch(client: &Client) -> Result<(), Error> {
    ///     let filter = SubscriptionFilter::default().tools_list_changed(true).resource("notes://1");
    ///     let mut changes = client.listen(filter).await?;
    ///     while let Some(change) = changes.next().await {
    ///         match change? {
    ///             Change::Resource(uri) => println!("{:?}", client.read_resource(uri).await?.contents),
    ///             other => println!("{other:?}"),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn listen(&self, filter: SubscriptionFilter) -> Listen {
        Listen::new(self, filter)
    }

    /// Closes the client, and waits until its transport has disconnected. Calls that are in flight fail.
    pub async fn close(&self) -> CloseReason {
        self.shared.with(|core, _| core.close());
        self.closed().await
    }

    /// Waits until the client is closed, and returns the reason.
    // S4.52, S4.54
    pub async fn closed(&self) -> CloseReason {
        let mut waiter = Waiter::new(&self.shared, |core| &mut core.state_waiters);
        let waiting = poll_fn(|cx| {
            self.shared.with(|core, _| match &core.phase {
                Phase::Closed(why) => Poll::Ready(why.clone()),
                Phase::Connecting | Phase::Ready(_) | Phase::Closing => {
                    waiter.wait(core, cx.waker());
                    Poll::Pending
                }
            })
        });
        waiting.await
    }

    fn page<R: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        member: &'static str,
        cursor: Option<String>,
    ) -> Call<R> {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        Call::new(self, method, RawObject::new(&params)).items_member(member)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
