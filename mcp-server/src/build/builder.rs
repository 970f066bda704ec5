//! The builder of a server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use mcp_kernel::Limits;
use mcp_kernel::server::{ProtocolExtension, ServerConfig};
use mcp_types::gate::{self, Revisions};
use mcp_types::{CacheScope, ErrorObject, Implementation, Method, RawObject, Revision, ServerCapabilities};

use crate::build::capabilities::{Declared, capabilities};
use crate::build::error::BuildError;
use crate::build::hooks::Hooks;
use crate::build::registry::Registry;
use crate::build::settings::{ListKind, Settings, milliseconds};
use crate::bus::ChangeBus;
use crate::connection::broadcast::Broadcast;
use crate::extensions::Extensions;
use crate::handlers::error::HandlerError;
use crate::handlers::error_text::ErrorText;
use crate::handlers::extension_method::{self, ExtensionMethod};
use crate::handlers::extract::check_state;
use crate::handlers::notification::{Notification, NotificationHandler};
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::subscription::{SubscriptionEvent, SubscriptionHandler};
use crate::handlers::template::Template;
use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::middleware::Middleware;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::Endpoint;
use crate::server::{Inner, Server};

/// Builds a [`Server`]; created by [`Server::builder`].
///
/// Capabilities follow from what is registered: a server with a tool declares `tools`. All lists may change while the
/// server runs, and clients are notified (see [`Server::update`]).
///
/// # Examples
///
/// ```
/// use mcp_server::{NoArguments, Server, text_resource, tool};
///
/// let server = Server::builder("clock", "1.0")
///     .instructions("Call `now` instead of guessing the time.")
///     .tool(tool("now", async |_, _: NoArguments| "noon").description("Returns the time"))
///     .resource(text_resource("clock://about", "about", "A clock that has stopped"))
///     .build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[must_use = "call `build` to create the server"]
pub struct ServerBuilder {
    info: Implementation,
    config: ServerConfig,
    pub(crate) settings: Settings,
    registry: Registry,
    declared: Declared,
    endpoint: Endpoint,
    state: Extensions,
    on_notification: Option<NotificationHandler>,
    fallback: Option<ExtensionMethod>,
    on_subscription: Option<SubscriptionHandler>,
    pub(super) hooks: Hooks,
    pub(super) bus: Option<Arc<dyn ChangeBus>>,
    pub(super) fault: Option<BuildError>,
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
            fallback: None,
            on_subscription: None,
            hooks: Hooks::default(),
            bus: None,
            fault: None,
        }
    }

    /// Adds a tool. Errors are reported by [`build`](Self::build).
    pub fn tool(self, tool: Tool) -> Self {
        self.register(|registry| registry.add_tool(tool))
    }

    /// Adds a prompt. Errors are reported by [`build`](Self::build).
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.register(|registry| registry.add_prompt(prompt))
    }

    /// Adds a resource. Errors are reported by [`build`](Self::build).
    pub fn resource(self, resource: Resource) -> Self {
        self.register(|registry| registry.add_resource(resource))
    }

    /// Adds a resource template. Errors are reported by [`build`](Self::build).
    pub fn template(self, template: Template) -> Self {
        self.register(|registry| registry.add_template(template))
    }

    /// Adds several tools. Errors are reported by [`build`](Self::build).
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Adds several prompts. Errors are reported by [`build`](Self::build).
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        prompts.into_iter().fold(self, Self::prompt)
    }

    /// Adds several resources. Errors are reported by [`build`](Self::build).
    pub fn resources(self, resources: impl IntoIterator<Item = Resource>) -> Self {
        resources.into_iter().fold(self, Self::resource)
    }

    /// Adds several resource templates. Errors are reported by [`build`](Self::build).
    pub fn templates(self, templates: impl IntoIterator<Item = Template>) -> Self {
        templates.into_iter().fold(self, Self::template)
    }

    /// Adds everything of a registry that was built apart. Errors are reported by [`build`](Self::build).
    pub fn merge(self, registry: Registry) -> Self {
        self.register(|own| own.add_registry(registry))
    }

    /// Adds everything of a registry, with a prefix before the names of its tools and prompts, such as `files_`. Errors are
    /// reported by [`build`](Self::build).
    pub fn mount(self, prefix: &str, registry: Registry) -> Self {
        self.merge(registry.prefix(prefix))
    }

    /// Keeps the first error for `build` to return.
    fn register(mut self, add: impl FnOnce(&mut Registry) -> Result<(), BuildError>) -> Self {
        if let Err(fault) = add(&mut self.registry) {
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Declares the capability `tools` even if no tool is registered yet, so that [`Server::update`] can add some later.
    pub fn offers_tools(mut self) -> Self {
        self.declared.tools = true;
        self
    }

    /// Declares the capability `prompts` even if no prompt is registered yet, so that [`Server::update`] can add some later.
    pub fn offers_prompts(mut self) -> Self {
        self.declared.prompts = true;
        self
    }

    /// Declares the capability `resources` even if no resource is registered yet, so that [`Server::update`] can add some
    /// later.
    pub fn offers_resources(mut self) -> Self {
        self.declared.resources = true;
        self
    }

    /// Declares the capability `completions` even if no completer is registered yet, so that [`Server::update`] can add
    /// some later.
    pub fn offers_completions(mut self) -> Self {
        self.declared.completions = true;
        self
    }

    /// Lets clients subscribe to resources. Notify them of changes with [`Server::publish`].
    ///
    /// Modern clients subscribe without a session. Legacy clients without a session, which is the default over HTTP,
    /// cannot receive notifications of changes and are not offered subscriptions.
    pub fn resource_subscriptions(mut self) -> Self {
        self.declared.resources = true;
        self.declared.subscriptions = true;
        self
    }

    /// Does not declare the capability `logging`; log messages of handlers are dropped.
    pub fn without_logging(mut self) -> Self {
        self.declared.no_logging = true;
        self
    }

    /// Sets the instructions: a text for the model on how to use the server.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// Replaces the name and version by a description that can also have a title, icons and a web page.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Sets the protocol revisions that are served. Defaults to all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.config.revisions = revisions.into_iter().collect();
        self
    }

    /// Declares that legacy clients need sessions, for example because handlers send them requests while a tool runs, or
    /// keep state in [`ConnectionHandle::scratch`](crate::ConnectionHandle::scratch). Defaults to no.
    ///
    /// This does not enable sessions: over HTTP, `HttpOptions::sessions` does, which is off by default. A service whose
    /// server requires sessions and whose options do not enable them fails to start. Modern clients never have sessions,
    /// and on stdio each connection is one.
    pub fn requires_sessions(mut self) -> Self {
        self.settings.requires_sessions = true;
        self
    }

    /// Sets the maximum number of entries in a page of a list. Defaults to 1,000, as few clients request a second page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.settings.page_size = entries.max(1);
        self
    }

    /// Sets how invalid arguments of a tool are reported. Defaults to [`ArgumentErrors::AsResult`].
    pub fn argument_errors(mut self, errors: ArgumentErrors) -> Self {
        self.settings.argument_errors = errors;
        self
    }

    /// Sets a function that is called with each error of a handler of a tool, prompt or resource, before the client gets to
    /// know of it. It logs the error as the application wants, and returns the text for the client: the text of a tool's
    /// result with `isError`, which the model reads, or the message of an internal error.
    ///
    /// It is not called for protocol errors (see [`IntoToolResult`](crate::IntoToolResult)), which clients get as they are,
    /// nor for requests that were cancelled.
    ///
    /// By default the error is logged with all its causes by [`HandlerError::log`], and the client gets its own text without
    /// the causes ([`ErrorText::shown`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::{ErrorText, Server};
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("{0}")]
    /// struct ForTheUser(String);
    ///
    /// // The log has everything; clients see only the errors that are meant for them.
    /// let server = Server::builder("bank", "1.0").on_handler_error(|ctx, error| {
    ///     error.log(ctx);
    ///     match error.find::<ForTheUser>() {
    ///         Some(error) => ErrorText::new(error.to_string()),
    ///         None => ErrorText::masked(),
    ///     }
    /// });
    /// ```
    pub fn on_handler_error(
        mut self,
        policy: impl Fn(&RequestContext, &HandlerError) -> ErrorText + Send + Sync + 'static,
    ) -> Self {
        self.settings.error_policy = Some(Arc::new(policy));
        self
    }

    /// Sets the cache TTL and scope of a list. Defaults to those of [`cache`](Self::cache).
    pub fn cache_list(mut self, list: ListKind, ttl: Duration, scope: CacheScope) -> Self {
        self.settings.caches.insert(list, (milliseconds(ttl), scope));
        self
    }

    /// Sets the default cache TTL and scope, for results that have none of their own. Defaults to no caching.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        (self.config.cache_ttl, self.config.cache_scope) = (ttl, scope);
        self
    }

    /// Sets the limits per connection: sizes of what clients can make the server keep, and concurrent requests.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Refuses all requests of a legacy client but `ping` until it has sent `notifications/initialized`.
    // S0.17
    pub fn require_initialized(mut self) -> Self {
        self.config.require_initialized = true;
        self
    }

    /// Omits the server's name and version from the results for modern clients.
    pub fn without_server_info(mut self) -> Self {
        self.config.send_server_info = false;
        self
    }

    /// Declares an extension of the protocol; [`method`](Self::method) adds its methods.
    pub fn extension(mut self, id: impl Into<String>, extension: ProtocolExtension) -> Self {
        let known = self.config.extensions.entry(id.into()).or_default();
        let added = std::mem::replace(known, extension).methods;
        for (method, revisions) in added {
            known.methods.entry(method).or_insert(revisions);
        }
        self
    }

    /// Adds a method of an extension, for clients that declared the extension.
    pub fn method<F, Fut>(mut self, extension: impl Into<String>, name: impl Into<Method>, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let name = name.into();
        let is_own = gate::method(&name).is_some_and(|facts| facts.extension.is_none());
        let reason = if is_own {
            Some("the protocol defines a method of that name")
        } else {
            self.registry.methods.contains_key(&name).then_some("it is registered already")
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

    /// Sets the handler of requests for which the server has no other one: methods that the protocol does not define, and
    /// methods that it defines, that the server declares with [`capabilities`](Self::capabilities), and that this crate does
    /// not implement, such as those of tasks. For gateways, which forward them. The handler gets the parameters with their
    /// `_meta`, and returns the result as it is.
    ///
    /// Methods that the client's revision does not have, or whose capability the server did not declare, are still refused
    /// with the error "method not found" (-32601). Without a fallback, so are all unknown methods. Unknown notifications
    /// are for [`on_notification`](Self::on_notification).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::types::{ErrorObject, RawObject};
    /// use mcp_server::{RequestContext, Server};
    ///
    /// async fn forward(ctx: RequestContext, params: RawObject) -> Result<RawObject, ErrorObject> {
    ///     // Send `ctx.method()` with `params` to another server, and return its result.
    /// #   let _ = ctx;
    /// #   Ok(params)
    /// }
    ///
    /// let server = Server::builder("gateway", "1.0").fallback(forward).build()?;
    /// # Ok::<(), mcp_server::BuildError>(())
    /// ```
    pub fn fallback<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        self.fallback = Some(extension_method::boxed(handler));
        self
    }

    /// Sets the capabilities of the server as a whole, instead of deriving them from what is registered: for gateways that
    /// mirror another server, with its `experimental` capabilities, extensions, tasks and `listChanged` flags.
    ///
    /// Only the extensions of [`extension`](Self::extension) and [`method`](Self::method), and what
    /// [`experimental`](Self::experimental) adds, are declared as well. [`build`](Self::build) returns an error if the server
    /// has something that the capabilities do not declare, such as a tool without `tools`.
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.declared.given = Some(Box::new(capabilities));
        self
    }

    /// Declares an experimental capability, with its settings.
    pub fn experimental(mut self, name: impl Into<String>, settings: impl Into<RawObject>) -> Self {
        self.declared.experimental.insert(name, settings.into());
        self
    }

    /// Sets a function that is called with each notification from clients, `notifications/initialized` of legacy clients
    /// included, after which they can receive requests. The function must not block.
    // S1.13
    pub fn on_notification(mut self, handler: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    /// Sets a function that is called when a client subscribes to changes, and when such a subscription ends, also because
    /// the client disconnects. A gateway uses it to subscribe at another server as long as a client needs it. The function
    /// must not block.
    ///
    /// Subscriptions of a legacy session that is resumed in another process begin there as well.
    pub fn on_subscription(mut self, handler: impl Fn(&SubscriptionEvent<'_>) + Send + Sync + 'static) -> Self {
        self.on_subscription = Some(Arc::new(handler));
        self
    }

    /// Sets the keys that encrypt the `requestState` of multi round-trip requests, and [sealed](crate::Handles::sealed)
    /// handles. Defaults to a random key, which only this process knows; instances that serve the same clients must share
    /// their keys.
    #[cfg(feature = "mrtr")]
    pub fn key_ring(mut self, ring: mcp_mrtr::KeyRing) -> Self {
        self.settings.asking.ring = Some(ring);
        self
    }

    /// Sets how long a `requestState` is valid, which is the time that a modern client has to retry. Fractions of a
    /// second are ignored. Defaults to 10 minutes.
    #[cfg(feature = "mrtr")]
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.asking.lifetime = lifetime;
        self
    }

    /// Sets a replay guard, which makes each `requestState` valid for one retry. By default a client may retry with the same state
    /// until it expires.
    #[cfg(feature = "mrtr")]
    pub fn replay_guard(mut self, guard: impl mcp_mrtr::ReplayGuard + 'static) -> Self {
        self.settings.asking.replay_guard = Some(Arc::new(guard));
        self
    }

    /// Sets the clock by which sealed state and handles expire, as the time since the Unix epoch; all instances that share a
    /// [`key_ring`](Self::key_ring) must agree on it. Defaults to the clock of the operating system. On
    /// `wasm32-unknown-unknown` there is none, and without this setting no requests can be sent to modern clients, and no
    /// handles minted.
    #[cfg(feature = "mrtr")]
    pub fn unix_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.settings.asking.unix_clock = Some(Arc::new(clock));
        self
    }

    /// Sets the cryptographically secure random source for keys and nonces of sealed state, and for handles. `fill`
    /// fills the whole buffer and returns whether it succeeded. Defaults to the random source of the operating system. On
    /// `wasm32-unknown-unknown` there is none, and without this setting no requests can be sent to modern clients, and no
    /// handles minted.
    #[cfg(feature = "mrtr")]
    pub fn random_source(mut self, fill: impl Fn(&mut [u8]) -> bool + Send + Sync + 'static) -> Self {
        self.settings.asking.random_source = Some(Arc::new(fill));
        self
    }

    /// Adds the handles for values of a type, which tools take and return as [`Handle`](crate::Handle)s. Errors are
    /// reported by [`build`](Self::build).
    #[cfg(feature = "mrtr")]
    pub fn handles<T: crate::HandleValue>(mut self, handles: crate::Handles<T>) -> Self {
        if let Err(fault) = self.settings.handles.insert(handles) {
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Adds a value of the application, which handlers get by its type: with [`RequestContext::state`], or as a parameter
    /// [`State`](crate::extract::State) of their function.
    pub fn state<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Adds [middleware](crate::middleware) around all requests, for example to authorise, to measure or to limit them:
    /// [`middleware::from_fn`](crate::middleware::from_fn), or a [tower](https://docs.rs/tower) layer with the feature `tower`.
    /// What is added last sees a request first.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        self.endpoint = middleware.wrap(self.endpoint);
        self
    }

    /// Creates the server.
    ///
    /// # Errors
    ///
    /// Returns the first error of what was added or set: duplicate or invalid names, schemas, URIs and templates, a missing
    /// name or version, no revision, or a state or handles that a handler needs and that were not added.
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
        check_state(&self.registry, &self.state)?;
        #[cfg(feature = "mrtr")]
        self.settings.handles.check(&self.registry)?;
        let mut registry = self.registry;
        #[cfg(feature = "mrtr")]
        crate::tasks::runtime::wrap_tools(&mut registry, self.settings.tasks.as_ref())?;
        let config = {
            let mut config = ServerConfig::new(self.info, capabilities(&registry, self.declared)?);
            let given = self.config;
            config.instructions = given.instructions;
            config.revisions = given.revisions;
            config.require_initialized = given.require_initialized;
            config.send_server_info = given.send_server_info;
            (config.cache_ttl, config.cache_scope) = (given.cache_ttl, given.cache_scope);
            config.extensions = given.extensions;
            config.limits = given.limits;
            config.accept_unknown_methods = self.fallback.is_some();
            // Layers also see the requests to which the kernel responds by itself.
            let intercepts = self.endpoint.call.is_some()
                || !self.settings.method_scopes.is_empty()
                || needs_scopes_to_subscribe(&config, &registry);
            config.intercept_builtin.store(intercepts, Ordering::Relaxed);
            config.intercept_initialize = self.hooks.intercept_initialize();
            config.observed = self.hooks.observer.is_some() || self.hooks.trace_parent.is_some();
            #[cfg(feature = "mrtr")]
            crate::tasks::methods::declare(&mut config, &mut registry, self.settings.tasks.as_ref());
            config
        };
        #[cfg_attr(not(feature = "mrtr"), expect(unused_mut, reason = "only the sealing of states depends on limits"))]
        let mut settings = self.settings;
        #[cfg(feature = "mrtr")]
        settings.asking.limit_to(config.limits.max_request_state_bytes);
        drop(registry.take_changes());
        let server = Server::new(Inner {
            config: Arc::new(config),
            settings,
            endpoint: self.endpoint,
            state: self.state,
            on_notification: self.on_notification,
            fallback: self.fallback,
            on_subscription: self.on_subscription,
            hooks: self.hooks,
            registry: RwLock::new(Arc::new(registry)),
            updating: Mutex::new(()),
            broadcast: Broadcast::default(),
            bus: OnceLock::new(),
        });
        if let Some(bus) = self.bus {
            server.join_bus(&*bus);
        }
        #[cfg(feature = "mrtr")]
        if let Some(runtime) = &server.settings().tasks {
            runtime.attach(server.downgrade());
        }
        Ok(server)
    }
}

/// Whether clients need scopes to subscribe to a resource, so that the kernel cannot respond by itself.
pub(crate) fn needs_scopes_to_subscribe(config: &ServerConfig, registry: &Registry) -> bool {
    let has_subscriptions = config.capabilities.resources.as_ref().is_some_and(|it| it.subscribe == Some(true));
    has_subscriptions && registry.has_resource_scopes()
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("info", &self.info)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
