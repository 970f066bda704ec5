//! The server: what it is and what it offers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use mcp_kernel::Change;
use mcp_kernel::observe::Observer;
use mcp_kernel::server::ServerConfig;
use mcp_types::{HeaderParam, Implementation};

use crate::build::builder::{ServerBuilder, needs_scopes_to_subscribe};
use crate::build::error::BuildError;
use crate::build::hooks::Hooks;
use crate::build::registry::{ListChange, Registry};
use crate::build::settings::Settings;
use crate::bus::ChangeBus;
use crate::bus::link::BusLink;
use crate::connection::broadcast::{Broadcast, Notice};
use crate::connection::shared::Shared;
use crate::extensions::Extensions;
use crate::handlers::extract::check_state;
use crate::handlers::subscription::SubscriptionHandler;
use crate::serve::endpoint::Endpoint;
use crate::serve::sent_notification::publish_span;
use crate::visibility::audience::Audience;
use crate::visibility::guard::Guard;
use crate::visibility::predicate::Visible;

/// A server: its description, its tools, prompts and resources, and its settings. It has no state of clients.
///
/// Clones are cheap and share everything. Transports create a [`Connection`](crate::Connection) to it for each client.
///
/// # Examples
///
/// ```
/// use mcp_server::{Server, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet { name: String }
///
/// let greet = tool("greet", async |_ctx, args: Greet| format!("Hello, {}!", args.name));
/// let server = Server::builder("greeter", "1.0").tool(greet.description("Greets a person")).build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Server(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) settings: Settings,
    pub(crate) endpoint: Endpoint,
    pub(crate) state: Extensions,
    pub(crate) on_notification: Option<crate::handlers::notification::NotificationHandler>,
    pub(crate) fallback: Option<crate::handlers::extension_method::ExtensionMethod>,
    pub(crate) on_subscription: Option<SubscriptionHandler>,
    pub(crate) hooks: Hooks,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Serializes updates, so that none is lost.
    pub(crate) updating: Mutex<()>,
    pub(crate) broadcast: Broadcast,
    /// The connection to the other instances, if there is a bus.
    pub(crate) bus: OnceLock<BusLink>,
}

impl Server {
    /// Returns a builder of a server with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version)
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Changes what the server offers, and notifies clients of the lists that changed.
    ///
    /// A client is notified of a list only if an item was added or removed that it can see.
    ///
    /// All changes take effect at once, for requests that arrive afterwards. If the closure returns an error, nothing
    /// changes. The closure must not call this method, which would deadlock.
    ///
    /// # Errors
    ///
    /// Returns the error of the closure, [`BuildError::NotDeclared`] if something was added for which the server declared no
    /// capability, or the error of a handler that needs a state or handles that the server lacks.
    pub fn update(&self, change: impl FnOnce(&mut Registry) -> Result<(), BuildError>) -> Result<(), BuildError> {
        self.update_for(&Audience::all(), change)
    }

    /// Does the same as [`update`](Self::update), but notifies only the clients that belong to an audience.
    ///
    /// The changes take effect for all clients. Use this if others need not know, for example because only one user can see
    /// the difference. It is not necessary for items with a predicate ([`Tool::visible`](crate::Tool::visible)).
    ///
    /// # Errors
    ///
    /// The same as those of [`update`](Self::update).
    pub fn update_for(
        &self,
        audience: &Audience,
        change: impl FnOnce(&mut Registry) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let alone = self.0.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let mut registry = Registry::clone(&self.registry());
        change(&mut registry)?;
        self.check_declared(&registry)?;
        check_state(&registry, &self.0.state)?;
        #[cfg(feature = "mrtr")]
        {
            self.settings().handles.check(&registry)?;
            crate::tasks::runtime::wrap_tools(&mut registry, self.settings().tasks.as_ref())?;
        }
        // Before a client can know of them. It stays, as requests may be in flight.
        if needs_scopes_to_subscribe(&self.0.config, &registry) {
            self.0.config.intercept_builtin.store(true, Ordering::Relaxed);
        }
        let changes = registry.take_changes();
        let mut registry = Arc::new(registry);
        std::mem::swap(&mut *self.0.registry.write().unwrap_or_else(PoisonError::into_inner), &mut registry);
        drop(alone);
        // Dropping the old handlers and publishing run code of the application, so no lock is held here.
        drop(registry);
        for ListChange { list, items } in changes.lists() {
            if let (Some(bus), Some(items)) = (self.bus(), &items) {
                bus.remember(&list, items);
            }
            let names = items.as_ref().map(|items| items.iter().map(|(name, _)| name.clone()).collect());
            let guards = items.map(|items| items.into_iter().map(|(_, guard)| guard).collect());
            let _span = publish_span(self, &list);
            self.0.broadcast.publish(&Notice::new(self, &list, audience, guards));
            if let Some(bus) = self.bus() {
                bus.publish(self, &list, audience, names);
            }
        }
        Ok(())
    }

    fn check_declared(&self, registry: &Registry) -> Result<(), BuildError> {
        let has = &self.0.config.capabilities;
        let missing = |what, remedy| Err(BuildError::NotDeclared { what, remedy });
        if has.tools.is_none() && !registry.tools.items.is_empty() {
            return missing("tools", "offers_tools");
        }
        if has.prompts.is_none() && !registry.prompts.items.is_empty() {
            return missing("prompts", "offers_prompts");
        }
        if has.resources.is_none() && !(registry.resources.items.is_empty() && registry.templates.items.is_empty()) {
            return missing("resources", "offers_resources");
        }
        if has.completions.is_none() && registry.needs_completions() {
            return missing("completions", "offers_completions");
        }
        Ok(())
    }

