//! What a server is, for all its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_types::gate::Revisions;
use mcp_types::{
    CacheScope, Era, Implementation, Method, ProtocolVersion, RawObject, ResultMeta, Revision, ServerCapabilities,
};

use crate::limits::Limits;

/// The immutable facts about a server, shared by all its connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    info: Implementation,
    /// The metadata of most answers, written once.
    info_meta: RawObject,
    /// What the server offers; a method behind a capability that is not here does not exist.
    pub capabilities: ServerCapabilities,
    /// How the server is best used, for the model to read.
    pub instructions: Option<String>,
    /// The revisions that are served. Default: all.
    pub revisions: Vec<Revision>,
    /// Whether a legacy client has to send `notifications/initialized` before anything but `ping` is served. Default:
    /// no, because some clients never send it.
    pub require_initialized: bool,
    /// Whether results carry the server's name and version. Default: yes.
    pub send_server_info: bool,
    /// The cache TTL of lists and resources that have none of their own. Defaults to 0.
    pub cache_ttl: Duration,
    /// The cache scope of lists and resources that have none of their own. Defaults to private.
    pub cache_scope: CacheScope,
    /// The extensions that are served; none is without being named here.
    pub extensions: BTreeMap<String, Extension>,
    /// Whether the application hears of requests that the kernel can answer by itself, before it does, so that it may
    /// refuse them: `server/discover`, `logging/setLevel`, subscriptions. They come as
    /// [`Event::Request`](super::Event::Request) like all others, to be let pass with
    /// [`respond_builtin`](super::Connection::respond_builtin). The handshake and `ping` never do: they are about the connection, and
    /// must not wait behind work. Default: no.
    pub intercept_builtin: bool,
    /// What a peer may make us keep.
    pub limits: Limits,
}

/// An extension that a server serves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Extension {
    /// What the server declares about it; an empty object says no more than that it is there.
    pub settings: Option<RawObject>,
    /// The requests and notifications that it adds for clients, with the revisions in which they exist.
    pub methods: BTreeMap<Method, Revisions>,
    /// The members that it adds to the filter of a listen request.
    pub filter_members: BTreeSet<String>,
}

impl ServerConfig {
    /// Describes a server that offers `capabilities` in all revisions.
    #[must_use]
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        // Plain data can always be written.
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
            intercept_builtin: false,
            limits: Limits::default(),
        }
    }

    /// Who the server is.
    #[must_use]
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// The metadata that a modern answer has if its handler gives it none.
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

    /// The versions of one era as a peer is told them, newest first.
    pub(crate) fn versions(&self, era: Era) -> Vec<ProtocolVersion> {
        self.of_era(era).map(ProtocolVersion::from).collect()
    }

    /// The capabilities with the extensions that are served.
    pub(crate) fn declared(&self) -> ServerCapabilities {
        let mut capabilities = self.capabilities.clone();
        for (id, extension) in &self.extensions {
            let settings = extension.settings.clone().unwrap_or_default();
            capabilities.extensions.get_or_insert_default().insert(id.clone(), settings);
        }
        capabilities
    }

    /// Whether the server offers what a core method is about.
    // E-13, V-8
    pub(crate) fn offers(&self, method: &Method) -> bool {
        let has = &self.capabilities;
        let (name, resources) = (method.as_str(), has.resources.as_ref());
        if name.starts_with("tools/") {
            has.tools.is_some()
        } else if name.starts_with("prompts/") {
            has.prompts.is_some()
        } else if *method == Method::RESOURCES_SUBSCRIBE || *method == Method::RESOURCES_UNSUBSCRIBE {
            resources.is_some_and(|resources| resources.subscribe == Some(true))
        } else if name.starts_with("resources/") {
            resources.is_some()
        } else if *method == Method::COMPLETION_COMPLETE {
            has.completions.is_some()
        } else if *method == Method::LOGGING_SET_LEVEL {
            has.logging.is_some()
        } else if *method == Method::SUBSCRIPTIONS_LISTEN {
            // L-16
            let changes = |listed: Option<bool>| listed == Some(true);
            has.tools.as_ref().is_some_and(|tools| changes(tools.list_changed))
                || has.prompts.as_ref().is_some_and(|prompts| changes(prompts.list_changed))
                || resources.is_some_and(|resources| changes(resources.list_changed) || changes(resources.subscribe))
                || !self.extensions.is_empty()
        } else if name.starts_with("tasks/") {
            has.tasks.is_some()
        } else {
            true
        }
    }

    /// The extension that a method belongs to, if it is served.
    pub(crate) fn extension_of(&self, method: &Method) -> Option<(&str, Revisions)> {
        self.extensions.iter().find_map(|(id, extension)| Some((id.as_str(), *extension.methods.get(method)?)))
    }

    /// The extension that a member of a listen filter belongs to, if it is served.
    pub(crate) fn extension_of_filter(&self, member: &str) -> Option<&str> {
        let served = self.extensions.iter().find(|(_, extension)| extension.filter_members.contains(member));
        served.map(|(id, _)| id.as_str())
    }
}
