//! Client capabilities that a server may require.

use crate::{
    ClientCapabilities, ElicitRequestParams, ElicitationCapability, InputRequest, RawObject, RootsCapability,
    SamplingCapability,
};

/// A client capability that a server may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientCapability {
    /// Elicitation in form mode, which an empty `elicitation` object declares.
    ElicitationForm,
    /// Elicitation in URL mode.
    ElicitationUrl,
    /// Sampling.
    Sampling,
    /// Sampling with `tools` and `toolChoice`.
    SamplingTools,
    /// Sampling with `includeContext`.
    SamplingContext,
    /// Roots.
    Roots,
}

impl ClientCapability {
    /// Returns the path of the capability in [`ClientCapabilities`].
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

    /// Returns whether `capabilities` declare this capability.
    #[must_use]
    pub fn is_declared(self, capabilities: &ClientCapabilities) -> bool {
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

    /// Adds this capability to `capabilities`.
    pub fn declare(self, capabilities: &mut ClientCapabilities) {
        let elicitation = || ElicitationCapability::default();
        let sampling = || SamplingCapability::default();
        let declared = RawObject::empty();
        match self {
            Self::ElicitationForm => capabilities.elicitation.get_or_insert_with(elicitation).form = Some(declared),
            Self::ElicitationUrl => capabilities.elicitation.get_or_insert_with(elicitation).url = Some(declared),
            Self::Sampling => drop(capabilities.sampling.get_or_insert_with(sampling)),
            Self::SamplingTools => capabilities.sampling.get_or_insert_with(sampling).tools = Some(declared),
            Self::SamplingContext => capabilities.sampling.get_or_insert_with(sampling).context = Some(declared),
            Self::Roots => drop(capabilities.roots.get_or_insert_with(RootsCapability::default)),
        }
    }

    /// Returns the capabilities that a client needs for an input request.
    //
    #[must_use]
    pub fn required_by(request: &InputRequest) -> Vec<Self> {
        match request {
            InputRequest::Elicit(elicit) => match &elicit.params {
                ElicitRequestParams::Url(_) => vec![Self::ElicitationUrl],
                ElicitRequestParams::Form(_) => vec![Self::ElicitationForm],
            },
            InputRequest::CreateMessage(message) => {
                let params = &message.params;
                let with_tools = params.tools.is_some() || params.tool_choice.is_some();
                let with_context = params.include_context.as_ref().is_some_and(|context| context.as_str() != "none");
                let further = [(with_tools, Self::SamplingTools), (with_context, Self::SamplingContext)];
                let further = further.into_iter().filter_map(|(is_needed, capability)| is_needed.then_some(capability));
                std::iter::once(Self::Sampling).chain(further).collect()
            }
            InputRequest::ListRoots(_) => vec![Self::Roots],
            InputRequest::Unknown(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestUrlParams, ListRootsRequest, OrderedMap,
        RequestedSchema, SamplingMessage,
    };

    const ALL: [ClientCapability; 6] = [
        ClientCapability::ElicitationForm,
        ClientCapability::ElicitationUrl,
        ClientCapability::Sampling,
        ClientCapability::SamplingTools,
        ClientCapability::SamplingContext,
        ClientCapability::Roots,
    ];

    #[test]
    fn declared_capabilities_are_found() {
        let mut all = ClientCapabilities::default();
        for capability in ALL {
            let mut capabilities = ClientCapabilities::default();
            assert!(!capability.is_declared(&capabilities));
            capability.declare(&mut capabilities);
            assert!(capability.is_declared(&capabilities), "{capability:?}");
            capability.declare(&mut all);
        }
        assert!(ALL.iter().all(|capability| capability.is_declared(&all)));
    }

    /// Each kind of input request requires its own.
    // covers: R-5, EL-2, SA-2
    #[test]
    fn input_requests_require_their_capability() {
        let form = ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        let mut sample = CreateMessageRequestParams::new(vec![SamplingMessage::user("hi")], 5);
        for (request, needed) in [
            (InputRequest::from(form), vec![ClientCapability::ElicitationForm]),
            (ElicitRequestUrlParams::new("Go", "https://a.example").into(), vec![ClientCapability::ElicitationUrl]),
            (sample.clone().into(), vec![ClientCapability::Sampling]),
            (ListRootsRequest::default().into(), vec![ClientCapability::Roots]),
        ] {
            assert_eq!(ClientCapability::required_by(&request), needed);
        }
        sample.tools = Some(Vec::new());
        let needed = [ClientCapability::Sampling, ClientCapability::SamplingTools];
        assert_eq!(ClientCapability::required_by(&sample.into()), needed);
    }
}
