//! A call to the server, before it is made.

pub(crate) mod exchange;
pub(crate) mod headers;
#[cfg(feature = "validate")]
mod output_schema;
pub(crate) mod pending_call;
pub(crate) mod recovery;
mod structured;
pub(crate) mod telemetry;
pub(crate) mod tool_refresh;

use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use mcp_kernel::client::Outcome;
use mcp_kernel::{CallError, CallOptions};
use mcp_mrtr::{Next, Retry, RetryError};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{ErrorCode, Method, ProgressNotificationParams, RawObject, RequestMeta, RequestParams, ResultType};
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use crate::cache::{Asked, Found};
use crate::client::Client;
use crate::error::Error;
use crate::state::timers::Sleep;
use crate::transport::CredentialFingerprint;

use self::exchange::{Exchange, Failure};
pub use self::headers::Headers;
#[cfg(feature = "validate")]
pub use self::output_schema::OutputSchema;
use self::recovery::Attempt;

/// A call that is made when it is awaited.
///
/// ```no_run
/// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
/// use std::time::Duration;
///
/// let result = client
///     .call_tool("copy", &serde_json::json!({ "from": "a", "to": "b" }))
///     .idle_timeout(Duration::from_secs(10))
///     .on_progress(|progress| eprintln!("{} done", progress.progress))
///     .await?;
/// # drop(result);
/// # Ok(())
/// # }
/// ```
///
/// Dropping the future cancels the call, and so does [`CancelHandle::cancel`]. A modern server that asks something before
/// it completes the call is answered by the functions that the client was built with, and called again.
#[must_use = "a call is made when it is awaited"]
pub struct Call<R> {
    client: Client,
    method: Method,
    params: Result<RawObject, Error>,
    meta: Option<RequestMeta>,
    options: CallOptions,
    on_progress: Option<Box<dyn FnMut(ProgressNotificationParams) + Send>>,
    is_fresh: bool,
    cancel: Option<CancelHandle>,
    /// The member of the result that holds the items, if it is a page of a list.
    items: Option<&'static str>,
    /// What is done with each result before it is given away.
    inspect: fn(&Client, &mut R) -> Result<(), Error>,
    result: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned + Send + 'static> Call<R> {
    pub(crate) fn new(client: &Client, method: Method, params: Result<RawObject, serde_json::Error>) -> Self {
        Self {
            options: client.shared.settings.calls,
            client: client.clone(),
            method,
            params: params.map_err(|fault| Error::InvalidParams(fault.to_string())),
            meta: None,
            on_progress: None,
            is_fresh: false,
            cancel: None,
            items: None,
            inspect: |_, _| Ok(()),
            result: PhantomData,
        }
    }

    /// Says that the result is a page of a list, whose items are in this member.
    pub(crate) fn lists(mut self, member: &'static str) -> Self {
        self.items = Some(member);
        self
    }

    /// Does something with the result before it is given away.
    pub(crate) fn inspect(mut self, inspect: fn(&Client, &mut R) -> Result<(), Error>) -> Self {
        self.inspect = inspect;
        self
    }

