//! How a server behaves, besides what it offers.

use std::collections::BTreeMap;

use mcp_types::CacheScope;

use crate::handlers::tool::ArgumentErrors;

/// A list that clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these four")]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
}

pub(crate) struct Settings {
    pub(crate) requires_sessions: bool,
    pub(crate) page_size: usize,
    pub(crate) argument_errors: ArgumentErrors,
    pub(crate) caches: BTreeMap<ListKind, (i64, CacheScope)>,
    #[cfg(feature = "mrtr")]
    pub(crate) asking: crate::asking::rounds::StateSealing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requires_sessions: false,
            page_size: 1000,
            argument_errors: ArgumentErrors::default(),
            caches: BTreeMap::new(),
            #[cfg(feature = "mrtr")]
            asking: crate::asking::rounds::StateSealing::default(),
        }
    }
}
