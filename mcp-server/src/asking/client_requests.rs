//! Questions to the client while a request runs.

use std::sync::Arc;

use mcp_kernel::{CallError, Misuse, RequestKey};
#[cfg(feature = "mrtr")]
use mcp_types::RawJson;
use mcp_types::{
    ClientCapabilities, ClientCapability, CreateMessageRequestParams, CreateMessageResult, ElicitAction,
    ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult, ElicitValue, Era, ErrorObject, InputRequest,
    ListRootsRequest, ListRootsResult, Method, OrderedMap, RawObject, RequestParams, RequestedSchema, Restrict,
    Revision, Root, restrict_to,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::form;
use crate::asking::options::AskOptions;
#[cfg(feature = "mrtr")]
use crate::asking::rounds;
use crate::build::registry::is_scheme;
use crate::connection::shared::Shared;
use crate::serve::context::RequestContext;

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
    InvalidRequest(String),
    /// The client cannot be asked this now.
    #[error("{0}")]
    Refused(Misuse),
    /// The client did not answer.
    #[error("{0}")]
    NoResponse(CallError),
    /// The client's answer is not what was asked for.
    #[error("the client's answer is not valid: {0}")]
    InvalidResponse(String),
    /// What the client sent along as an answer is none: the request is not valid.
    #[error("`inputResponses.{key}`: {fault}")]
    InvalidInput {
        /// The key of the question.
        key: String,
        /// What is wrong with the answer.
        fault: String,
    },
    /// The state that the client brought back was refused.
    #[cfg(feature = "mrtr")]
    #[error("{0}")]
    Rejected(mcp_mrtr::Rejected),
}

