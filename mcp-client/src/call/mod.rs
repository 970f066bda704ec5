//! Calls to the server.

mod builders;
mod cancel;
pub(crate) mod exchange;
pub(crate) mod headers;
mod one_round;
#[cfg(feature = "validate")]
mod output_schema;
mod params;
pub(crate) mod pending_call;
pub(crate) mod recovery;
mod task_call;
pub(crate) mod telemetry;
pub(crate) mod tool_refresh;

use std::any::Any;
use std::borrow::Cow;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::{CallError, CallOptions};
use mcp_mrtr::{Retry, RetryAction, RetryError};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    ErrorCode, ErrorObject, InputRequest, InputResponses, JsonObject, Method, ObjectBuf, ObjectRef,
    ProgressNotificationParams, RawJson, RawObject, RequestMeta, RequestParams, ResultType, Revision,
};
use serde::de::DeserializeOwned;
use tracing::{Instrument as _, Span};

use crate::cache::{CacheKey, Cached, Owner};
use crate::client::Client;
use crate::context::{CallContext, CallExtensions, MessageContext};
use crate::error::Error;
use crate::input::InputResult;
use crate::observed::{self, ObservedCall};
use crate::state::timers::Sleep;
use crate::tasks::{CreatedTask, TaskModel};

pub use self::cancel::CancelHandle;
use self::exchange::{Exchange, Failure, Response};
use self::headers::HeadersOf;
pub use self::one_round::RoundOutcome;
#[cfg(feature = "validate")]
pub use self::output_schema::OutputSchema;
pub(crate) use self::params::Params;
use self::params::invalid;
use self::recovery::Recovery;

