//! An interim result, built by hand.

use mcp_types::gate;
use mcp_types::{
    ClientCapabilities, ClientCapability, ErrorObject, InputRequest, InputRequests, InputRequiredResult, Method,
    Revision,
};

/// Collects questions for a client, and refuses what it must not be asked.
#[derive(Clone, Debug)]
#[must_use = "the client is asked once the result is built and returned"]
pub struct Questions {
    questions: InputRequests,
    state: Option<String>,
    fault: Option<InvalidQuestions>,
    missing: Option<ClientCapabilities>,
    declared: ClientCapabilities,
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
            Self::WrongMethod(_) | Self::Empty | Self::KeyTwice(_) => {
                ErrorObject::internal_error("the server cannot ask for input")
            }
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
        }
    }

    /// Adds a question; its answer comes back under the same key.
    pub fn ask(mut self, key: impl Into<String>, question: impl Into<InputRequest>) -> Self {
        let (key, question) = (key.into(), question.into());
        for needed in ClientCapability::needed_for(&question) {
            if !needed.is_declared(&self.declared) {
                needed.require(self.missing.get_or_insert_default());
            }
        }
        if self.questions.contains(&key) {
            self.fault.get_or_insert(InvalidQuestions::KeyTwice(key));
        } else {
            self.questions.insert(key, question);
        }
        self
    }

    /// Adds a state, which the client brings back as it is.
    pub fn state(mut self, state: impl Into<String>) -> Self {
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

#[cfg(test)]
mod tests {
    use mcp_types::{ErrorCode, ListRootsRequest, RootsCapability};

    use super::*;

    fn able() -> ClientCapabilities {
        ClientCapabilities::default().roots(RootsCapability::default())
    }

    fn questions() -> Questions {
        Questions::new(&Method::TOOLS_CALL, &able())
    }

    #[test]
    fn what_may_be_asked_is_asked() {
        let result = questions().ask("a", ListRootsRequest::default()).state("s").build().unwrap();
        assert_eq!(result.input_requests.unwrap().len(), 1);
        assert_eq!(result.request_state.as_deref(), Some("s"));
        assert_eq!(questions().state("s").build().unwrap().input_requests, None);
    }

    /// R-2..R-5
    #[test]
    fn the_rest_is_refused() {
        assert_eq!(questions().build(), Err(InvalidQuestions::Empty));
        let twice = questions().ask("a", ListRootsRequest::default()).ask("a", ListRootsRequest::default());
        assert_eq!(twice.build(), Err(InvalidQuestions::KeyTwice("a".into())));
        let list = Questions::new(&Method::TOOLS_LIST, &able()).state("s");
        assert_eq!(list.build(), Err(InvalidQuestions::WrongMethod(Method::TOOLS_LIST)));
        let unable = Questions::new(&Method::TOOLS_CALL, &ClientCapabilities::default());
        let refused = unable.ask("a", ListRootsRequest::default()).build().unwrap_err();
        assert_eq!(refused.to_error_object().code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
    }
}