    /// How long the server may be silent; progress starts it anew. The time that a legacy server waits for the answer to a
    /// request of its own is not counted. Default: what the client was built with, else 60 s.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.options = self.options.with_idle(Some(idle));
        self
    }

    /// How long one round may take, whatever progress arrives. Default: what the client was built with, else 10 min.
    /// The time that people need to answer a modern server is not counted; a legacy one waits for it within the round.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options = self.options.with_limit(Some(limit));
        self
    }

    /// Hears of progress, in the task that awaits the call.
    pub fn on_progress(mut self, listener: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(listener));
        self
    }

    /// Adds metadata, such as a trace context of its own.
    pub fn meta(mut self, meta: RequestMeta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Asks the server even if it allowed an earlier answer to be used again; this one will be, then.
    pub fn fresh(mut self) -> Self {
        self.is_fresh = true;
        self
    }

    /// A handle by which the call can be cancelled from elsewhere; it then ends with [`Error::Cancelled`].
    pub fn cancel_handle(&mut self) -> CancelHandle {
        self.cancel.get_or_insert_default().clone()
    }

    /// Makes the call; returns the size of the result as JSON, too.
    pub(crate) fn measured(self) -> impl Future<Output = Result<(R, usize), Error>> + Send {
        let span = telemetry::span(&self.method, self.params.as_ref().ok());
        let current = span.clone();
        let call = async move {
            let outcome = self.run().await;
            if let Err(error) = &outcome {
                telemetry::end(&current, error);
            }
            outcome
        };
        call.instrument(span)
    }

    async fn run(mut self) -> Result<(R, usize), Error> {
        let params = std::mem::replace(&mut self.params, Err(Error::Cancelled))?;
        let handle = self.cancel.take();
        let mut call = pin!(self.obtain(params));
        poll_fn(|cx| match handle.as_ref().map(|handle| handle.poll(cx.waker())) {
            Some(Poll::Ready(())) => Poll::Ready(Err(Error::Cancelled)),
            Some(Poll::Pending) | None => call.as_mut().poll(cx),
        })
        .await
    }

    /// Takes the result from the cache, or makes the call.
    async fn obtain(&mut self, params: RawObject) -> Result<(R, usize), Error> {
        let shared = Arc::clone(&self.client.shared);
        // C-5: where a call comes from does not matter to its answer; metadata of the caller's own may.
        let is_kept = self.meta.is_none();
        // Who asks is noted, and what there is for them looked up, without anything else in between.
        let look = |by: Option<CredentialFingerprint>, knows_who_asks: bool| {
            shared.with(|core, now| {
                if let Some(by) = by {
                    core.set_credentials(by);
                }
                let asked = core.cache.asked(&self.method, &params).filter(|_| is_kept);
                let found = match &asked {
                    Some(asked) if !self.is_fresh => core.cache.get(asked, knows_who_asks, now),
                    Some(_) | None => Found::Nothing,
                };
                (asked, found)
            })
        };
        let source = shared.settings.credentials.as_ref();
        let (mut asked, mut found) = look(None, source.is_none());
        if let (Found::Private, Some(source)) = (&found, source) {
            // C-12: no request is about to be sent that would show whose credentials are at hand.
            let by = source.fingerprint().await;
            (asked, found) = look(Some(by), true);
        }
        if let Found::Answer(kept) = found {
            return self.read(&kept);
        }
        let params = self.with_meta(params)?;
        self.make(params, asked).await
    }

    /// Adds metadata of the caller's, and where the call comes from.
    // X-15
    fn with_meta(&mut self, params: RawObject) -> Result<RawObject, Error> {
        let trace = self.client.shared.settings.trace.as_ref().and_then(|trace| trace());
        // Calls whose silence is limited ask for progress by themselves.
        let wants_progress = self.on_progress.is_some() && self.options.idle.is_none();
        if self.meta.is_none() && trace.is_none() && !wants_progress {
            return Ok(params);
        }
        let wrong = |fault: serde_json::Error| Error::InvalidParams(fault.to_string());
        let mut params: RequestParams = params.decode().map_err(wrong)?;
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
        RawObject::new(&params).map_err(wrong)
    }

    /// Makes the call, as often as it takes.
    async fn make(&mut self, params: RawObject, asked: Option<Asked>) -> Result<(R, usize), Error> {
        let mut attempt = Attempt::default();
        let mut retry: Option<Retry> = None;
        let mut next_round: Option<RawObject> = None;
        loop {
            let outcome = self.exchange(next_round.as_ref().unwrap_or(&params)).await;
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(Failure::Local(error)) => return Err(error),
                // What few calls need is boxed here and below, so that all others are small.
                Err(Failure::Call { error, revision, why }) => {
                    if Box::pin(attempt.mend(&self.client, &self.method, revision, &error)).await {
                        continue;
                    }
                    if let (CallError::Rejected(error), Some(asked)) = (&error, &asked)
                        && error.code == ErrorCode::INVALID_PARAMS
                    {
                        self.client.shared.with(|core, _| core.cache.forget_pages(asked));
                    }
                    return Err(Error::of_call(error, why.as_deref()));
                }
            };
            if outcome.result_type == ResultType::INPUT_REQUIRED {
                let retry = match &mut retry {
                    Some(retry) => retry,
                    None => retry.insert(Retry::new(&params, self.client.shared.settings.rounds)?),
                };
                next_round = Some(Box::pin(answer(&self.client, retry, &outcome.result)).await?);
                continue;
            }
            // C-6: what depends on answers is good for this call alone.
            if let (Some(asked), None) = (asked, retry) {
                self.client.shared.with(|core, now| core.cache.keep(asked, &outcome.result, now));
            }
            return self.read(&outcome.result);
        }
    }

    async fn exchange(&mut self, params: &RawObject) -> Result<Outcome, Failure> {
        let on_progress = self.on_progress.as_deref_mut().map(|listener| listener as &mut (dyn FnMut(_) + Send));
        Exchange::new(&self.client.shared, &self.method, params, self.options, on_progress).await
    }

    fn read(&self, result: &PayloadBuf) -> Result<(R, usize), Error> {
        if let Some(member) = self.items {
            self.client.shared.settings.lists.check_page(result, member)?;
        }
        let mut decoded = decode(result)?;
        (self.inspect)(&self.client, &mut decoded)?;
        Ok((decoded, result.as_str().len()))
    }
}

/// Answers what a modern server asks; returns the parameters of the next round.
async fn answer(client: &Client, retry: &mut Retry, result: &PayloadBuf) -> Result<RawObject, Error> {
    let next = retry.handle_payload(result).map_err(|error| {
        if let RetryError::InvalidResult(fault) = error { Error::InvalidAnswer(fault) } else { error.into() }
    })?;
    match next {
        Next::Wait(duration) => Sleep::new(&client.shared, duration).await,
        Next::Answer(questions) => {
            for (key, question) in questions.iter() {
                let answer = client.shared.settings.answers.answer_input(question.clone()).await;
                let answer = answer.map_err(|error| Error::Unanswered { key: key.to_owned(), error })?;
                retry.answer(key, answer)?;
            }
        }
    }
    Ok(retry.params()?)
}

fn decode<T: DeserializeOwned>(result: &PayloadBuf) -> Result<T, Error> {
    result.decode().map_err(|fault| Error::InvalidAnswer(fault.to_string()))
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for Call<R> {
    type Output = Result<R, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<R, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.measured().await.map(|(result, _)| result) })
    }
}

impl<R> std::fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Cancels a call from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Mutex<CancelState>>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: bool,
    waker: Option<Waker>,
}

impl CancelHandle {
    /// Cancels the call; does nothing if it has ended.
    pub fn cancel(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_cancelled = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_cancelled {
            return Poll::Ready(());
        }
        state.waker = Some(waker.clone());
        Poll::Pending
    }
}
