//! An interim result, built by hand.

use mcp_types::gate::{self, Direction};
use mcp_types::{
    ClientCapabilities, ClientCapability, ErrorObject, InputRequest, InputRequests, InputRequiredResult, Method,
    RequestParams, Revision, restrict_to,
};
use serde::Serialize;

/// Collects questions for a client, and refuses what it must not be asked.
#[derive(Clone, Debug)]
#[must_use = "the client is asked once the result is built and returned"]
pub struct Questions {
    questions: InputRequests,
    state: Option<String>,
    fault: Option<InvalidQuestions>,
    missing: Option<ClientCapabilities>,
    declared: ClientCapabilities,
    /// The revision of a legacy client, which is asked by real requests.
    legacy: Option<Revision>,
}

/// Why a client cannot be asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidQuestions {
    /// The method has to be answered at once.
    #[error("`{0}` may not ask for input: only tools/call, prompts/get and resources/read may")]
    WrongMethod(Method),
    /// There is neither a question nor a state.
    #[error("there is nothing to ask: add a question or a state")]
    Empty,
    /// Two questions have the same key.
    #[error("two questions have the key `{0}`: give each its own")]
    KeyTwice(String),
    /// The state cannot be written as JSON.
    #[error("the state cannot be written: {0}")]
    InvalidState(String),
    /// A legacy client can be asked only on a connection that lasts, and this request has none.
    #[error("there is no session, so the client cannot be asked")]
    NoBackChannel,
    /// The revision of a legacy client does not have this question.
    #[error("`{method}` may not be sent in {revision}")]
    NotInRevision {
        /// What was to be asked.
        method: Method,
        /// What the client speaks.
        revision: Revision,
    },
    /// The revision of a legacy client cannot express the question.
    #[error("{revision} cannot express the question: {what}")]
    NotExpressible {
        /// What the client speaks.
        revision: Revision,
        /// What it lacks.
        what: String,
    },
    /// The client did not declare what it needs to be asked this.
    #[error("the client did not declare what the questions need")]
    NotDeclared(Box<ClientCapabilities>),
}

impl InvalidQuestions {
    /// What the client is told.
    #[must_use]
    pub fn to_error_object(&self) -> ErrorObject {
        match self {
            Self::NotDeclared(required) => ErrorObject::missing_required_client_capability((**required).clone()),
            Self::WrongMethod(_)
            | Self::Empty
            | Self::KeyTwice(_)
            | Self::InvalidState(_)
            | Self::NoBackChannel
            | Self::NotInRevision { .. }
            | Self::NotExpressible { .. } => ErrorObject::internal_error("the server cannot ask for input"),
        }
    }
}

impl Questions {
    /// Starts to ask during a request, of a client that declared `capabilities` with it.
    pub fn new(method: &Method, capabilities: &ClientCapabilities) -> Self {
        let may_ask = gate::method(method).is_some_and(|facts| facts.may_ask.contains(Revision::LATEST));
        Self {
            questions: InputRequests::new(),
            state: None,
            fault: (!may_ask).then(|| InvalidQuestions::WrongMethod(method.clone())),
            missing: None,
            declared: capabilities.clone(),
            legacy: None,
        }
    }

    /// Says that the client is a legacy one of this revision, and whether it can be sent requests at all. What it cannot be
    /// asked is an error of [`build`](Self::build) then, so that the handler can do without.
    pub fn legacy(mut self, revision: Revision, has_back_channel: bool) -> Self {
        self.legacy = Some(revision);
        if !has_back_channel {
            self.fault.get_or_insert(InvalidQuestions::NoBackChannel);
        }
        self
    }

    /// Adds a question; its answer comes back under the same key.
    pub fn ask(mut self, key: impl Into<String>, question: impl Into<InputRequest>) -> Self {
        let (key, question) = (key.into(), question.into());
        for needed in ClientCapability::needed_for(&question) {
            if !needed.is_declared(&self.declared) {
                needed.require(self.missing.get_or_insert_default());
            }
        }
        if let Some(fault) = self.legacy.and_then(|revision| unaskable(&question, revision)) {
            self.fault.get_or_insert(fault);
        }
        if self.questions.contains(&key) {
            self.fault.get_or_insert(InvalidQuestions::KeyTwice(key));
        } else {
            self.questions.insert(key, question);
        }
        self
    }

    /// Adds a state, which is written as JSON and which the client returns with its answers. The client can read and
    /// change it.
    pub fn state<T: Serialize + ?Sized>(mut self, state: &T) -> Self {
        match serde_json::to_string(state) {
            Ok(state) => self.state = Some(state),
            Err(fault) => {
                self.fault.get_or_insert(InvalidQuestions::InvalidState(fault.to_string()));
            }
        }
        self
    }

