//! What a server may need of a client.

use mcp_types::ClientCapabilities;

/// A capability that a server may need of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientCapability {
    /// Questions by form. A bare `elicitation` means this one (EL-1).
    ElicitationForm,
    /// Questions by web page.
    ElicitationUrl,
    /// Use of the client's model.
    Sampling,
    /// Use of the client's model with tools (SA-2).
    SamplingTools,
    /// Use of the client's model with context of servers (SA-4).
    SamplingContext,
    /// The list of roots.
    Roots,
}

impl ClientCapability {
    /// The name under which a client declares it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::SamplingContext => "sampling.context",
            Self::Roots => "roots",
        }
    }

    pub(crate) fn is_declared(self, capabilities: &ClientCapabilities) -> bool {
        let elicitation = capabilities.elicitation.as_ref();
        let sampling = capabilities.sampling.as_ref();
        match self {
            Self::ElicitationForm => {
                elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
            }
            Self::ElicitationUrl => elicitation.is_some_and(|elicitation| elicitation.url.is_some()),
            Self::Sampling => sampling.is_some(),
            Self::SamplingTools => sampling.is_some_and(|sampling| sampling.tools.is_some()),
            Self::SamplingContext => sampling.is_some_and(|sampling| sampling.context.is_some()),
            Self::Roots => capabilities.roots.is_some(),
        }
    }
}