impl AskError {
    /// What the client of the request is told, where the protocol has an error for it.
    // E-14
    pub(crate) fn to_error_object(&self) -> Option<ErrorObject> {
        match self {
            Self::NotSupported(capability) => {
                let mut required = ClientCapabilities::default();
                capability.require(&mut required);
                Some(ErrorObject::missing_required_client_capability(required))
            }
            Self::InvalidInput { .. } => Some(ErrorObject::invalid_params(self.to_string())),
            #[cfg(feature = "mrtr")]
            Self::Rejected(rejected) => Some(rejected.to_error_object()),
            Self::NoBackChannel(_)
            | Self::InvalidRequest(_)
            | Self::Refused(_)
            | Self::NoResponse(_)
            | Self::InvalidResponse(_) => None,
        }
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

/// Questions, the same in every era; `key` names the question among those of the request.
///
/// A legacy client is asked by a real request while the handler waits. A modern one cannot be: the request ends with
/// all questions that were asked by then, and comes again with the answers. **The handler then runs from its
/// beginning**, and finds the answers when it asks the same questions. What it did before a question, it does again:
/// put what must not be repeated into [`once`](RequestContext::once).
///
/// ```
/// # use mcp_server::{HandlerError, RequestContext};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # async fn charge() -> Result<u32, std::io::Error> { Ok(1) }
/// #[derive(Deserialize, JsonSchema)]
/// struct RequestedUri { street: String }
///
/// // Wrong: with a modern client the user pays twice, once in each round.
/// async fn wrong(ctx: RequestContext) -> Result<String, HandlerError> {
///     let receipt = charge().await?;
///     let address: Address = ctx.elicit("address", "Where to?").await?.accepted()?;
///     Ok(format!("{receipt} goes to {}", address.street))
/// }
///
/// // Right: the result of the step travels with the question, and is found again.
/// async fn right(ctx: RequestContext) -> Result<String, HandlerError> {
///     let receipt: u32 = ctx.once("charge", || async { charge().await.map_err(HandlerError::from) }).await?;
///     let address: Address = ctx.elicit("address", "Where to?").await?.accepted()?;
///     Ok(format!("{receipt} goes to {}", address.street))
/// }
/// ```
impl RequestContext {
    /// Asks the user to fill in a form that has the members of `T`: texts, numbers, booleans and choices.
    ///
    /// Members that the user left out get their defaults, and the answer is checked before it is read.
    ///
    /// # Errors
    ///
    /// Fails if `T` is not flat, if the client cannot be asked, or if its answer is not valid. That the user declines
    /// is not an error.
    // S2.31, EL-20
    pub async fn elicit<T>(&self, key: &str, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let schema = form::schema_of::<T>().map_err(|fault| AskError::InvalidRequest(fault.to_string()))?;
        match self.elicit_form(key, ElicitRequestFormParams::new(message, schema.clone())).await? {
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
            Elicited::Accepted(content) => {
                let read = form::decode(&schema, content);
                read.map(Elicited::Accepted).map_err(|fault| AskError::InvalidResponse(fault.to_string()))
            }
        }
    }

    /// Asks the user to fill in a form with a schema of its own.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    // S2.30
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

    /// Asks the user to visit a web page, for what must not pass through the client.
    ///
    /// # Errors
    ///
    /// Fails if the address is not an absolute one, if the client cannot be asked, or if the question lacks the
    /// `elicitation_id` that clients of 2025-11-25 need.
    // S2.33, EL-10
    pub async fn elicit_url(&self, key: &str, question: ElicitRequestUrlParams) -> Result<Elicited<()>, AskError> {
        if !is_absolute(&question.url) {
            return Err(AskError::InvalidRequest(format!("`{}` is not an absolute address", question.url)));
        }
        let result: ElicitResult =
            self.ask(key, ClientCapability::ElicitationUrl, Method::ELICITATION_CREATE, question).await?;
        Ok(match result.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    /// Has the client's model write something.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    // S2.29
    pub async fn sample(
        &self,
        key: &str,
        question: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.ask(key, ClientCapability::Sampling, Method::SAMPLING_CREATE_MESSAGE, question).await
    }

    /// Asks for the folders that the client works with.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or if its answer is not valid.
    // S2.34
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        self.check(ClientCapability::Roots)?;
        let result: ListRootsResult = match self.era() {
            Era::Modern => self.ask_in_round(key, ListRootsRequest::default().into()).await?,
            Era::Legacy => {
                self.begin();
                self.ask_now(Method::ROOTS_LIST, RequestParams::default()).await?
            }
        };
        Ok(result.roots)
    }

    /// Makes sure that the client declared a capability. The error is one that the protocol has a code for.
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
    // E-14
    pub fn require(&self, capability: ClientCapability) -> Result<(), AskError> {
        if self.supports(capability) { Ok(()) } else { Err(AskError::NotSupported(capability)) }
    }

    /// Takes a step that must not be repeated: in later rounds its result is found again. A step that fails is taken
    /// again, and so is one that asked something itself.
    ///
    /// The result travels to the client and back, sealed; keep it small.
    ///
    /// # Errors
    ///
    /// Fails as the step does, or if its result cannot be kept.
    pub async fn once<T, E, F, Fut>(&self, key: &str, step: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<AskError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        // Where there is no second round, nothing is repeated.
        #[cfg(feature = "mrtr")]
        if rounds::may_ask(self) {
            if let Some(done) = rounds::step(self, key)? {
                return done.decode().map_err(|fault| AskError::InvalidRequest(fault.to_string()).into());
            }
            let result = step().await?;
            let kept = RawJson::new(&result).map_err(|fault| AskError::InvalidRequest(fault.to_string()))?;
            rounds::complete_step(self, key, kept)?;
            return Ok(result);
        }
        let _ = key;
        self.begin();
        step().await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        key: &str,
        capability: ClientCapability,
        method: Method,
        question: impl Serialize + Restrict + Into<InputRequest>,
    ) -> Result<T, AskError> {
        self.check(capability)?;
        match self.era() {
            Era::Modern => self.ask_in_round(key, question.into()).await,
            Era::Legacy => {
                self.begin();
                self.ask_now(method, question).await
            }
        }
    }

    /// Makes sure that the client can be asked at all.
    fn check(&self, capability: ClientCapability) -> Result<(), AskError> {
        // Of a legacy client without a session nothing is known; that is what would have to change (S0.28).
        if self.era() == Era::Legacy && self.is_stateless() {
            return Err(AskError::NoBackChannel("a session is needed to ask the client something"));
        }
        self.require(capability)
    }

    /// Asks a legacy client by a request of its own; older revisions get the question as far as they can express it.
    pub(crate) async fn ask_now<T: DeserializeOwned>(
        &self,
        method: Method,
        mut question: impl Serialize + Restrict,
    ) -> Result<T, AskError> {
        let restriction = restrict_to(&mut question, self.revision());
        if !restriction.may_be_sent() {
            let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
            let (revision, what) = (self.revision(), what.join(", "));
            return Err(AskError::InvalidRequest(format!("{revision} cannot express the question: {what}")));
        }
        let invalid = |fault: serde_json::Error| AskError::InvalidRequest(fault.to_string());
        let question = RawObject::new(&question).map_err(invalid)?;
        // A person may take their time, and says nothing meanwhile.
        let options = AskOptions::default().idle_timeout(None);
        ask(self.shared(), Some(self.scope().key()), method, question, options).await
    }
}

#[cfg(feature = "mrtr")]
impl RequestContext {
    /// Notes that the handler does not return its questions.
    fn begin(&self) {
        rounds::begin(self);
    }

    /// Finds the answer to a question; without one the round is over, and this never returns.
    async fn ask_in_round<T: DeserializeOwned>(&self, key: &str, question: InputRequest) -> Result<T, AskError> {
        match rounds::ask(self, key, &question)? {
            mcp_mrtr::Asked::Answered(answer) => answer
                .decode()
                .map_err(|fault| AskError::InvalidInput { key: key.to_owned(), fault: fault.to_string() }),
            mcp_mrtr::Asked::Open => {
                self.shared().suspend(self.scope().key());
                // The handler is dropped here. What it spawned elsewhere hears that there will be no answer.
                self.cancelled().await;
                Err(AskError::NoBackChannel("the round has ended with this question"))
            }
        }
    }
}

#[cfg(not(feature = "mrtr"))]
impl RequestContext {
    #[expect(clippy::unused_self, reason = "there is nothing to note it in")]
    fn begin(&self) {}

    async fn ask_in_round<T>(&self, _: &str, _: InputRequest) -> Result<T, AskError> {
        Err(AskError::NoBackChannel("a modern client is asked with the feature `mrtr` of `mcp-server`"))
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
            schema.fill_defaults(&mut content);
            schema.check(&content).map_err(|fault| AskError::InvalidResponse(fault.to_string()))?;
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
    options: AskOptions,
) -> Result<T, AskError> {
    let (number, answer) = shared.ask(related, method, params, options);
    let asked = Asked { shared, number, is_open: true };
    let answer = answer.wait().await;
    asked.answered();
    let answer = answer.unwrap_or(Err(AskError::NoResponse(CallError::Disconnected)))?;
    answer.decode().map_err(|fault| AskError::InvalidResponse(fault.to_string()))
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
            self.shared.withdraw(self.number);
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