    /// Notifies all clients that subscribed to this kind of change, with a [bus](crate::bus) also those of other instances. A
    /// client that cannot see a resource
    /// ([`Resource::visible`](crate::Resource::visible)) is not notified of its contents.
    ///
    /// [`update`](Self::update) does this by itself for lists; use this for the contents of resources, and for lists that
    /// depend on something else.
    pub fn publish(&self, change: &Change) {
        self.publish_to(&Audience::all(), change);
    }

    /// Does the same as [`publish`](Self::publish), but notifies only the clients that belong to an audience.
    pub fn publish_to(&self, audience: &Audience, change: &Change) {
        let _span = publish_span(self, change);
        self.0.broadcast.publish(&Notice::new(self, change, audience, self.guards_of(change)));
        if let Some(bus) = self.bus() {
            bus.publish(self, change, audience, None);
        }
    }

    /// The items that a viewer has to see to be notified of a change; `None` if all viewers may be notified.
    pub(crate) fn guards_of(&self, change: &Change) -> Option<Vec<Guard>> {
        if let Change::Resource(uri) = change { self.registry().guards_of(uri) } else { None }
    }

    /// Returns the name, version and further description of the server.
    #[must_use]
    pub fn info(&self) -> &Implementation {
        self.0.config.info()
    }

    /// Returns whether legacy clients need sessions: see [`ServerBuilder::requires_sessions`].
    #[must_use]
    pub fn requires_sessions(&self) -> bool {
        self.0.settings.requires_sessions
    }

    /// Returns a value that was added with [`ServerBuilder::state`], by its type.
    #[must_use]
    pub fn state<T: std::any::Any + Send + Sync>(&self) -> Option<&T> {
        self.0.state.get()
    }

    pub(crate) fn shared_state<T: std::any::Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.state.share()
    }

    /// Returns the parameters of a tool that clients repeat in HTTP headers, if it has any. There are none for tools that
    /// some clients cannot see, which are checked later: see [`ParamClaims`](crate::ParamClaims).
    // H-60
    #[must_use]
    pub fn header_params(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        let params = registry.header_params.get(tool)?;
        registry.tools.get(tool).filter(|tool| tool.predicate().is_none())?;
        Some(Arc::clone(params))
    }

    /// Returns whether the transport has to attach [`ParamClaims`](crate::ParamClaims) to requests: there may be tools with
    /// parameters in HTTP headers that some clients cannot see.
    #[must_use]
    pub fn defers_header_params(&self) -> bool {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        registry.tools.is_restricted() && !registry.header_params.is_empty()
    }

    /// Returns the configuration that connections share.
    #[must_use]
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.0.config
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.0.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    pub(crate) fn broadcast(&self) -> &Broadcast {
        &self.0.broadcast
    }

    pub(crate) fn fallback(&self) -> Option<&crate::handlers::extension_method::ExtensionMethod> {
        self.0.fallback.as_ref()
    }

    pub(crate) fn bus(&self) -> Option<&BusLink> {
        self.0.bus.get()
    }

    pub(crate) fn join_bus(&self, bus: &dyn ChangeBus) {
        self.0.bus.get_or_init(|| BusLink::join(bus, WeakServer(Arc::downgrade(&self.0))));
    }

    /// Returns a pointer to the server that does not keep it alive, for what the server itself keeps alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    /// Adds a connection to those that changes are published to. It has left the server that it belonged to before.
    pub(crate) fn join(&self, connection: &Arc<Shared>) {
        connection.lock().server = Some(self.downgrade());
        self.0.broadcast.join(connection);
    }

    pub(crate) fn on_subscription(&self) -> Option<&SubscriptionHandler> {
        self.0.on_subscription.as_ref()
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    /// Returns what receives the metrics of the server, for transports: see [`ServerBuilder::observer`].
    #[must_use]
    pub fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.0.hooks.observer.as_ref()
    }

    /// Returns the names of the tools that the server has now, with those that some clients may not see.
    #[must_use]
    pub fn tool_names(&self) -> ToolNames {
        ToolNames(self.registry())
    }

    /// Returns whether there is a tool with this name, which some clients may not see.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.0.registry.read().unwrap_or_else(PoisonError::into_inner).tools.get(name).is_some()
    }

    pub(crate) fn has_prompt(&self, name: &str) -> bool {
        self.0.registry.read().unwrap_or_else(PoisonError::into_inner).prompts.get(name).is_some()
    }

    /// Whether both are clones of one server.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn on_notification(&self) -> Option<&crate::handlers::notification::NotificationHandler> {
        self.0.on_notification.as_ref()
    }
}

/// The names of the tools of a [`Server`] at one time; created by [`Server::tool_names`].
#[derive(Clone)]
pub struct ToolNames(Arc<Registry>);

impl ToolNames {
    /// Returns the names, in the order in which the tools were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.tools.items.iter().map(|tool| tool.name())
    }
}

impl std::fmt::Debug for ToolNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A [`Server`] that is not kept alive; created by [`Server::downgrade`].
#[derive(Clone)]
pub struct WeakServer(Weak<Inner>);

impl WeakServer {
    /// Returns the server, unless it was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }

    pub(crate) fn is(&self, server: &Server) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&server.0))
    }
}

impl std::fmt::Debug for WeakServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeakServer").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", self.info()).field("registry", &self.registry()).finish_non_exhaustive()
    }
}