/// A call to the server, which is sent when it is awaited.
///
/// ```no_run
/// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
/// use std::time::Duration;
///
/// let result = client
///     .call_tool("copy")
///     .arguments(&serde_json::json!({ "from": "a", "to": "b" }))
///     .idle_timeout(Duration::from_secs(10))
///     .on_progress(|progress| eprintln!("{} done", progress.progress))
///     .await?;
/// # drop(result);
/// # Ok(())
/// # }
/// ```
///
/// Dropping the future cancels the call, and so does [`CancelHandle::cancel`]. If a modern server responds with input
/// requests, the handlers of the call ([`on_input`](Self::on_input)) and of the client run, and the call is sent again with
/// their results. [`one_round`](Self::one_round) returns the input requests instead.
///
/// If the server makes a task of a tool call, the call follows it to its end, and dropping the call cancels the task.
/// [`as_task`](Self::as_task) returns a handle instead.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<R> {
    client: Client,
    method: Method,
    params: Params,
    /// The name of the tool for the headers, once the parameters are encoded and until the call is sent.
    tool: Option<String>,
    meta: Option<RequestMeta>,
    input_responses: Option<InputResponses>,
    request_state: Option<String>,
    /// How long a task should be kept.
    task_ttl: Option<Duration>,
    context: CallContext,
    options: CallOptions,
    on_progress: Option<Box<dyn FnMut(ProgressNotificationParams) + Send>>,
    skip_cache: bool,
    cancel: Option<CancelHandle>,
    /// The span of the call, once it is sent.
    span: Span,
    /// The member of the result that contains the items, if the result is a page of a list.
    items_member: Option<&'static str>,
    /// Called with each result before it is returned, and with its JSON and the credentials that it was requested with.
    inspect: fn(&Client, &mut R, &PayloadBuf, Owner),
    result: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned + Send + 'static> Call<R> {
    pub(crate) fn new(client: &Client, method: Method, params: impl Into<Params>) -> Self {
        Self {
            options: client.shared.settings.call_options,
            client: client.clone(),
            method,
            params: params.into(),
            tool: None,
            meta: None,
            input_responses: None,
            request_state: None,
            task_ttl: None,
            context: CallContext::default(),
            on_progress: None,
            skip_cache: false,
            cancel: None,
            span: Span::none(),
            items_member: None,
            inspect: |_, _, _, _| (),
            result: PhantomData,
        }
    }

    /// Marks the result as a page of a list, whose items are in this member.
    pub(crate) fn items_member(mut self, member: &'static str) -> Self {
        self.items_member = Some(member);
        self
    }

    /// Calls a function with each result before it is returned.
    pub(crate) fn inspect(mut self, inspect: fn(&Client, &mut R, &PayloadBuf, Owner)) -> Self {
        self.inspect = inspect;
        self
    }

    /// Sets how long to wait for a message of the server. Progress notifications restart it, and the time in which a legacy
    /// server waits for the response to a request of its own is not counted. Defaults to the value of
    /// [`ClientBuilder::call_options`](crate::ClientBuilder::call_options), which defaults to 60 seconds. `None` disables it.
    pub fn idle_timeout(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.options = self.options.idle_timeout(idle.into());
        self
    }

    /// Sets how long one request may take, regardless of progress, and how long the task may take that a tool call has
    /// become. The time that handlers need for input requests of a modern server is not counted; a legacy server waits for
    /// them within its request. Defaults to the value of
    /// [`ClientBuilder::call_options`](crate::ClientBuilder::call_options), which defaults to 10 minutes. `None`
    /// disables it.
    pub fn total_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.options = self.options.total_timeout(limit.into());
        self
    }

    /// Calls a function with each progress notification, in the task that awaits the call.
    pub fn on_progress(mut self, handler: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(handler));
        self
    }

    /// Handles the elicitation, sampling and roots requests of this call. A request for which the function returns `None` is
    /// left to the handlers of the client.
    ///
    /// The client has to declare the capabilities: those of its handlers, and those of
    /// [`ClientBuilder::capabilities`](crate::ClientBuilder::capabilities). See [`MessageContext`]
    /// for the requests that are known to belong to a call; others are left to the handlers of the client. The requests of a
    /// legacy server are passed without their progress token. Form content is
    /// completed and checked as that of [`on_form_elicitation`](crate::ClientBuilder::on_form_elicitation) is. If the
    /// call is dropped while the function handles a request of a legacy server, the function goes on until the server cancels
    /// that request.
    ///
    /// ```no_run
    /// use mcp_client::types::{ElicitAction, ElicitResult, InputRequest};
    ///
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// let call = client.call_tool("delete").on_input(async |request| match request {
    ///     InputRequest::Elicit(_) => Ok(Some(ElicitResult::new(ElicitAction::Decline).into())),
    ///     _ => Ok(None),
    /// });
    /// let result = call.await?;
    /// # drop(result);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_input<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(InputRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<InputResult>, ErrorObject>> + Send + 'static,
    {
        self.context.on_input = Some(Arc::new(move |request| Box::pin(function(request))));
        self
    }

    /// Attaches what is attached to another call.
    pub(crate) fn context(mut self, context: CallContext) -> Self {
        self.context = context;
        self
    }

    /// Sets both timeouts.
    pub(crate) fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Attaches the values of another call.
    pub(crate) fn extensions(mut self, extensions: CallExtensions) -> Self {
        self.context.extensions = extensions;
        self
    }

    /// Attaches a value to the call, which replaces one of the same type. It is not sent: handlers of the call's
    /// server-to-client requests and log messages get it in their [`MessageContext`], and a transport
    /// selects the credentials of the call with it.
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.context.extensions.insert(value);
        self
    }

    /// Sets the `_meta` of the request. The result of a call with metadata is not cached.
    pub fn meta(mut self, meta: RequestMeta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Sends the call even if there is a cached result, which the new result replaces.
    pub fn skip_cache(mut self) -> Self {
        self.skip_cache = true;
        self
    }

    /// Returns a handle that cancels the call, which then fails with [`Error::Cancelled`].
    pub fn cancel_handle(&mut self) -> CancelHandle {
        self.cancel.get_or_insert_default().clone()
    }

    /// Sends the call; also returns the size of the result as JSON, in bytes.
    pub(crate) fn with_size(self) -> impl Future<Output = Result<(R, usize), Error>> + Send {
        self.start(Extent::Whole, |call, finished| match finished {
            Finished::Complete(result, owner) | Finished::InputRequired(result, owner) => call.decode(&result, owner),
            Finished::Task(_) => Err(unexpected("the server created a task")),
        })
    }

    /// Sends the call once, and returns the result as it is.
    pub(crate) fn payload(self) -> impl Future<Output = Result<PayloadBuf, Error>> + Send {
        self.start(Extent::OneRound, |_, finished| match finished {
            Finished::Complete(result, _) => Ok(result),
            Finished::InputRequired(..) => Err(unexpected("the server requires input for a request that has none")),
            Finished::Task(_) => Err(unexpected("the server created a task")),
        })
    }

    /// Sends the call, as far as `extent` says, and reads the result.
    fn start<T: Send>(
        mut self,
        extent: Extent,
        read: impl FnOnce(&Self, Finished) -> Result<T, Error> + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let params = self.encode_params();
        let span = telemetry::span(
            &self.method,
            params.as_ref().ok().map(ObjectRef::from),
            self.client.shared.settings.network,
        );
        self.span = span.clone();
        let call = async move {
            let (params, invalid) = match params {
                Ok(params) => (params, None),
                Err(error) => (ObjectBuf::new(), Some(error)),
            };
            let mut observed =
                ObservedCall::start(&self.client.shared, &self.method, || target(&self.method, (&params).into()));
            let finished = match invalid {
                Some(error) => Err(error),
                None => self.run(&params, extent).await,
            };
            let is_watched = observed.is_some() || !self.span.is_disabled();
            let mut reported = finished.as_ref().ok().filter(|_| is_watched).map(Finished::outcome);
            let outcome = finished.and_then(|finished| read(&self, finished));
            if let (Err(error), true) = (&outcome, is_watched) {
                reported = Some(observed::outcome_of(error));
            }
            if let Some(reported) = reported {
                telemetry::end(&self.span, reported);
                if let Some(observed) = &mut observed {
                    observed.set_outcome(reported);
                }
            }
            outcome
        };
        call.instrument(span)
    }

    fn encode_params(&mut self) -> Result<ObjectBuf, Error> {
        let (params, tool) = std::mem::replace(&mut self.params, Params::Invalid(Error::Cancelled)).encode()?;
        self.tool = tool;
        let (responses, state) = (self.input_responses.take(), self.request_state.take());
        if responses.is_none() && state.is_none() {
            return Ok(params);
        }
        let mut params: JsonObject = params.decode().map_err(invalid)?;
        if let Some(responses) = responses {
            params.insert("inputResponses", RawJson::new(&responses).map_err(invalid)?);
        }
        if let Some(state) = state {
            params.insert("requestState", RawJson::new(&state).map_err(invalid)?);
        }
        RawObject::new(&params).map(ObjectBuf::from).map_err(invalid)
    }

    async fn run(&mut self, params: &ObjectBuf, extent: Extent) -> Result<Finished, Error> {
        let cancel = self.cancel.take();
        let mut call = pin!(self.load_or_send(params, extent));
        poll_fn(|cx| match cancel.as_ref().map(|cancel| cancel.poll(cx.waker())) {
            Some(Poll::Ready(())) => Poll::Ready(Err(Error::Cancelled)),
            Some(Poll::Pending) | None => call.as_mut().poll(cx),
        })
        .await
    }

    /// Returns the cached result, or sends the call.
    async fn load_or_send(&mut self, params: &ObjectBuf, extent: Extent) -> Result<Finished, Error> {
        let shared = Arc::clone(&self.client.shared);
        // C-5: the trace context does not affect the result; metadata of the caller may.
        let is_cacheable = self.meta.is_none();
        let may_be_task = self.method == Method::TOOLS_CALL && shared.settings.follow_limits.is_some();
        let mut offers_tasks = false;
        // The credentials are set and the cache is read under one lock, so that no other request comes in between.
        let has_own_credentials = !self.context.extensions.is_empty();
        let mut look_up = |owner: Owner| {
            shared.with(|core, now| {
                if let Owner::Known(credentials) = owner
                    && !has_own_credentials
                {
                    core.set_credentials(credentials);
                }
                offers_tasks = may_be_task && core.tool_tasks.is_offered;
                let key = core.cache.key(&self.method, params.into()).filter(|_| is_cacheable);
                let cached = match &key {
                    Some(key) if !self.skip_cache => core.cache.get(key, owner, now),
                    Some(_) | None => Cached::Miss,
                };
                (key, cached)
            })
        };
        let mut owner = if shared.settings.credentials.is_none() { Owner::Fixed } else { Owner::Unknown };
        let (mut key, mut cached) = look_up(owner);
        if let Cached::Private = cached {
            // C-12: a private result is returned only for the credentials that a request would be sent with now.
            owner = shared.owner_of(&self.context.extensions).await?;
            (key, cached) = look_up(owner);
        }
        if key.is_some() && !self.skip_cache {
            observed::cache_lookup(&shared, matches!(cached, Cached::Hit(_)));
        }
        if let Cached::Hit(result) = cached {
            return Ok(Finished::Complete(result, owner));
        }
        let with_meta = self.with_meta(params)?;
        self.send(with_meta.as_ref().unwrap_or(params), key, extent, offers_tasks).await
    }

    /// Returns the parameters with the metadata of the caller and the trace context, if there are any.
    // X-15
    fn with_meta(&mut self, params: &ObjectBuf) -> Result<Option<ObjectBuf>, Error> {
        let trace = self.client.shared.settings.trace_context.as_ref().and_then(|trace| trace());
        // The kernel requests progress for calls with an idle timeout.
        let wants_progress = self.on_progress.is_some() && self.options.idle_timeout.is_none();
        if self.meta.is_none() && trace.is_none() && !wants_progress {
            return Ok(None);
        }
        let mut params: RequestParams = params.decode().map_err(invalid)?;
        let meta = params.meta.get_or_insert_default();
        if let Some(own) = self.meta.take() {
            *meta = own;
        }
        if let Some(trace) = trace
            && meta.trace_context().traceparent().is_none()
        {
            meta.set_trace_context(&trace);
        }
        if wants_progress && meta.progress_token.is_none() {
            meta.progress_token = Some(self.method.as_str().into());
        }
        RawObject::new(&params).map(|params| Some(ObjectBuf::from(params))).map_err(invalid)
    }

    /// Sends the call, again after a recovery or with the results of input requests.
    async fn send(
        &mut self,
        params: &ObjectBuf,
        key: Option<CacheKey>,
        extent: Extent,
        mut offers_tasks: bool,
    ) -> Result<Finished, Error> {
        // The parameters with which the request asks for a task, as in 2025-11-25.
        let mut augmented = None;
        if offers_tasks {
            augmented = Box::pin(self.augmentation().apply(params, extent == Extent::UntilTask)).await?;
        }
        let mut recovery = Recovery::default();
        let mut retry: Option<Retry> = None;
        let mut next_round: Option<RawObject> = None;
        loop {
            let params = augmented.as_ref().unwrap_or(params);
            let tool = self.tool.take();
            let headers_of = HeadersOf::call(&self.client.shared, &self.method, tool, &self.context.extensions).await?;
            let sent = next_round.as_ref().map_or_else(|| ObjectRef::from(params), ObjectRef::from);
            let outcome = self.exchange(sent, headers_of).await;
            let Response { outcome, sent_with } = match outcome {
                Ok(response) => response,
                Err(Failure::Local(error)) => return Err(error),
                // What few calls need is boxed here and below, which keeps the future small.
                Err(Failure::Call { error, revision, reason }) => {
                    if Box::pin(recovery.recover(
                        &self.client,
                        &self.context.extensions,
                        &self.method,
                        revision,
                        &error,
                    ))
                    .await
                    {
                        continue;
                    }
                    let is_missing =
                        matches!(&error, CallError::Rejected(error) if error.code == ErrorCode::METHOD_NOT_FOUND);
                    if is_missing && augmented.is_none() && std::mem::take(&mut offers_tasks) {
                        augmented = Box::pin(self.augmentation().apply_if_required(params)).await?;
                        if augmented.is_some() {
                            continue;
                        }
                    }
                    if let (CallError::Rejected(error), Some(key)) = (&error, &key)
                        && error.code == ErrorCode::INVALID_PARAMS
                    {
                        self.client.shared.with(|core, _| core.cache.remove_list(key));
                    }
                    return Err(Error::of_call(error, reason.as_deref()));
                }
            };
            let owner = if self.client.shared.settings.credentials.is_none() {
                Owner::Fixed
            } else {
                sent_with.map_or(Owner::Unknown, Owner::Known)
            };
            if outcome.result_type == ResultType::INPUT_REQUIRED {
                if extent == Extent::OneRound {
                    return Ok(Finished::InputRequired(outcome.result, owner));
                }
                observed::input_round(&self.client.shared, &self.method);
                let retry = match &mut retry {
                    Some(retry) => retry,
                    None => retry.insert(Retry::new(&params.to_object(), self.client.shared.settings.retry_limits)?),
                };
                next_round =
                    Some(Box::pin(run_input_requests(&self.client, &self.context, retry, &outcome.result)).await?);
                continue;
            }
            let created = if outcome.result_type == ResultType::TASK {
                Some(TaskModel::Extension)
            } else {
                // B-83: a server that has no tasks responds with the result.
                (augmented.is_some() && outcome.result.get("task").is_some()).then_some(TaskModel::Core)
            };
            // An application that has declared the extension itself does the rest.
            if let Some(model) = created
                && self.client.shared.settings.follow_limits.is_some()
            {
                let created = self.read_task(model, params.into(), &outcome.result)?;
                if extent != Extent::Whole {
                    return Ok(Finished::Task(Box::new(created)));
                }
                return Ok(Finished::Complete(self.follow(created).await?, owner));
            }
            // C-6: a result that depends on input is not reused.
            if let (Some(key), None) = (key, retry) {
                self.client.shared.with(|core, now| core.cache.insert(key, &outcome.result, owner, now));
            }
            return Ok(Finished::Complete(outcome.result, owner));
        }
    }

    async fn exchange(&mut self, params: ObjectRef<'_>, headers_of: HeadersOf) -> Result<Response, Failure> {
        let (client, context) = (&self.client, &self.context);
        let on_progress = self.on_progress.as_deref_mut().map(|handler| handler as &mut (dyn FnMut(_) + Send));
        let exchange =
            Exchange::new(&client.shared, &self.method, params, self.options, context, headers_of, on_progress);
        exchange.span(&self.span).await
    }

    fn decode(&self, result: &PayloadBuf, owner: Owner) -> Result<(R, usize), Error> {
        if let Some(member) = self.items_member {
            self.client.shared.settings.list_limits.check_page(result, member)?;
        }
        let mut decoded = result.decode().map_err(|fault| Error::InvalidResponse(fault.to_string()))?;
        (self.inspect)(&self.client, &mut decoded, result, owner);
        Ok((decoded, result.as_str().len()))
    }
}

