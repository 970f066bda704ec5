//! Builds an `InputRequiredResult` by hand.

use mcp_types::gate::{self, Direction};
use mcp_types::{
    ClientCapabilities, ClientCapability, ErrorObject, InputRequest, InputRequests, InputRequiredResult, Method,
    RequestParams, Revision, restrict_to,
};
use serde::Serialize;

/// Builds an [`InputRequiredResult`], and refuses input requests that the client does not support.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until the result is built and returned"]
pub struct InputRequiredBuilder {
    requests: InputRequests,
    state: Option<String>,
    fault: Option<InvalidInputRequests>,
    missing: Option<ClientCapabilities>,
    declared: ClientCapabilities,
    /// The revision of a legacy client, to which input requests are sent as JSON-RPC requests.
    legacy: Option<Revision>,
}

/// The error of building an [`InputRequiredResult`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidInputRequests {
    /// The method does not allow an `InputRequiredResult`.
    #[error("`{0}` may not request input: only tools/call, prompts/get and resources/read may")]
    WrongMethod(Method),
    /// There is neither an input request nor a state.
    #[error("the result is empty: add an input request or a state")]
    Empty,
    /// Two input requests have the same key.
    #[error("two input requests have the key `{0}`: use a different key for each")]
    DuplicateKey(String),
    /// The state cannot be serialized as JSON.
    #[error("the state cannot be serialized: {0}")]
    UnserializableState(String),
    /// Requests can be sent to a legacy client only in a session, and this request has none.
    #[error("there is no session in which the client could receive a request")]
    NoBackChannel,
    /// The revision of a legacy client does not have this request.
    #[error("`{method}` may not be sent in {revision}")]
    NotInRevision {
        /// The method of the request.
        method: Method,
        /// The client's revision.
        revision: Revision,
    },
    /// The revision of a legacy client cannot express the request.
    #[error("{revision} cannot express the request: {what}")]
    NotExpressible {
        /// The client's revision.
        revision: Revision,
        /// The members that the revision lacks.
        what: String,
    },
    /// The client did not declare the capabilities that the input requests need.
    #[error("the client did not declare the capabilities that the input requests need")]
    MissingCapabilities(Box<ClientCapabilities>),
}

impl InvalidInputRequests {
    /// Returns the error to respond with.
    #[must_use]
    pub fn to_error_object(&self) -> ErrorObject {
        match self {
            Self::MissingCapabilities(required) => {
                ErrorObject::missing_required_client_capability((**required).clone())
            }
            Self::WrongMethod(_)
            | Self::Empty
            | Self::DuplicateKey(_)
            | Self::UnserializableState(_)
            | Self::NoBackChannel
            | Self::NotInRevision { .. }
            | Self::NotExpressible { .. } => ErrorObject::internal_error("the server cannot request input"),
        }
    }
}

impl InputRequiredBuilder {
    /// Creates a builder for the result of a request, whose client declared `capabilities`.
    pub fn new(method: &Method, capabilities: &ClientCapabilities) -> Self {
        let may_request = gate::method(method).is_some_and(|facts| facts.may_require_input.contains(Revision::LATEST));
        Self {
            requests: InputRequests::new(),
            state: None,
            fault: (!may_request).then(|| InvalidInputRequests::WrongMethod(method.clone())),
            missing: None,
            declared: capabilities.clone(),
            legacy: None,
        }
    }

    /// Sets the revision of a legacy client, and whether it can receive requests. [`build`](Self::build) then returns an
    /// error for input requests that this client cannot receive.
    pub fn legacy(mut self, revision: Revision, has_back_channel: bool) -> Self {
        self.legacy = Some(revision);
        if !has_back_channel {
            self.fault.get_or_insert(InvalidInputRequests::NoBackChannel);
        }
        self
    }

    /// Adds an input request. Its response has the same key.
    pub fn input_request(mut self, key: impl Into<String>, request: impl Into<InputRequest>) -> Self {
        let (key, request) = (key.into(), request.into());
        for needed in ClientCapability::required_by(&request) {
            if !needed.is_declared(&self.declared) {
                needed.declare(self.missing.get_or_insert_default());
            }
        }
        if let Some(fault) = self.legacy.and_then(|revision| unsendable(&request, revision)) {
            self.fault.get_or_insert(fault);
        }
        if self.requests.contains(&key) {
            self.fault.get_or_insert(InvalidInputRequests::DuplicateKey(key));
        } else {
            self.requests.insert(key, request);
        }
        self
    }

    /// Sets the `requestState` that the client returns with its responses, serialized as JSON. The client can read and
    /// change it.
    pub fn state<T: Serialize + ?Sized>(mut self, state: &T) -> Self {
        match serde_json::to_string(state) {
            Ok(state) => self.state = Some(state),
            Err(fault) => {
                self.fault.get_or_insert(InvalidInputRequests::UnserializableState(fault.to_string()));
            }
        }
        self
    }

