//! Requests to the client while a handler runs: elicitation, sampling and roots.

#[cfg(feature = "mrtr")]
use std::future::poll_fn;
use std::sync::Arc;
#[cfg(feature = "mrtr")]
use std::task::Poll;

use mcp_kernel::{CallError, RequestKey};
use mcp_types::{
    ClientCapability, CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams, ElicitRequestUrlParams,
    ElicitValue, Era, InputRequest, Method, OrderedMap, RawObject, RequestMeta, RequestParams, Root, restrict_to,
};
#[cfg(feature = "mrtr")]
use mcp_types::{ErrorObject, RawJson};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "mrtr")]
use crate::asking::error::InvalidInput;
use crate::asking::error::{AskError, MissingCapability};
use crate::asking::options::AskOptions;
use crate::asking::request::ServerRequest;
#[cfg(feature = "mrtr")]
use crate::asking::rounds;
use crate::asking::sent_request::SentRequest;
use crate::asking::target::AskTarget;
use crate::connection::shared::Shared;
use crate::serve::context::RequestContext;
use crate::server::Server;
#[cfg(feature = "mrtr")]
use crate::tasks::port::TaskPort;

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
    /// The future returns an error if `T` is not flat, if no request can be sent to the client, or if its response is not
    /// valid. It is not an error that the user declines.
    // S2.31, EL-20
    pub fn elicit<'a, T>(&'a self, key: &'a str, message: impl Into<String>) -> ServerRequest<'a, Elicited<T>>
    where
        T: JsonSchema + DeserializeOwned + 'a,
    {
        let (target, message) = (AskTarget::Request { ctx: self, key }, message.into());
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit(message, options))
    }

    /// Asks the user to fill in a form with a given schema.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.30
    pub fn elicit_form<'a>(
        &'a self,
        key: &'a str,
        form: ElicitRequestFormParams,
    ) -> ServerRequest<'a, Elicited<ElicitContent>> {
        let target = AskTarget::Request { ctx: self, key };
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit_form(form, options))
    }

    /// Asks the user to visit a web page, for data that must not pass through the client.
    ///
    /// # Errors
    ///
    /// The future returns an error if the URL is not absolute, if no request can be sent to the client, or if the
    /// `elicitation_id` that 2025-11-25 requires is missing.
    // S2.33, EL-10
    pub fn elicit_url<'a>(&'a self, key: &'a str, params: ElicitRequestUrlParams) -> ServerRequest<'a, Elicited<()>> {
        let target = AskTarget::Request { ctx: self, key };
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit_url(params, options))
    }

    /// Requests a completion from the client's model.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.29
    pub fn sample<'a>(
        &'a self,
        key: &'a str,
        params: CreateMessageRequestParams,
    ) -> ServerRequest<'a, CreateMessageResult> {
        let target = AskTarget::Request { ctx: self, key };
        ServerRequest::new(AskOptions::of_users(), move |options| target.sample(params, options))
    }

    /// Requests the roots of the client.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S2.34
    pub fn list_roots<'a>(&'a self, key: &'a str) -> ServerRequest<'a, Vec<Root>> {
        let target = AskTarget::Request { ctx: self, key };
        ServerRequest::new(AskOptions::of_users(), move |options| target.list_roots(options))
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
    /// The result is part of the encrypted `requestState` that the client sends back; keep it small. In a task it is stored
    /// before this returns, and reused by each later run of the handler. If another version of the server stored a result that
    /// is not a `T`, the task fails with an error that names the step.
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
        #[cfg(feature = "mrtr")]
        if let Some(done) = self.task_port().and_then(|port| port.step(key)) {
            return match done.decode() {
                Ok(done) => Ok(done),
                Err(fault) => Err(self.reject_journal("step", key, &fault).await.into()),
            };
        }
        // Without further rounds nothing is repeated.
        #[cfg(feature = "mrtr")]
        if self.is_task() || rounds::allows_input_required(self) {
            if !self.is_task()
                && let Some(done) = rounds::step(self, key).await?
            {
                return done.decode().map_err(|fault| AskError::InvalidRequest(fault.to_string().into()).into());
            }
            if let Some(begun) = self.task_port().and_then(|port| port.begin_step()) {
                begun.await?;
            }
            let result = step().await?;
            let kept = RawJson::new(&result).map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
            self.keep_step(key, kept).await?;
            return Ok(result);
        }
        let _ = key;
        self.mark_awaited();
        step().await
    }

    /// Checks that a request with this capability can be sent to the client.
    pub(super) fn check(&self, capability: ClientCapability) -> Result<(), AskError> {
        // The capabilities of a legacy client without a session are unknown, so this error comes first (S0.28).
        if self.era() == Era::Legacy && self.is_stateless() {
            return Err(AskError::NoBackChannel("server-to-client requests need a session".into()));
        }
        self.require(capability)
    }
}

