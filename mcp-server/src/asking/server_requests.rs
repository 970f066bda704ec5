//! Requests to the client while a handler runs: elicitation, sampling and roots.

#[cfg(feature = "mrtr")]
use std::future::poll_fn;
use std::sync::Arc;
#[cfg(feature = "mrtr")]
use std::task::Poll;

use mcp_kernel::{CallError, RequestKey};
#[cfg(feature = "mrtr")]
use mcp_types::RawJson;
use mcp_types::{
    ClientCapability, CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestUrlParams, ElicitResult, ElicitValue, Era, InputRequest, ListRootsRequest, ListRootsResult, Method,
    OrderedMap, RawObject, RequestParams, RequestedSchema, Restrict, Revision, Root, restrict_to,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "mrtr")]
use crate::asking::error::InvalidInput;
use crate::asking::error::{AskError, MissingCapability};
use crate::asking::form;
use crate::asking::options::AskOptions;
#[cfg(feature = "mrtr")]
use crate::asking::rounds;
use crate::build::registry::is_scheme;
use crate::connection::shared::Shared;
use crate::serve::context::RequestContext;

/// The values of an accepted form, by member.
pub type ElicitContent = OrderedMap<ElicitValue>;

/// The outcome of an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum Elicited<T> {
    /// The user accepted.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed the request without a choice.
    Cancelled,
}

impl<T> Elicited<T> {
    /// Returns the value that the user accepted with.
    ///
    /// # Errors
    ///
    /// Returns an error if the user declined or cancelled.
    pub fn accepted(self) -> Result<T, NotAccepted> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(NotAccepted::Declined),
            Self::Cancelled => Err(NotAccepted::Cancelled),
        }
    }
}

/// The error of [`Elicited::accepted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these two")]
pub enum NotAccepted {
    /// The user declined.
    #[error("the user declined")]
    Declined,
    /// The user dismissed the request without a choice.
    #[error("the user cancelled")]
    Cancelled,
}

/// Server-to-client requests, with the same API in both eras. `key` identifies the request among those of the handler.
///
/// A legacy client receives a JSON-RPC request while the handler waits. A modern client cannot: its request ends with an
/// `InputRequiredResult`, which has all input requests that were made by then, and the client retries with the responses.
/// **The handler then runs from its beginning**, and gets the response when it makes the same request again. Everything
/// before that is repeated: put what must not be repeated into [`once`](RequestContext::once).
///
/// # Examples
///
/// ```
/// # use mcp_server::{HandlerError, RequestContext};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # async fn charge() -> Result<u32, std::io::Error> { Ok(1) }
/// #[derive(Deserialize, JsonSchema)]
/// struct Address { street: String }
///
/// // Wrong: with a modern client the user pays twice, once in each round.
/// async fn wrong(ctx: RequestContext) -> Result<String, HandlerError> {
///     let receipt = charge().await?;
///     let address: Address = ctx.elicit("address", "Where to?").await?.accepted()?;
///     Ok(format!("{receipt} goes to {}", address.street))
/// }
///
/// // Right: the result of the step is part of the `requestState`, and is reused in the next round.
/// async fn right(ctx: RequestContext) -> Result<String, HandlerError> {
///     let receipt: u32 = ctx.once("charge", || async { charge().await.map_err(HandlerError::from) }).await?;
///     let address: Address = ctx.elicit("address", "Where to?").await?.accepted()?;
///     Ok(format!("{receipt} goes to {}", address.street))
/// }
/// ```
impl RequestContext {
    /// Asks the user to fill in a form with the members of `T`: strings, numbers, booleans and enums.
    ///
    /// Members that the user left out get their defaults. The response is validated against the schema of the form.
    ///
    /// # Errors
    ///
    /// Returns an error if `T` is not flat, if no request can be sent to the client, or if its response is not valid. It is
    /// not an error that the user declines.
    // S2.31, EL-20
    pub async fn elicit<T>(&self, key: &str, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let schema = form::schema_of::<T>().map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
        match self.elicit_form(key, ElicitRequestFormParams::new(message, schema.clone())).await? {
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
            Elicited::Accepted(content) => {
                let read = form::decode(&schema, content);
                read.map(Elicited::Accepted).map_err(|fault| AskError::InvalidResponse(fault.to_string()))
            }
        }
    }