    /// Sets the `requestState` to a string, such as a sealed state.
    pub fn raw_state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Builds the result.
    ///
    /// # Errors
    ///
    /// Returns an error if the method does not allow input requests, if the client cannot receive one of them, if two have
    /// the same key, if the state cannot be serialized, or if there is neither an input request nor a state.
    pub fn build(self) -> Result<InputRequiredResult, InvalidInputRequests> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(missing) = self.missing {
            return Err(InvalidInputRequests::MissingCapabilities(Box::new(missing)));
        }
        if self.requests.is_empty() && self.state.is_none() {
            return Err(InvalidInputRequests::Empty);
        }
        let mut result = InputRequiredResult::default();
        result.input_requests = Some(self.requests).filter(|requests| !requests.is_empty());
        result.request_state = self.state;
        Ok(result)
    }
}

/// Returns why a legacy client of a revision cannot receive an input request.
fn unsendable(request: &InputRequest, revision: Revision) -> Option<InvalidInputRequests> {
    let (method, restriction) = match request {
        InputRequest::Elicit(elicit) => (Method::ELICITATION_CREATE, restrict_to(&mut elicit.params.clone(), revision)),
        InputRequest::CreateMessage(message) => {
            (Method::SAMPLING_CREATE_MESSAGE, restrict_to(&mut message.params.clone(), revision))
        }
        InputRequest::ListRoots(_) => (Method::ROOTS_LIST, restrict_to(&mut RequestParams::default(), revision)),
        // Nothing is known about other methods, so the handler decides.
        InputRequest::Unknown(_) | _ => return None,
    };
    if !gate::method(&method).is_some_and(|facts| facts.may_be_sent(Direction::ServerToClient, revision)) {
        return Some(InvalidInputRequests::NotInRevision { method, revision });
    }
    (!restriction.may_be_sent()).then(|| {
        let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        InvalidInputRequests::NotExpressible { revision, what: what.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use mcp_types::{
        ElicitRequestFormParams, ElicitRequestUrlParams, ElicitationCapability, ErrorCode, ListRootsRequest,
        OrderedMap, RequestedSchema, RootsCapability,
    };

    use super::*;

    fn able() -> ClientCapabilities {
        ClientCapabilities::default().roots(RootsCapability::default())
    }

    fn builder() -> InputRequiredBuilder {
        InputRequiredBuilder::new(&Method::TOOLS_CALL, &able())
    }

    #[test]
    fn supported_requests_are_built() {
        let result = builder().input_request("a", ListRootsRequest::default()).raw_state("s").build().unwrap();
        assert_eq!(result.input_requests.unwrap().len(), 1);
        assert_eq!(result.request_state.as_deref(), Some("s"));
        assert_eq!(builder().raw_state("s").build().unwrap().input_requests, None);
    }

    // covers: R-2..R-5
    #[test]
    fn the_rest_is_refused() {
        assert_eq!(builder().build(), Err(InvalidInputRequests::Empty));
        let twice =
            builder().input_request("a", ListRootsRequest::default()).input_request("a", ListRootsRequest::default());
        assert_eq!(twice.build(), Err(InvalidInputRequests::DuplicateKey("a".into())));
        let list = InputRequiredBuilder::new(&Method::TOOLS_LIST, &able()).raw_state("s");
        assert_eq!(list.build(), Err(InvalidInputRequests::WrongMethod(Method::TOOLS_LIST)));
        let unable = InputRequiredBuilder::new(&Method::TOOLS_CALL, &ClientCapabilities::default());
        let refused = unable.input_request("a", ListRootsRequest::default()).build().unwrap_err();
        assert_eq!(refused.to_error_object().code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
    }

    /// A state is serialized from its type.
    // covers: MIS-17
    #[test]
    fn mis_17_states_are_typed() {
        let result = builder().state(&[("a", 1)]).build().unwrap();
        assert_eq!(result.request_state.as_deref(), Some(r#"[["a",1]]"#));
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert!(matches!(builder().state(&unwritable).build(), Err(InvalidInputRequests::UnserializableState(_))));
    }

    /// A request that a legacy client cannot receive is an error before it is returned.
    // covers: MIS-17, DU-26
    #[test]
    fn mis_17_legacy_clients_cannot_receive_every_request() {
        let form = || ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        let all = ClientCapabilities::default()
            .roots(RootsCapability::default())
            .elicitation(ElicitationCapability::default());
        let ask = |revision, has_back_channel| {
            InputRequiredBuilder::new(&Method::TOOLS_CALL, &all).legacy(revision, has_back_channel)
        };
        assert!(ask(Revision::V2025_11_25, true).input_request("a", form()).build().is_ok());
        assert!(ask(Revision::V2024_11_05, true).input_request("a", ListRootsRequest::default()).build().is_ok());
        assert_eq!(
            ask(Revision::V2025_11_25, false).input_request("a", form()).build(),
            Err(InvalidInputRequests::NoBackChannel)
        );
        let (method, revision) = (Method::ELICITATION_CREATE, Revision::V2025_03_26);
        let refused = Err(InvalidInputRequests::NotInRevision { method, revision });
        assert_eq!(ask(revision, true).input_request("a", form()).build(), refused);
        let mut by_url = all.clone();
        by_url.elicitation.get_or_insert_default().url = Some(Default::default());
        let page = ElicitRequestUrlParams::new("Pay", "https://example.com");
        let refused = InputRequiredBuilder::new(&Method::TOOLS_CALL, &by_url)
            .legacy(Revision::V2025_06_18, true)
            .input_request("a", page);
        assert!(matches!(refused.build(), Err(InvalidInputRequests::NotExpressible { .. })));
    }
}