#[cfg(feature = "mrtr")]
impl RequestContext {
    /// Records that the handler awaits its requests, so that it may not return input requests as well.
    pub(super) fn mark_awaited(&self) {
        rounds::mark_awaited(self);
    }

    /// Stores the result of a step. The call may have become a task since the step began.
    async fn keep_step(&self, key: &str, result: RawJson) -> Result<(), AskError> {
        if !self.is_task() {
            let kept = rounds::complete_step(self, key, result.clone()).await;
            // A task has ended the round.
            if kept.is_ok() || !self.is_task() {
                return kept;
            }
        }
        match self.task_port() {
            Some(port) => port.complete_step(key, result).await,
            None => Ok(()),
        }
    }

    /// Returns the input response of a task. If the handler is to run again with it, this never returns.
    pub(super) async fn ask_in_task<T: DeserializeOwned>(
        &self,
        port: &Arc<dyn TaskPort>,
        key: &str,
        request: InputRequest,
    ) -> Result<T, AskError> {
        let response = port.ask(key, request).await?;
        match response.decode() {
            Ok(response) => Ok(response),
            Err(fault) => Err(self.reject_journal("input response", key, &fault).await),
        }
    }

    /// Ends a task whose journal does not fit its handler. Mostly this never returns.
    async fn reject_journal(&self, what: &str, key: &str, fault: &serde_json::Error) -> AskError {
        tracing::error!(target: "mcp", key, %fault, "the journal of a task does not fit its handler");
        if let Some(port) = self.task_port() {
            let why = format!("the {what} `{key}` of the task was stored by another version of the server");
            port.fail(ErrorObject::internal_error(why));
        }
        self.cancelled().await;
        AskError::NoBackChannel("the task has ended".into())
    }

    /// Returns the input response; without one the round ends, and this never returns.
    pub(super) async fn ask_in_round<T: DeserializeOwned>(
        &self,
        key: &str,
        request: InputRequest,
    ) -> Result<T, AskError> {
        if let Some(response) = rounds::request_input(self, key, &request).await? {
            let invalid = |fault: serde_json::Error| {
                AskError::from(InvalidInput { key: key.to_owned(), fault: fault.to_string() })
            };
            return response.decode().map_err(invalid);
        }
        if self.is_cancelled() {
            // The handler runs in a task of its own, so that it was not dropped.
            return Err(AskError::NoBackChannel("the request has ended".into()));
        }
        let round = self.round();
        round.end_with_poll();
        // The handler is dropped here. Tasks that it spawned get an error once the round has ended.
        let mut end = round.end();
        poll_fn(|cx| if end.poll(cx).is_ready() { Poll::Ready(()) } else { self.poll_end(cx) }).await;
        Err(AskError::NoBackChannel("the round ended with this request".into()))
    }
}

#[cfg(not(feature = "mrtr"))]
impl RequestContext {
    #[expect(clippy::unused_self, reason = "there are no rounds")]
    pub(super) fn mark_awaited(&self) {}

    pub(super) async fn ask_in_round<T>(&self, _: &str, _: InputRequest) -> Result<T, AskError> {
        Err(AskError::NoBackChannel("requests to a modern client need the feature `mrtr` of `mcp-server`".into()))
    }
}

/// Sends a request and waits for the response. Dropping the future cancels the request.
pub(crate) async fn ask<T: DeserializeOwned>(
    shared: &Arc<Shared>,
    server: Option<&Server>,
    related: Option<RequestKey>,
    method: Method,
    params: RawObject,
    mut options: AskOptions,
) -> Result<T, AskError> {
    let mut params = match options.meta.take() {
        Some(meta) => with_meta(shared, &params, *meta)?,
        None => params,
    };
    let request = SentRequest::start(shared, server, &method);
    if let Some(traced) = request.trace_context(server).and_then(|trace| trace.add_to(&params).ok()) {
        params = traced;
    }
    let (number, response) = shared.ask(related, method, params, options, request.span().clone());
    let pending = PendingRequest { shared, number, is_open: true };
    let response = response.wait().await;
    pending.finish();
    let response = response.unwrap_or(Err(AskError::NoResponse(CallError::Disconnected)));
    request.finish(&response);
    response?.decode().map_err(|fault| AskError::InvalidResponse(fault.to_string()))
}

/// Replaces the metadata of a request, restricted to what the client's revision can express.
fn with_meta(shared: &Shared, params: &RawObject, mut meta: RequestMeta) -> Result<RawObject, AskError> {
    if let Some(revision) = shared.lock().kernel.negotiated() {
        let _ = restrict_to(&mut meta, revision);
    }
    let invalid = |fault: serde_json::Error| AskError::InvalidRequest(fault.to_string().into());
    let mut params: RequestParams = params.decode().map_err(invalid)?;
    params.meta = Some(meta);
    RawObject::new(&params).map_err(invalid)
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
