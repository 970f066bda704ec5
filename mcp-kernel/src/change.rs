//! What a client may want to hear of.

/// Something changed on the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of resource templates.
    Resources,
    /// The contents of a resource. The address is the one that was subscribed to; what changed may lie below it.
    Resource(String),
}
