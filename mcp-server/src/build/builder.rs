//! The builder of a server.

use std::sync::{Arc, Mutex, RwLock};

use mcp_kernel::Limits;
use mcp_kernel::server::{Extension, ServerConfig};
use mcp_types::gate::{self, Revisions};
use mcp_types::{
    CacheScope, ErrorObject, Implementation, Method, PromptsCapability, RawObject, ResourcesCapability, Revision,
    ServerCapabilities, ToolsCapability,
};

use crate::build::error::BuildError;
use crate::build::registry::Registry;
use crate::build::settings::{ListKind, Settings};
use crate::connection::broadcast::Broadcast;
use crate::extensions::Extensions;
use crate::handlers::extension_method;
use crate::handlers::notification::{Notification, NotificationHandler};
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::{Resource, Template};
use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::Endpoint;
use crate::server::{Inner, Server};

/// Describes a server; [`build`](Self::build) checks the description.
///
/// Capabilities follow from what is registered: a server with a tool declares tools. All lists may change while the
/// server runs, and clients are told (see [`Server::update`]).
#[must_use = "a server is there once it is built"]
pub struct ServerBuilder {
    info: Implementation,
    config: ServerConfig,
    settings: Settings,
    registry: Registry,
    declared: Declared,
    endpoint: Endpoint,
    state: Extensions,
    on_notification: Option<NotificationHandler>,
    fault: Option<BuildError>,
}

/// What clients are told although nothing of the kind is registered.
#[derive(Default)]
struct Declared {
    tools: bool,
    prompts: bool,
    resources: bool,
    completions: bool,
    subscriptions: bool,
    no_logging: bool,
}