    /// Adds a state as the text that the client returns, such as one that was sealed.
    pub fn raw_state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Makes the result.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked this.
    pub fn build(self) -> Result<InputRequiredResult, InvalidQuestions> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(missing) = self.missing {
            return Err(InvalidQuestions::NotDeclared(Box::new(missing)));
        }
        if self.questions.is_empty() && self.state.is_none() {
            return Err(InvalidQuestions::Empty);
        }
        let mut result = InputRequiredResult::default();
        result.input_requests = Some(self.questions).filter(|questions| !questions.is_empty());
        result.request_state = self.state;
        Ok(result)
    }
}

/// Why a legacy client of a revision cannot be asked something.
fn unaskable(question: &InputRequest, revision: Revision) -> Option<InvalidQuestions> {
    let (method, restriction) = match question {
        InputRequest::Elicit(elicit) => (Method::ELICITATION_CREATE, restrict_to(&mut elicit.params.clone(), revision)),
        InputRequest::CreateMessage(message) => {
            (Method::SAMPLING_CREATE_MESSAGE, restrict_to(&mut message.params.clone(), revision))
        }
        InputRequest::ListRoots(_) => (Method::ROOTS_LIST, restrict_to(&mut RequestParams::default(), revision)),
        // What nobody knows is up to whoever asks it.
        InputRequest::Unknown(_) | _ => return None,
    };
    if !gate::method(&method).is_some_and(|facts| facts.may_travel(Direction::ServerToClient, revision)) {
        return Some(InvalidQuestions::NotInRevision { method, revision });
    }
    (!restriction.may_be_sent()).then(|| {
        let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        InvalidQuestions::NotExpressible { revision, what: what.join(", ") }
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

    fn questions() -> Questions {
        Questions::new(&Method::TOOLS_CALL, &able())
    }

    #[test]
    fn what_may_be_asked_is_asked() {
        let result = questions().ask("a", ListRootsRequest::default()).raw_state("s").build().unwrap();
        assert_eq!(result.input_requests.unwrap().len(), 1);
        assert_eq!(result.request_state.as_deref(), Some("s"));
        assert_eq!(questions().raw_state("s").build().unwrap().input_requests, None);
    }

    // covers: R-2..R-5
    #[test]
    fn the_rest_is_refused() {
        assert_eq!(questions().build(), Err(InvalidQuestions::Empty));
        let twice = questions().ask("a", ListRootsRequest::default()).ask("a", ListRootsRequest::default());
        assert_eq!(twice.build(), Err(InvalidQuestions::KeyTwice("a".into())));
        let list = Questions::new(&Method::TOOLS_LIST, &able()).raw_state("s");
        assert_eq!(list.build(), Err(InvalidQuestions::WrongMethod(Method::TOOLS_LIST)));
        let unable = Questions::new(&Method::TOOLS_CALL, &ClientCapabilities::default());
        let refused = unable.ask("a", ListRootsRequest::default()).build().unwrap_err();
        assert_eq!(refused.to_error_object().code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
    }

    /// What is written as a type is read as one.
    // covers: MIS-17
    #[test]
    fn mis_17_states_are_typed() {
        let result = questions().state(&[("a", 1)]).build().unwrap();
        assert_eq!(result.request_state.as_deref(), Some(r#"[["a",1]]"#));
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert!(matches!(questions().state(&unwritable).build(), Err(InvalidQuestions::InvalidState(_))));
    }

    /// What a legacy client cannot be asked, the handler hears before it returns the question.
    // covers: MIS-17, DU-26
    #[test]
    fn mis_17_legacy_clients_cannot_be_asked_everything() {
        let form = || ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        let all = ClientCapabilities::default()
            .roots(RootsCapability::default())
            .elicitation(ElicitationCapability::default());
        let ask =
            |revision, has_back_channel| Questions::new(&Method::TOOLS_CALL, &all).legacy(revision, has_back_channel);
        assert!(ask(Revision::V2025_11_25, true).ask("a", form()).build().is_ok());
        assert!(ask(Revision::V2024_11_05, true).ask("a", ListRootsRequest::default()).build().is_ok());
        assert_eq!(ask(Revision::V2025_11_25, false).ask("a", form()).build(), Err(InvalidQuestions::NoBackChannel));
        let (method, revision) = (Method::ELICITATION_CREATE, Revision::V2025_03_26);
        let refused = Err(InvalidQuestions::NotInRevision { method, revision });
        assert_eq!(ask(revision, true).ask("a", form()).build(), refused);
        let mut by_url = all.clone();
        by_url.elicitation.get_or_insert_default().url = Some(Default::default());
        let page = ElicitRequestUrlParams::new("Pay", "https://example.com");
        let refused = Questions::new(&Method::TOOLS_CALL, &by_url).legacy(Revision::V2025_06_18, true).ask("a", page);
        assert!(matches!(refused.build(), Err(InvalidQuestions::NotExpressible { .. })));
    }
}
