//! The configuration of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mcp_types::gate::Revisions;
use mcp_types::{
    CacheScope, Era, Implementation, Method, ProtocolVersion, RawObject, ResultMeta, Revision, ServerCapabilities,
};

use super::known_clients::KnownClients;
use crate::limits::Limits;

/// The configuration that all connections of a server share.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    info: Implementation,
    /// The `_meta` of most results, serialized once.
    info_meta: RawObject,
    /// The capabilities of the server. Requests that need another one get the error "method not found".
    pub capabilities: ServerCapabilities,
    /// Instructions for the model on how to use the server.
    pub instructions: Option<String>,
    /// The revisions that are served. Defaults to all.
    pub revisions: Vec<Revision>,
    /// Whether a legacy client has to send `notifications/initialized` before any request but `ping`. Defaults to
    /// `false`, because some clients never send it.
    pub require_initialized: bool,
    /// Whether modern results contain the server's name and version, in `_meta`. Defaults to `true`.
    pub send_server_info: bool,
    /// The cache TTL of lists and resources that have none of their own. Defaults to 0.
    pub cache_ttl: Duration,
    /// The cache scope of lists and resources that have none of their own. Defaults to private.
    pub cache_scope: CacheScope,
    /// The extensions that are served. Defaults to none.
    pub extensions: BTreeMap<String, ProtocolExtension>,
    /// Whether the application gets the requests that the kernel implements (`server/discover`, `logging/setLevel`,
    /// subscriptions) as [`Event::Request`](super::Event::Request), so that it can refuse them. It accepts them with
    /// [`respond_builtin`](super::Connection::respond_builtin). The kernel always responds to the handshake and to
    /// `ping` itself, because they must not wait for other requests. Clones share it, and it can be changed while connections
    /// are open. Defaults to `false`.
    pub intercept_builtin: Arc<AtomicBool>,
    /// Whether the application gets requests with methods that the protocol does not define, instead of the client the
    /// error "method not found". Methods that the protocol defines still need their revision and capability, and those of
    /// an extension that it knows need the declarations of both peers. Defaults to `false`.
    pub accept_unknown_methods: bool,
    /// Whether the application decides about the handshake of legacy clients, which it gets as
    /// [`Event::Handshake`](super::Event::Handshake). Until then no input is wanted. Defaults to `false`.
    pub intercept_initialize: bool,
    /// Whether the events are emitted that only metrics and traces need: [`Event::Handled`](super::Event::Handled) and
    /// [`Event::QueueLength`](super::Event::QueueLength). Defaults to `false`.
    pub observed: bool,
    /// Whether `tasks.list` is declared only to legacy clients with a principal: the tasks of others cannot be told apart.
    /// Defaults to `false`.
    // B-90
    pub task_list_needs_principal: bool,
    /// The limits of a connection.
    pub limits: Limits,
    pub(super) known_clients: KnownClients,
}

/// An extension that a server serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProtocolExtension {
    /// The settings that the server declares. Defaults to an empty object.
    pub settings: Option<RawObject>,
    /// The revisions in which the server declares it. Defaults to all that have extensions.
    pub revisions: Revisions,
    /// The requests and notifications that it adds for clients, with their revisions.
    pub methods: BTreeMap<Method, Revisions>,
    /// The members that it adds to the filter of `subscriptions/listen`.
    pub filter_members: BTreeSet<String>,
}

impl Default for ProtocolExtension {
    fn default() -> Self {
        Self { settings: None, revisions: Revisions::ALL, methods: BTreeMap::new(), filter_members: BTreeSet::new() }
    }
}