    /// Asks the user to fill in a form with a given schema.
    ///
    /// # Errors
    ///
    /// Returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.30
    pub async fn elicit_form(
        &self,
        key: &str,
        mut form: ElicitRequestFormParams,
    ) -> Result<Elicited<ElicitContent>, AskError> {
        if self.revision() <= Revision::V2025_06_18 {
            form::use_legacy_labels(&mut form.requested_schema);
        }
        // What older revisions cannot express, such as most defaults, still holds for the response.
        let schema = form.requested_schema.clone();
        let result: ElicitResult =
            self.ask(key, ClientCapability::ElicitationForm, Method::ELICITATION_CREATE, form).await?;
        checked(result, &schema)
    }

    /// Asks the user to visit a web page, for data that must not pass through the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not absolute, if no request can be sent to the client, or if the `elicitation_id` that
    /// 2025-11-25 requires is missing.
    // S2.33, EL-10
    pub async fn elicit_url(&self, key: &str, params: ElicitRequestUrlParams) -> Result<Elicited<()>, AskError> {
        if !is_absolute(&params.url) {
            return Err(AskError::InvalidRequest(format!("`{}` is not an absolute URL", params.url).into()));
        }
        let result: ElicitResult =
            self.ask(key, ClientCapability::ElicitationUrl, Method::ELICITATION_CREATE, params).await?;
        Ok(match result.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    /// Requests a completion from the client's model.
    ///
    /// # Errors
    ///
    /// Returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.29
    pub async fn sample(&self, key: &str, params: CreateMessageRequestParams) -> Result<CreateMessageResult, AskError> {
        self.ask(key, ClientCapability::Sampling, Method::SAMPLING_CREATE_MESSAGE, params).await
    }

    /// Requests the roots of the client.
    ///
    /// # Errors
    ///
    /// Returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.34
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        self.check(ClientCapability::Roots)?;
        let result: ListRootsResult = match self.era() {
            Era::Modern => self.ask_in_round(key, ListRootsRequest::default().into()).await?,
            Era::Legacy => {
                self.mark_awaited();
                self.send_legacy_request(Method::ROOTS_LIST, RequestParams::default()).await?
            }
        };
        Ok(result.roots)
    }

    /// Returns an error if the client did not declare a capability. The protocol defines an error code for it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_server::{AskError, ClientCapability, RequestContext};
    /// async fn summarise(ctx: RequestContext) -> Result<String, AskError> {
    ///     ctx.require(ClientCapability::Sampling)?;
    ///     // Expensive work that needs the model afterwards.
    /// #   Ok(String::new())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`AskError::NotSupported`] if the client did not declare it.
    // E-14
    pub fn require(&self, capability: ClientCapability) -> Result<(), AskError> {
        if self.supports(capability) { Ok(()) } else { Err(MissingCapability(capability).into()) }
    }

    /// Runs a step that must not be repeated: in later rounds of the request its result is reused. A step that fails, or that
    /// sends a server-to-client request itself, runs again.
    ///
    /// The result is part of the encrypted `requestState` that the client sends back; keep it small.
    ///
    /// # Errors
    ///
    /// Returns the error of the step, or an error if its result cannot be stored.
    pub async fn once<T, E, F, Fut>(&self, key: &str, step: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<AskError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        // Without further rounds nothing is repeated.
        #[cfg(feature = "mrtr")]
        if rounds::allows_input_required(self) {
            if let Some(done) = rounds::step(self, key)? {
                return done.decode().map_err(|fault| AskError::InvalidRequest(fault.to_string().into()).into());
            }
            let result = step().await?;
            let kept = RawJson::new(&result).map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
            rounds::complete_step(self, key, kept)?;
            return Ok(result);
        }
        let _ = key;
        self.mark_awaited();
        step().await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        key: &str,
        capability: ClientCapability,
        method: Method,
        params: impl Serialize + Restrict + Into<InputRequest>,
    ) -> Result<T, AskError> {
        self.check(capability)?;
        match self.era() {
            Era::Modern => self.ask_in_round(key, params.into()).await,
            Era::Legacy => {
                self.mark_awaited();
                self.send_legacy_request(method, params).await
            }
        }
    }

    /// Checks that a request with this capability can be sent to the client.
    fn check(&self, capability: ClientCapability) -> Result<(), AskError> {
        // The capabilities of a legacy client without a session are unknown, so this error comes first (S0.28).
        if self.era() == Era::Legacy && self.is_stateless() {
            return Err(AskError::NoBackChannel("server-to-client requests need a session".into()));
        }
        self.require(capability)
    }

    /// Sends a request to a legacy client, restricted to what its revision can express.
    pub(crate) async fn send_legacy_request<T: DeserializeOwned>(
        &self,
        method: Method,
        mut params: impl Serialize + Restrict,
    ) -> Result<T, AskError> {
        let restriction = restrict_to(&mut params, self.revision());
        if !restriction.may_be_sent() {
            let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
            let (revision, what) = (self.revision(), what.join(", "));
            return Err(AskError::InvalidRequest(format!("{revision} cannot express the request: {what}").into()));
        }
        let invalid = |fault: serde_json::Error| AskError::InvalidRequest(fault.to_string().into());
        let params = RawObject::new(&params).map_err(invalid)?;
        // Users take their time, and clients report no progress meanwhile.
        let options = AskOptions::default().idle_timeout(None);
        ask(self.shared(), Some(self.scope().key()), method, params, options).await
    }
}

#[cfg(feature = "mrtr")]
impl RequestContext {
    /// Records that the handler awaits its requests, so that it may not return input requests as well.
    fn mark_awaited(&self) {
        rounds::mark_awaited(self);
    }

