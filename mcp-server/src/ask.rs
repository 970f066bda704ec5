//! Questions to the client while a request runs.

use std::sync::Arc;

use mcp_kernel::{CallError, CallOptions, Misuse, RequestKey};
use mcp_types::{
    ClientCapabilities, ClientCapability, CreateMessageRequestParams, CreateMessageResult, ElicitAction,
    ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult, ElicitValue, Era, ErrorObject, ListRootsResult,
    Method, OrderedMap, RawObject, RequestParams, RequestedSchema, Restrict, Revision, Root, restrict_to,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::RequestContext;
use crate::form;
use crate::registry::is_scheme;
use crate::shared::Shared;

/// What a user filled in, by member.
pub type ElicitContent = OrderedMap<ElicitValue>;

/// Why a client could not be asked, or gave no usable answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare that it can be asked this.
    #[error("the client did not declare `{}`: check `ctx.supports(..)` first", .0.name())]
    NotSupported(ClientCapability),
    /// There is no way to ask the client during this request.
    #[error("the client cannot be asked: {0}")]
    NoBackChannel(&'static str),
    /// The question is not one that can be asked: a form that is not flat, an address that is none, something that the
    /// client's revision cannot express.
    #[error("{0}")]
    InvalidQuestion(String),
    /// The client cannot be asked this now.
    #[error("{0}")]
    Refused(Misuse),
    /// The client did not answer.
    #[error("{0}")]
    Unanswered(CallError),
    /// The client's answer is not what was asked for.
    #[error("the client's answer is not valid: {0}")]
    InvalidAnswer(String),
}

impl AskError {
    /// What the client of the request is told, where the protocol has an error for it (E-14).
    pub(crate) fn to_error_object(&self) -> Option<ErrorObject> {
        let Self::NotSupported(capability) = self else { return None };
        let mut required = ClientCapabilities::default();
        capability.require(&mut required);
        Some(ErrorObject::missing_required_client_capability(required))
    }
}

/// What a user made of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum Elicited<T> {
    /// The user answered.
    Accepted(T),
    /// The user does not want to answer.
    Declined,
    /// The user closed the question without choosing.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The answer, or an error that says that there is none.
    ///
    /// # Errors
    ///
    /// Fails if the user declined or cancelled.
    pub fn accepted(self) -> Result<T, NotAccepted> {
        match self {
            Self::Accepted(answer) => Ok(answer),
            Self::Declined => Err(NotAccepted::Declined),
            Self::Cancelled => Err(NotAccepted::Cancelled),
        }
    }
}

/// The user gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these two")]
pub enum NotAccepted {
    /// The user does not want to answer.
    #[error("the user declined")]
    Declined,
    /// The user closed the question without choosing.
    #[error("the user cancelled")]
    Cancelled,
}

/// Questions. They work on connections of the legacy era; `key` names the question among those of the request.
impl RequestContext {
    /// Asks the user to fill in a form that has the members of `T`: texts, numbers, booleans and choices (S2.31).
    ///
    /// Members that the user left out get their defaults, and the answer is checked before it is read (EL-20).
    ///
    /// # Errors
    ///
    /// Fails if `T` is not flat, if the client cannot be asked, or if its answer is not valid. That the user declines
    /// is not an error.
    pub async fn elicit<T>(&self, key: &str, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let schema = form::schema_of::<T>().map_err(|fault| AskError::InvalidQuestion(fault.to_string()))?;
        match self.elicit_form(key, ElicitRequestFormParams::new(message, schema.clone())).await? {
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
            Elicited::Accepted(content) => {
                let read = form::decode(&schema, content);
                read.map(Elicited::Accepted).map_err(|fault| AskError::InvalidAnswer(fault.to_string()))
            }
        }
    }

    /// Asks the user to fill in a form with a schema of its own (S2.30).
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    pub async fn elicit_form(
        &self,
        key: &str,
        mut question: ElicitRequestFormParams,
    ) -> Result<Elicited<ElicitContent>, AskError> {
        if self.revision() <= Revision::V2025_06_18 {
            form::use_legacy_labels(&mut question.requested_schema);
        }
        // What older clients are not told, such as most defaults, still holds for the answer.
        let schema = question.requested_schema.clone();
        let result: ElicitResult =
            self.ask(key, ClientCapability::ElicitationForm, Method::ELICITATION_CREATE, question).await?;
        checked(result, &schema)
    }

