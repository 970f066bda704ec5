//! How a server behaves, besides what it offers.

use std::collections::BTreeMap;

use mcp_types::CacheScope;

use crate::tool::ArgumentErrors;

/// A list that clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these four")]
pub enum List {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
}

/// Whether a server keeps sessions for legacy clients over HTTP (S0.4). On stdio there is always one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it does or it does not")]
pub enum Mode {
    /// It may.
    #[default]
    Stateful,
    /// It never does: every request stands alone, and what needs a session is refused when the server is built.
    Stateless,
}

pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) page_size: usize,
    pub(crate) argument_errors: ArgumentErrors,
    pub(crate) caches: BTreeMap<List, (i64, CacheScope)>,
    #[cfg(feature = "mrtr")]
    pub(crate) asking: crate::rounds::Asking,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            page_size: 1000,
            argument_errors: ArgumentErrors::default(),
            caches: BTreeMap::new(),
            #[cfg(feature = "mrtr")]
            asking: crate::rounds::Asking::default(),
        }
    }
}
