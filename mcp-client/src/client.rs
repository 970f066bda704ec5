//! The handle to a server.

use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use mcp_kernel::Misuse;
use mcp_kernel::client::{DetectedRevision, ServerFacts};
use mcp_types::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, CompleteResult, CompletionArgument,
    CompletionReference, DiscoverResult, EmptyResult, Era, GetPromptRequestParams, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, Method, NotificationParams,
    OrderedMap, PaginatedRequestParams, Prompt, RawObject, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceTemplate, Revision, Root, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::ClientBuilder;
use crate::call::Call;
use crate::closed::Closed;
use crate::error::Error;
use crate::list::Pages;
use crate::listen::Listener;
use crate::session::SavedSession;
use crate::state::waiters::Place;
use crate::state::{Phase, Shared};
use crate::transport::{Transport, TransportKind};

/// A client of one server. Clones are handles to the same client, which is closed when the last of them is dropped.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    _guard: Arc<Guard>,
}

/// Closes the client when nobody has a handle to it any more.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.with(|core, _| core.close());
    }
}

impl Client {
    /// Connects to a server, with nothing to answer its questions: the shortest way to begin.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or shares no revision with us.
    pub async fn connect(transport: impl Transport) -> Result<Self, Error> {
        Self::builder("mcp-client", env!("CARGO_PKG_VERSION")).connect(transport).await
    }

