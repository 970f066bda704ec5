//! Settings of a server beside those that the kernel has.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_types::{CacheScope, Method};
use tracing::Level;

use crate::auth::info::AuthInfo;
use crate::auth::required_scopes::{RequiredScopes, ScopePolicy};
use crate::handlers::error_text::ErrorPolicy;
use crate::handlers::tool::ArgumentErrors;
use crate::visibility::predicate::Predicate;

/// A list that clients can request, for [`ServerBuilder::cache_list`](crate::ServerBuilder::cache_list).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these four")]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

pub(crate) struct Settings {
    pub(crate) requires_sessions: bool,
    pub(crate) page_size: usize,
    /// The level of the event at the end of each handler.
    pub(crate) request_log_level: Level,
    pub(crate) argument_errors: ArgumentErrors,
    /// What is done with errors of handlers, unless it is the default.
    pub(crate) error_policy: Option<ErrorPolicy>,
    pub(crate) caches: BTreeMap<ListKind, (i64, CacheScope)>,
    /// The scopes that requests of a method need.
    pub(crate) method_scopes: BTreeMap<Method, RequiredScopes>,
    /// What decides whether a token has a scope, unless it is the default.
    pub(crate) scope_policy: Option<ScopePolicy>,
    /// The audiences that all instances know by their names.
    pub(crate) audiences: BTreeMap<Box<str>, Predicate>,
    #[cfg(feature = "mrtr")]
    pub(crate) asking: crate::asking::rounds::StateSealing,
    #[cfg(feature = "mrtr")]
    pub(crate) handles: crate::handles::registry::HandleKinds,
    /// What runs tasks.
    #[cfg(feature = "mrtr")]
    pub(crate) tasks: Option<std::sync::Arc<dyn crate::tasks::runtime::TaskRuntime>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requires_sessions: false,
            page_size: 1000,
            request_log_level: Level::DEBUG,
            argument_errors: ArgumentErrors::default(),
            error_policy: None,
            caches: BTreeMap::new(),
            method_scopes: BTreeMap::new(),
            scope_policy: None,
            audiences: BTreeMap::new(),
            #[cfg(feature = "mrtr")]
            asking: crate::asking::rounds::StateSealing::default(),
            #[cfg(feature = "mrtr")]
            handles: crate::handles::registry::HandleKinds::default(),
            #[cfg(feature = "mrtr")]
            tasks: None,
        }
    }
}

impl Settings {
    pub(crate) fn audience(&self, name: &str) -> Option<&Predicate> {
        self.audiences.get(name)
    }

    /// Whether a request with a token, or without one, has a scope.
    pub(crate) fn admits_scope(&self, auth: Option<&AuthInfo>, scope: &str) -> bool {
        match &self.scope_policy {
            Some(policy) => policy(auth, scope),
            None => auth.is_some_and(|auth| auth.has_scope(scope)),
        }
    }
}

/// A cache TTL as the protocol has it.
pub(crate) fn milliseconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}