impl ServerBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        Self {
            config: ServerConfig::new(info.clone(), ServerCapabilities::default()),
            info,
            settings: Settings::default(),
            registry: Registry::default(),
            declared: Declared::default(),
            endpoint: Endpoint::default(),
            state: Extensions::new(),
            on_notification: None,
            fault: None,
        }
    }

    /// Adds a tool.
    pub fn tool(self, tool: Tool) -> Self {
        self.register(|registry| registry.add_tool(tool))
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.register(|registry| registry.add_prompt(prompt))
    }

    /// Adds a resource.
    pub fn resource(self, resource: Resource) -> Self {
        self.register(|registry| registry.add_resource(resource))
    }

    /// Adds resources with a template for their addresses.
    pub fn template(self, template: Template) -> Self {
        self.register(|registry| registry.add_template(template))
    }

    /// The first fault is the one that is told.
    fn register(mut self, add: impl FnOnce(&mut Registry) -> Result<(), BuildError>) -> Self {
        if let Err(fault) = add(&mut self.registry) {
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Declares tools although there is none yet: they come with [`Server::update`].
    pub fn offers_tools(mut self) -> Self {
        self.declared.tools = true;
        self
    }

    /// Declares prompts although there is none yet: they come with [`Server::update`].
    pub fn offers_prompts(mut self) -> Self {
        self.declared.prompts = true;
        self
    }

    /// Declares resources although there is none yet: they come with [`Server::update`].
    pub fn offers_resources(mut self) -> Self {
        self.declared.resources = true;
        self
    }

    /// Declares completions although there is none yet: they come with [`Server::update`].
    pub fn offers_completions(mut self) -> Self {
        self.declared.completions = true;
        self
    }

    /// Lets clients subscribe to resources; tell of a change with [`Server::publish`].
    ///
    /// Modern clients subscribe without a session. Legacy clients that are served without one, which over HTTP is the
    /// default, cannot be told of changes, and are not offered subscriptions.
    pub fn resource_subscriptions(mut self) -> Self {
        self.declared.resources = true;
        self.declared.subscriptions = true;
        self
    }

    /// Does not declare logging: what handlers log for clients is dropped.
    pub fn without_logging(mut self) -> Self {
        self.declared.no_logging = true;
        self
    }

    /// How the server is best used, for the model to read.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// Says more about the server than its name and version: a title, icons, a web page.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// The revisions that are served. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.config.revisions = revisions.into_iter().collect();
        self
    }

    /// Declares that legacy clients need sessions, for example because handlers ask them something while a tool runs, or
    /// keep state in [`ctx.connection()`](RequestContext::connection). Defaults to no.
    ///
    /// This decides nothing: over HTTP, `HttpOptions::sessions` does, whose default is to serve without sessions. A server
    /// that needs sessions and gets none is refused when the service starts. Modern clients never have sessions, and on
    /// stdio a connection is one.
    pub fn requires_sessions(mut self) -> Self {
        self.settings.requires_sessions = true;
        self
    }

    /// How many entries of a list travel at once. Default: 1,000; few clients ask for a second page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.settings.page_size = entries.max(1);
        self
    }

    /// How a client learns that the arguments of a tool are wrong. Default: as the result of the call.
    pub fn argument_errors(mut self, errors: ArgumentErrors) -> Self {
        self.settings.argument_errors = errors;
        self
    }

    /// How long a list stays fresh, in milliseconds, and who may share it. Default: see [`cache`](Self::cache).
    pub fn cache_list(mut self, list: ListKind, ttl_ms: i64, scope: CacheScope) -> Self {
        self.settings.caches.insert(list, (ttl_ms.max(0), scope));
        self
    }

    /// How long anything stays fresh of which nothing else is said, and who may share it. Default: not at all, nobody.
    pub fn cache(mut self, ttl_ms: i64, scope: CacheScope) -> Self {
        (self.config.ttl_ms, self.config.cache_scope) = (ttl_ms.max(0), scope);
        self
    }

    /// What clients may make the server keep, and how many requests of one client run at once.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Serves nothing but `ping` to a legacy client before it has sent `notifications/initialized`.
    // S0.17
    pub fn require_initialized(mut self) -> Self {
        self.config.require_initialized = true;
        self
    }

    /// Does not put the server's name into every answer of the modern era.
    pub fn without_server_info(mut self) -> Self {
        self.config.send_server_info = false;
        self
    }

    /// Serves an extension; [`method`](Self::method) adds what it can be asked for.
    pub fn extension(mut self, id: impl Into<String>, extension: Extension) -> Self {
        let known = self.config.extensions.entry(id.into()).or_default();
        let added = std::mem::replace(known, extension).methods;
        for (method, revisions) in added {
            known.methods.entry(method).or_insert(revisions);
        }
        self
    }

    /// Answers a method that an extension adds, for clients that declared the extension.
    pub fn method<F, Fut>(mut self, extension: impl Into<String>, name: impl Into<Method>, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let name = name.into();
        let is_own = gate::method(&name).is_some_and(|facts| facts.extension.is_none());
        let reason = if is_own {
            Some("the protocol has one of that name")
        } else {
            self.registry.methods.contains_key(&name).then_some("it is there already")
        };
        if let Some(reason) = reason {
            self.fault.get_or_insert_with(|| BuildError::InvalidMethod { name: name.to_string(), reason });
            return self;
        }
        let extension = self.config.extensions.entry(extension.into()).or_default();
        extension.methods.entry(name.clone()).or_insert(Revisions::ALL);
        self.registry.methods.insert(name, extension_method::boxed(handler));
        self
    }

    /// Hears what clients tell without asking for anything: also, once, that the handshake of a legacy client is
    /// complete, from when on it can be asked. The function must not block.
    // S1.13
    pub fn on_notification(mut self, listener: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(listener));
        self
    }

    /// The keys that seal what travels with questions to modern clients and back. Default: a random one, which is good
    /// for a single instance until it ends; instances that serve the same clients must share theirs.
    #[cfg(feature = "mrtr")]
    pub fn key_ring(mut self, ring: mcp_mrtr::KeyRing) -> Self {
        self.settings.asking.ring = Some(ring);
        self
    }

    /// How long a modern client may take to answer questions, in seconds. Default: ten minutes.
    #[cfg(feature = "mrtr")]
    pub fn state_lifetime(mut self, seconds: u64) -> Self {
        self.settings.asking.lifetime = seconds;
        self
    }

    /// Makes each round good for one use. Default: a client may send the same answers again until they expire.
    #[cfg(feature = "mrtr")]
    pub fn ledger(mut self, ledger: impl mcp_mrtr::Ledger + 'static) -> Self {
        self.settings.asking.ledger = Some(Arc::new(ledger));
        self
    }

    /// Sets the clock by which sealed state expires, as the time since the Unix epoch; all instances that share a
    /// [`key_ring`](Self::key_ring) must agree on it. Defaults to the clock of the operating system. On
    /// `wasm32-unknown-unknown` there is none, and modern clients cannot be asked without this setting.
    #[cfg(feature = "mrtr")]
    pub fn unix_clock(mut self, clock: impl Fn() -> std::time::Duration + Send + Sync + 'static) -> Self {
        self.settings.asking.unix_clock = Some(Arc::new(clock));
        self
    }

    /// Sets the cryptographically secure random source for keys and nonces of sealed state. `fill` fills the whole buffer
    /// and returns whether it succeeded. Defaults to the random source of the operating system. On
    /// `wasm32-unknown-unknown` there is none, and modern clients cannot be asked without this setting.
    #[cfg(feature = "mrtr")]
    pub fn random_source(mut self, fill: impl Fn(&mut [u8]) -> bool + Send + Sync + 'static) -> Self {
        self.settings.asking.random_source = Some(Arc::new(fill));
        self
    }

    /// Gives handlers a value of the application, by its type: [`RequestContext::state`].
    pub fn state<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Puts a layer of [tower](https://docs.rs/tower) around every request: to authorise, to measure, to limit. The
    /// layer that is added last sees a request first. Needs the feature `tower`.
    #[cfg(feature = "tower")]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: tower_layer::Layer<Endpoint>,
        L::Service: tower_service::Service<crate::Request, Response = crate::Response, Error: Into<ErrorObject>>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as tower_service::Service<crate::Request>>::Future: Send + 'static,
    {
        self.endpoint = self.endpoint.wrap(&layer);
        self
    }

    /// Checks the description and makes the server.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that is wrong, and says what to do about it.
    pub fn build(self) -> Result<Server, BuildError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.info.name.is_empty() || self.info.version.is_empty() {
            return Err(BuildError::MissingName);
        }
        if self.config.revisions.is_empty() {
            return Err(BuildError::NoRevisions);
        }
        let config = {
            let mut config = ServerConfig::new(self.info, capabilities(&self.registry, &self.declared));
            let given = self.config;
            config.instructions = given.instructions;
            config.revisions = given.revisions;
            config.require_initialized = given.require_initialized;
            config.send_server_info = given.send_server_info;
            (config.ttl_ms, config.cache_scope) = (given.ttl_ms, given.cache_scope);
            config.extensions = given.extensions;
            config.limits = given.limits;
            // Layers see what the kernel answers by itself, too.
            config.consult = self.endpoint.layered.is_some();
            config
        };
        #[cfg_attr(not(feature = "mrtr"), expect(unused_mut, reason = "only questions depend on limits"))]
        let mut settings = self.settings;
        #[cfg(feature = "mrtr")]
        settings.asking.limit_to(config.limits.request_state_bytes);
        Ok(Server::new(Inner {
            config: Arc::new(config),
            settings,
            endpoint: self.endpoint,
            state: self.state,
            on_notification: self.on_notification,
            registry: RwLock::new(Arc::new(self.registry)),
            updating: Mutex::new(()),
            broadcast: Broadcast::default(),
        }))
    }
}

/// What clients are told that the server has.
// TL-1, PR-1, RS-1, Q-1, Y-1
fn capabilities(registry: &Registry, declared: &Declared) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    if declared.tools || !registry.tools.items.is_empty() {
        capabilities.tools = Some(ToolsCapability::default().list_changed(true));
    }
    if declared.prompts || !registry.prompts.items.is_empty() {
        capabilities.prompts = Some(PromptsCapability::default().list_changed(true));
    }
    if declared.resources || !registry.resources.items.is_empty() || !registry.templates.items.is_empty() {
        let mut resources = ResourcesCapability::default().list_changed(true);
        resources.subscribe = declared.subscriptions.then_some(true);
        capabilities.resources = Some(resources);
    }
    if declared.completions || registry.completes() {
        capabilities.completions = Some(RawObject::empty());
    }
    if !declared.no_logging {
        capabilities.logging = Some(RawObject::empty());
    }
    capabilities
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("info", &self.info)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