    /// Describes a client: who it is, and what it can do for a server.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { _guard: Arc::new(Guard(Arc::clone(&shared))), shared }
    }

    /// Waits until calls can be made.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let mut place = Place::new(&self.shared, |core| &mut core.waiting);
        let waiting = poll_fn(|cx| {
            self.shared.with(|core, _| match &core.phase {
                Phase::Ready(_) => Poll::Ready(Ok(())),
                Phase::Closing => Poll::Ready(Err(Closed::ByClient.into())),
                Phase::Over(why) => Poll::Ready(Err(why.clone().into())),
                Phase::Connecting => {
                    place.wait(core, cx.waker());
                    Poll::Pending
                }
            })
        });
        waiting.await
    }

    /// The revision that is spoken; nothing while there is no connection.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.shared.look(|core| match core.phase {
            Phase::Ready(revision) => Some(revision),
            Phase::Connecting | Phase::Closing | Phase::Over(_) => None,
        })
    }

    /// Returns the revision that was detected, to be stored and given to [`ClientBuilder::detected_revision`] for the next
    /// connection.
    #[must_use]
    pub fn detected_revision(&self) -> Option<DetectedRevision> {
        self.shared.look(|core| core.detected)
    }

    /// What the server said about itself, when it was asked.
    ///
    /// It is said once, to the credentials that the client connected with, and stays the same if others are used later:
    /// unlike private results in the cache it is not forgotten then. Where a server says something else to each user,
    /// in its instructions for example, use a client for each.
    #[must_use]
    pub fn server(&self) -> ServerFacts {
        self.shared.look(|core| core.server.clone())
    }

    /// The session with a legacy server over HTTP, if there is one.
    // S4.51
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.shared.look(|core| core.session_id.clone())
    }

    /// Calls a tool. Whether the tool itself failed is in the result.
    pub fn call_tool(&self, name: impl Into<String>, arguments: &(impl Serialize + ?Sized)) -> Call<CallToolResult> {
        let params = RawObject::new(arguments)
            .and_then(|arguments| RawObject::new(&CallToolRequestParams::new(name).arguments(arguments)));
        Call::new(self, Method::TOOLS_CALL, params)
    }

    /// Calls a tool that needs no arguments.
    pub fn call_tool_without_arguments(&self, name: impl Into<String>) -> Call<CallToolResult> {
        Call::new(self, Method::TOOLS_CALL, RawObject::new(&CallToolRequestParams::new(name)))
    }

    /// The tools of the server, as many pages as there are.
    pub fn tools(&self) -> Pages<Tool> {
        Pages::new(self)
    }

    /// One page of tools; the first, without a cursor.
    pub fn list_tools(&self, cursor: Option<String>) -> Call<ListToolsResult> {
        let call = self.page(Method::TOOLS_LIST, "tools", cursor);
        call.inspect(|client, result| {
            let is_modern = client.revision().is_some_and(|revision| revision.era() == Era::Modern);
            if is_modern && client.shared.settings.kind == TransportKind::Requests {
                client.shared.with(|core, _| core.tools.learn(result));
            }
            Ok(())
        })
    }

    /// The prompts of the server, as many pages as there are.
    pub fn prompts(&self) -> Pages<Prompt> {
        Pages::new(self)
    }

    /// One page of prompts; the first, without a cursor.
    pub fn list_prompts(&self, cursor: Option<String>) -> Call<ListPromptsResult> {
        self.page(Method::PROMPTS_LIST, "prompts", cursor)
    }

    /// Fills in a prompt.
    pub fn get_prompt<K, V>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Call<GetPromptResult>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let arguments: OrderedMap<String> =
            arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params = params.arguments(arguments);
        }
        Call::new(self, Method::PROMPTS_GET, RawObject::new(&params))
    }

    /// The resources of the server, as many pages as there are.
    pub fn resources(&self) -> Pages<Resource> {
        Pages::new(self)
    }

    /// One page of resources; the first, without a cursor.
    pub fn list_resources(&self, cursor: Option<String>) -> Call<ListResourcesResult> {
        self.page(Method::RESOURCES_LIST, "resources", cursor)
    }

    /// The resource templates of the server, as many pages as there are.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        Pages::new(self)
    }

    /// One page of resource templates; the first, without a cursor.
    pub fn list_resource_templates(&self, cursor: Option<String>) -> Call<ListResourceTemplatesResult> {
        self.page(Method::RESOURCES_TEMPLATES_LIST, "resourceTemplates", cursor)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        Call::new(self, Method::RESOURCES_READ, RawObject::new(&ReadResourceRequestParams::new(uri)))
    }

    /// Asks for values of an argument that begin like what was typed so far.
    pub fn complete(
        &self,
        of: impl Into<CompletionReference>,
        argument: impl Into<String>,
        typed: impl Into<String>,
    ) -> Call<CompleteResult> {
        let argument = CompletionArgument::new(argument, typed);
        self.complete_with(CompleteRequestParams::new(of, argument))
    }

    /// Like [`complete`](Self::complete), with all that the protocol knows, such as arguments that are filled in already.
    pub fn complete_with(&self, params: CompleteRequestParams) -> Call<CompleteResult> {
        Call::new(self, Method::COMPLETION_COMPLETE, RawObject::new(&params))
    }

    /// Asks a modern server what it is and can do. Legacy servers say it when the connection begins:
    /// [`server`](Self::server) has it.
    pub fn discover(&self) -> Call<DiscoverResult> {
        Call::new(self, Method::SERVER_DISCOVER, Ok(RawObject::empty()))
    }

    /// Asks a legacy server whether it is there. Modern ones do not know the method; every answer of theirs shows it.
    pub fn ping(&self) -> Call<EmptyResult> {
        Call::new(self, Method::PING, Ok(RawObject::empty()))
    }

    /// Says from which severity on log messages are wanted, in either era.
    ///
    /// A modern server hears of it with each request from now on; a legacy one forgets it with its session.
    ///
    /// # Errors
    ///
    /// If a legacy server refuses.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), Error> {
        self.ready().await?;
        if self.revision().is_some_and(|revision| revision.era() == Era::Modern) {
            self.shared.with(|core, _| core.kernel.set_log_level(Some(level)));
            return Ok(());
        }
        let params = RawObject::new(&SetLevelRequestParams::new(level));
        Call::<EmptyResult>::new(self, Method::LOGGING_SET_LEVEL, params).await.map(drop)
    }

    /// Changes where the server may work, and tells it so if it is legacy; modern servers ask each time.
    ///
    /// # Errors
    ///
    /// If the client was built without roots, or there is no connection any more.
    pub async fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        let Some(known) = &self.shared.settings.roots else {
            return Err(Misuse::MissingCapability("roots").into());
        };
        *known.lock().unwrap_or_else(PoisonError::into_inner) = roots.into_iter().collect();
        self.ready().await?;
        if self.revision().is_some_and(|revision| revision.era() == Era::Legacy) {
            self.notify(Method::NOTIFICATIONS_ROOTS_LIST_CHANGED, &NotificationParams::default()).await?;
        }
        Ok(())
    }

    /// The session with a legacy server over HTTP, to be resumed later with [`ClientBuilder::resume`].
    #[must_use]
    pub fn save_session(&self) -> Option<SavedSession> {
        let (revision, server) = (self.revision()?, self.server());
        Some(SavedSession {
            id: self.session_id()?,
            revision,
            capabilities: server.capabilities,
            info: server.info,
            instructions: server.instructions,
            owner: self.shared.look(|core| core.session_owner),
        })
    }

    /// Calls any method with any parameters: for extensions, and what is off the specification.
    pub fn request<R>(&self, method: impl Into<Method>, params: &(impl Serialize + ?Sized)) -> Call<R>
    where
        R: DeserializeOwned + Send + 'static,
    {
        Call::new(self, method.into(), RawObject::new(params))
    }

    /// Tells the server something.
    ///
    /// # Errors
    ///
    /// If there is no connection, or the server's revision does not have the notification.
    pub async fn notify(&self, method: impl Into<Method>, params: &impl Serialize) -> Result<(), Error> {
        self.ready().await?;
        self.shared.with(|core, _| {
            core.kernel.notify(&method.into(), params)?;
            core.wake_driver();
            Ok(())
        })
    }

    /// Hears of changes, for as long as the listener lives.
    ///
    /// # Errors
    ///
    /// If the server refuses to tell of any.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listener, Error> {
        Listener::open(self.clone(), filter).await
    }

    /// Ends the connection in an orderly way, and waits until that is done. Calls that are open end.
    pub async fn close(&self) -> Closed {
        self.shared.with(|core, _| core.close());
        self.closed().await
    }

    /// Waits until there is no connection any more, and says why.
    // S4.52, S4.54
    pub async fn closed(&self) -> Closed {
        let mut place = Place::new(&self.shared, |core| &mut core.watching);
        let waiting = poll_fn(|cx| {
            self.shared.with(|core, _| match &core.phase {
                Phase::Over(why) => Poll::Ready(why.clone()),
                Phase::Connecting | Phase::Ready(_) | Phase::Closing => {
                    place.wait(core, cx.waker());
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
        Call::new(self, method, RawObject::new(&params)).lists(member)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