    /// Asks the user to visit a web page, for what must not pass through the client (S2.33, EL-10).
    ///
    /// # Errors
    ///
    /// Fails if the address is not an absolute one, if the client cannot be asked, or if the question lacks the
    /// `elicitation_id` that clients of 2025-11-25 need.
    pub async fn elicit_url(&self, key: &str, question: ElicitRequestUrlParams) -> Result<Elicited<()>, AskError> {
        if !is_absolute(&question.url) {
            return Err(AskError::InvalidQuestion(format!("`{}` is not an absolute address", question.url)));
        }
        let result: ElicitResult =
            self.ask(key, ClientCapability::ElicitationUrl, Method::ELICITATION_CREATE, question).await?;
        Ok(match result.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    /// Has the client's model write something (S2.29).
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    pub async fn sample(
        &self,
        key: &str,
        question: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.ask(key, ClientCapability::Sampling, Method::SAMPLING_CREATE_MESSAGE, question).await
    }

    /// Asks for the folders that the client works with (S2.34).
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        let result: ListRootsResult =
            self.ask(key, ClientCapability::Roots, Method::ROOTS_LIST, RequestParams::default()).await?;
        Ok(result.roots)
    }

    /// Makes sure that the client declared a capability. The error is one that the protocol has a code for (E-14).
    ///
    /// ```
    /// # use mcp_server::{AskError, ClientCapability, RequestContext};
    /// async fn summarise(ctx: RequestContext) -> Result<String, AskError> {
    ///     ctx.require(ClientCapability::Sampling)?;
    ///     // what takes long, and would be in vain without a model to ask
    /// #   Ok(String::new())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the client did not.
    pub fn require(&self, capability: ClientCapability) -> Result<(), AskError> {
        if self.supports(capability) { Ok(()) } else { Err(AskError::NotSupported(capability)) }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        _key: &str,
        capability: ClientCapability,
        method: Method,
        mut question: impl Serialize + Restrict,
    ) -> Result<T, AskError> {
        if !self.supports(capability) {
            // Of a legacy client without a session nothing is known; that is what would have to change (S0.28).
            let is_unknown = self.era() == Era::Legacy && self.is_stateless();
            let no_session = AskError::NoBackChannel("a session is needed to ask the client something");
            return Err(if is_unknown { no_session } else { AskError::NotSupported(capability) });
        }
        let restriction = restrict_to(&mut question, self.revision());
        if !restriction.may_be_sent() {
            let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
            let (revision, what) = (self.revision(), what.join(", "));
            return Err(AskError::InvalidQuestion(format!("{revision} cannot express the question: {what}")));
        }
        let invalid = |fault: serde_json::Error| AskError::InvalidQuestion(fault.to_string());
        let question = RawObject::new(&question).map_err(invalid)?;
        // A person may take their time, and says nothing meanwhile.
        let options = CallOptions::default().with_idle(None);
        ask(self.shared(), Some(self.scope().key()), method, question, options).await
    }
}

/// Whether an address says everything that a browser needs.
fn is_absolute(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    is_scheme(scheme) && !rest.is_empty() && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// Reads the answer to a form.
fn checked(result: ElicitResult, schema: &RequestedSchema) -> Result<Elicited<ElicitContent>, AskError> {
    match result.action {
        ElicitAction::Decline => Ok(Elicited::Declined),
        ElicitAction::Cancel => Ok(Elicited::Cancelled),
        ElicitAction::Accept => {
            let mut content = result.content.unwrap_or_default();
            form::apply_defaults(schema, &mut content);
            form::validate(schema, &content).map_err(|fault| AskError::InvalidAnswer(fault.to_string()))?;
            Ok(Elicited::Accepted(content))
        }
    }
}

/// Asks, and waits for the answer. Whoever stops waiting takes the question back.
pub(crate) async fn ask<T: DeserializeOwned>(
    shared: &Arc<Shared>,
    related: Option<RequestKey>,
    method: Method,
    params: RawObject,
    options: CallOptions,
) -> Result<T, AskError> {
    let (number, answer) = shared.ask(related, method, params, options);
    let asked = Asked { shared, number, is_open: true };
    let answer = answer.wait().await;
    asked.answered();
    let answer = answer.unwrap_or(Err(AskError::Unanswered(CallError::Disconnected)))?;
    answer.decode().map_err(|fault| AskError::InvalidAnswer(fault.to_string()))
}

/// A question that somebody waits for.
struct Asked<'a> {
    shared: &'a Shared,
    number: u64,
    is_open: bool,
}

impl Asked<'_> {
    fn answered(mut self) {
        self.is_open = false;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.shared.take_back(self.number);
        }
    }
}

impl From<Misuse> for AskError {
    fn from(misuse: Misuse) -> Self {
        if let Misuse::NoBackChannel(why) = misuse {
            return Self::NoBackChannel(why);
        }
        let missing = ALL.into_iter().find(|capability| misuse == Misuse::MissingCapability(capability.name()));
        missing.map_or(Self::Refused(misuse), Self::NotSupported)
    }
}

/// What a client may be asked.
const ALL: [ClientCapability; 6] = [
    ClientCapability::ElicitationForm,
    ClientCapability::ElicitationUrl,
    ClientCapability::Sampling,
    ClientCapability::SamplingTools,
    ClientCapability::SamplingContext,
    ClientCapability::Roots,
];