    /// Returns the input response; without one the round ends, and this never returns.
    async fn ask_in_round<T: DeserializeOwned>(&self, key: &str, request: InputRequest) -> Result<T, AskError> {
        if let Some(response) = rounds::request_input(self, key, &request)? {
            let invalid = |fault: serde_json::Error| {
                AskError::from(InvalidInput { key: key.to_owned(), fault: fault.to_string() })
            };
            return response.decode().map_err(invalid);
        }
        let round = self.round();
        round.end_with_poll();
        // The handler is dropped here. Tasks that it spawned get an error once the round has ended.
        poll_fn(|cx| if round.poll_ended(cx).is_ready() { Poll::Ready(()) } else { self.poll_end(cx) }).await;
        Err(AskError::NoBackChannel("the round ended with this request".into()))
    }
}

#[cfg(not(feature = "mrtr"))]
impl RequestContext {
    #[expect(clippy::unused_self, reason = "there are no rounds")]
    fn mark_awaited(&self) {}

    async fn ask_in_round<T>(&self, _: &str, _: InputRequest) -> Result<T, AskError> {
        Err(AskError::NoBackChannel("requests to a modern client need the feature `mrtr` of `mcp-server`".into()))
    }
}

/// Whether a URL has a scheme and an authority or path, and no white space.
fn is_absolute(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    is_scheme(scheme) && !rest.is_empty() && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// Validates the response to a form.
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

/// Sends a request and waits for the response. Dropping the future cancels the request.
pub(crate) async fn ask<T: DeserializeOwned>(
    shared: &Arc<Shared>,
    related: Option<RequestKey>,
    method: Method,
    params: RawObject,
    options: AskOptions,
) -> Result<T, AskError> {
    let (number, response) = shared.ask(related, method, params, options);
    let pending = PendingRequest { shared, number, is_open: true };
    let response = response.wait().await;
    pending.finish();
    let response = response.unwrap_or(Err(AskError::NoResponse(CallError::Disconnected)))?;
    response.decode().map_err(|fault| AskError::InvalidResponse(fault.to_string()))
}

/// Withdraws the request if it is dropped before the response has arrived.
struct PendingRequest<'a> {
    shared: &'a Shared,
    number: u64,
    is_open: bool,
}

impl PendingRequest<'_> {
    fn finish(mut self) {
        self.is_open = false;
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.shared.withdraw(self.number);
        }
    }
}
