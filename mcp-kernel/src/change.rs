//! Changes that a client can be notified of.

use mcp_types::Method;

/// A change of the server's tools, prompts or resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources or of resource templates changed.
    Resources,
    /// The contents of a resource, or of a resource below it, changed. The URI is the one that was subscribed to.
    Resource(String),
}

impl Change {
    /// Returns the method of the notification of this change.
    #[must_use]
    pub fn method(&self) -> Method {
        match self {
            Self::Tools => Method::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            Self::Prompts => Method::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            Self::Resources => Method::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            Self::Resource(_) => Method::NOTIFICATIONS_RESOURCES_UPDATED,
        }
    }
}