impl ServerConfig {
    /// Creates the configuration of a server with `capabilities` in all revisions.
    #[must_use]
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        // Plain data can always be serialized.
        let info_meta = RawObject::new(&ResultMeta::default().server_info(info.clone())).unwrap_or_default();
        Self {
            info,
            info_meta,
            capabilities,
            instructions: None,
            revisions: Revision::ALL.to_vec(),
            require_initialized: false,
            send_server_info: true,
            cache_ttl: Duration::ZERO,
            cache_scope: CacheScope::PRIVATE,
            extensions: BTreeMap::new(),
            intercept_builtin: Arc::default(),
            accept_unknown_methods: false,
            intercept_initialize: false,
            observed: false,
            task_list_needs_principal: false,
            limits: Limits::default(),
            known_clients: KnownClients::default(),
        }
    }

    /// Returns the name and version of the server.
    #[must_use]
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// The `_meta` of modern results that have none.
    pub(crate) fn info_meta(&self) -> Option<&RawObject> {
        self.send_server_info.then_some(&self.info_meta)
    }

    /// The cache TTL as it is sent.
    pub(crate) fn ttl_ms(&self) -> i64 {
        i64::try_from(self.cache_ttl.as_millis()).unwrap_or(i64::MAX)
    }

    /// The revisions of one era, newest first.
    pub(crate) fn of_era(&self, era: Era) -> impl Iterator<Item = Revision> {
        let mut revisions: Vec<Revision> =
            self.revisions.iter().copied().filter(|revision| revision.era() == era).collect();
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.into_iter()
    }

    /// Whether any revision of an era is served.
    pub(crate) fn serves(&self, era: Era) -> bool {
        self.revisions.iter().any(|revision| revision.era() == era)
    }

    /// The versions of one era, newest first.
    pub(crate) fn versions(&self, era: Era) -> Vec<ProtocolVersion> {
        self.of_era(era).map(ProtocolVersion::from).collect()
    }

    /// The capabilities in a revision, including the extensions.
    // TK-2, TK-36
    pub(crate) fn declared(&self, revision: Revision) -> ServerCapabilities {
        let mut capabilities = self.capabilities.clone();
        if revision.era() == Era::Modern {
            capabilities.tasks = None;
        }
        let extensions = self.extensions.iter().filter(|(_, extension)| extension.revisions.contains(revision));
        for (id, extension) in extensions {
            let settings = extension.settings.clone().unwrap_or_default();
            capabilities.extensions.get_or_insert_default().insert(id.clone(), settings);
        }
        capabilities
    }

    /// Returns whether the server has the capability of a core method.
    // E-13, V-8
    pub(crate) fn offers(&self, method: &Method) -> bool {
        let has = &self.capabilities;
        let resources = has.resources.as_ref();
        match method.as_str() {
            name if name.starts_with("tools/") => has.tools.is_some(),
            name if name.starts_with("prompts/") => has.prompts.is_some(),
            "resources/subscribe" | "resources/unsubscribe" => {
                resources.is_some_and(|resources| resources.subscribe == Some(true))
            }
            name if name.starts_with("resources/") => resources.is_some(),
            "completion/complete" => has.completions.is_some(),
            "logging/setLevel" => has.logging.is_some(),
            "subscriptions/listen" => {
                // L-16
                let changes = |listed: Option<bool>| listed == Some(true);
                has.tools.as_ref().is_some_and(|tools| changes(tools.list_changed))
                    || has.prompts.as_ref().is_some_and(|prompts| changes(prompts.list_changed))
                    || resources.is_some_and(|has| changes(has.list_changed) || changes(has.subscribe))
                    || !self.extensions.is_empty()
            }
            name if name.starts_with("tasks/") => has.tasks.is_some(),
            _ => true,
        }
    }

    /// Returns the extension of a method, if it is served.
    pub(crate) fn extension_of(&self, method: &Method) -> Option<(&str, Revisions)> {
        self.extensions.iter().find_map(|(id, extension)| Some((id.as_str(), *extension.methods.get(method)?)))
    }

    /// Returns whether the server declares an extension.
    pub(crate) fn declares_extension(&self, id: &str) -> bool {
        self.extensions.contains_key(id)
            || self.capabilities.extensions.as_ref().is_some_and(|declared| declared.contains(id))
    }

    /// Returns the extension of a filter member, if it is served.
    pub(crate) fn extension_of_filter(&self, member: &str) -> Option<&str> {
        let served = self.extensions.iter().find(|(_, extension)| extension.filter_members.contains(member));
        served.map(|(id, _)| id.as_str())
    }
}
