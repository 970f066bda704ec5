//! Changes that a client can be notified of.

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