/// Returns the name of the tool or prompt, for metrics.
fn target<'a>(method: &Method, params: ObjectRef<'a>) -> Option<Cow<'a, str>> {
    let is_named = *method == Method::TOOLS_CALL || *method == Method::PROMPTS_GET;
    if is_named { telemetry::name_param(params) } else { None }
}

/// How far a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// To its result.
    Whole,
    /// To the first response that is not an error.
    OneRound,
    /// To its result, or to a task.
    UntilTask,
}

/// How a call ended: with a result, with an [`InputRequiredResult`](mcp_types::InputRequiredResult) if it is sent in one
/// round only, or with a task that it does not follow. Results have the credentials that they were requested with.
enum Finished {
    Complete(PayloadBuf, Owner),
    InputRequired(PayloadBuf, Owner),
    Task(Box<CreatedTask>),
}

impl Finished {
    /// The outcome, for metrics. A tool that failed says so in its result.
    fn outcome(&self) -> OperationOutcome {
        match self {
            Self::InputRequired(..) => OperationOutcome::InputRequired,
            Self::Complete(result, _) if result.get("isError").is_some_and(|is_error| is_error.get() == "true") => {
                OperationOutcome::ToolError
            }
            Self::Complete(..) | Self::Task(_) => OperationOutcome::Completed,
        }
    }
}

fn unexpected(what: &str) -> Error {
    Error::InvalidResponse(what.to_owned())
}

/// Runs the handlers of the input requests of a modern server; returns the parameters of the next request.
async fn run_input_requests(
    client: &Client,
    context: &CallContext,
    retry: &mut Retry,
    result: &PayloadBuf,
) -> Result<RawObject, Error> {
    let next = retry.handle_payload(result).map_err(|error| {
        if let RetryError::InvalidResult(fault) = error { Error::InvalidResponse(fault) } else { error.into() }
    })?;
    match next {
        RetryAction::Wait(duration) => Sleep::new(&client.shared, duration).await,
        RetryAction::Respond(requests) => {
            for (key, request) in requests.iter() {
                let context = MessageContext::new(Some(context.clone()));
                let handlers = &client.shared.settings.request_handlers;
                let result = handlers.handle_input(context, request.clone(), Revision::LATEST).await;
                let result = result.map_err(|error| Error::InputRequestFailed { key: key.to_owned(), error })?;
                retry.respond(key, result)?;
            }
        }
    }
    Ok(retry.params()?)
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for Call<R> {
    type Output = Result<R, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<R, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.with_size().await.map(|(result, _)| result) })
    }
}

impl<R> std::fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}
