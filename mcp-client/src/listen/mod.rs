//! Subscriptions to changes, in either era.

pub(crate) mod changes;
mod future;
pub(crate) mod legacy;

use std::future::poll_fn;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::{CallError, CallId, Change, Time};
use mcp_types::{
    EmptyResult, Era, Method, RawObject, RequestMeta, Revision, ServerCapabilities, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use tracing::Span;

use crate::call::Call;
use crate::call::exchange::Failure;
use crate::call::recovery::Recovery;
use crate::call::telemetry;
use crate::client::Client;
use crate::context::CallExtensions;
use crate::error::Error;
use crate::observed::{ObservedCall, outcome_of};
use crate::request_handlers::BoxFuture;
use crate::state::pauses::Timeout;
use crate::state::timers::Sleep;
use crate::state::waiters::Waiter;
use crate::state::{CallStart, Phase, Shared};

use self::changes::all_of;
pub use self::future::Listen;

/// A stream of changes on the server; created by [`Client::listen`]. [`next`](Self::next) returns them one by one.
///
/// If the subscription breaks, it is opened again with exponential backoff. Changes may be lost in the meantime, so
/// everything that it covers is then reported as changed. The stream ends with an error if the server refuses the
/// subscription, or if the client is closed.
///
/// Modern servers send the requested changes on a stream of their own. Legacy servers send changes of lists to every
/// client, and changes of resources to clients that subscribed to them, which this does; over HTTP that requires the GET
/// stream of the session.
#[must_use = "streams do nothing unless polled"]
pub struct Subscription {
    client: Client,
    wanted: SubscriptionFilter,
    acknowledged: SubscriptionFilter,
    state: State,
    /// Number of consecutive failures; a connection that broke soon counts as one.
    failures: u32,
    /// What is attached to the call each time that it is opened. The last field, so that its values are not dropped with the
    /// call, under the lock.
    extensions: CallExtensions,
}

enum State {
    Open { source: ChangeSource, since: Time },
    Opening(BoxFuture<Result<(ChangeSource, SubscriptionFilter), Error>>),
    Backoff(Sleep),
    Ended,
}

/// Where changes come from. Dropping it ends the subscription on the server.
pub(crate) struct ChangeSource {
    shared: Arc<Shared>,
    origin: Origin,
    waiter: Waiter,
    /// The span of a `subscriptions/listen` call.
    span: Span,
    /// Reports the end of a `subscriptions/listen` call.
    observed: Option<ObservedCall<'static>>,
}

enum Origin {
    /// A `subscriptions/listen` call.
    Call(CallId),
    /// The stream of a legacy connection, until that is replaced.
    Connection { subscription: u64, epoch: u64 },
}

/// A subscription that lasted this long resets the backoff.
pub(crate) const STABLE_AFTER: Duration = Duration::from_secs(10);
const INITIAL_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Why a subscription with credentials of its own cannot use a session.
const OTHER_USER: &str = "the session with the legacy server belongs to other credentials than those of the subscription; \
                          use one client for each user";

impl Subscription {
    async fn open(client: Client, wanted: SubscriptionFilter, extensions: CallExtensions) -> Result<Self, Error> {
        let (source, acknowledged) = open(client.clone(), wanted.clone(), extensions.clone()).await?;
        let since = client.shared.now();
        Ok(Self { client, wanted, acknowledged, state: State::Open { source, since }, failures: 0, extensions })
    }

    /// Waits for the next change; `None` at the end of the stream.
    ///
    /// No change is lost if the returned future is dropped.
    ///
    /// # Errors
    ///
    /// Returns the error that ends the stream.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the filter that the server acknowledged, which may cover less than the requested one.
    // L-5, L-6
    #[must_use]
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// Waits before the subscription is opened again, with exponential backoff and jitter.
    // C-10
    fn back_off(&mut self) -> State {
        let longest = INITIAL_DELAY.saturating_mul(1 << self.failures.min(16)).min(MAX_DELAY);
        self.failures += 1;
        State::Backoff(Sleep::new(&self.client.shared, jittered(longest)))
    }
}

impl Stream for Subscription {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let this = &mut *self;
            let next = match &mut this.state {
                State::Ended => return Poll::Ready(None),
                State::Open { source, since } => match (source.poll(cx), *since) {
                    (Poll::Pending, _) => return Poll::Pending,
                    (Poll::Ready(Some(change)), _) => return Poll::Ready(Some(Ok(change))),
                    (Poll::Ready(None), since) => {
                        if this.client.shared.now().duration_since(since) >= STABLE_AFTER {
                            this.failures = 0;
                        }
                        this.back_off()
                    }
                },
                State::Backoff(sleep) => match Pin::new(sleep).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => {
                        let extensions = this.extensions.clone();
                        State::Opening(Box::pin(open(this.client.clone(), this.wanted.clone(), extensions)))
                    }
                },
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok((source, acknowledged))) => {
                        source.assume_all_changed(&acknowledged);
                        this.acknowledged = acknowledged;
                        State::Open { source, since: this.client.shared.now() }
                    }
                    Poll::Ready(Err(error)) if is_transient(&error) => this.back_off(),
                    Poll::Ready(Err(error)) => {
                        this.state = State::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
            };
            self.state = next;
        }
    }
}

/// Returns whether opening the subscription again may succeed.
pub(crate) fn is_transient(error: &Error) -> bool {
    match error {
        // The response that was too long was likely that of another call: those of subscriptions are short.
        Error::TimedOut | Error::Interrupted(_) | Error::ResponseTooLong { .. } => true,
        Error::Status { status, .. } => *status >= 500 || *status == 408 || *status == 429,
        Error::Rejected(_)
        | Error::InvalidResponse(_)
        | Error::Cancelled
        | Error::Authorization(_)
        | Error::InvalidCertificate(_)
        | Error::Closed(_)
        | Error::Command(_)
        | Error::InvalidCapabilities(_)
        | Error::InvalidParams(_)
        | Error::InputRequestFailed { .. }
        | Error::Retry(_)
        | Error::Task(_)
        | Error::ToolFailed(_)
        | Error::EndlessList
        | Error::ListTooLong(_) => false,
    }
}

async fn open(
    client: Client,
    wanted: SubscriptionFilter,
    extensions: CallExtensions,
) -> Result<(ChangeSource, SubscriptionFilter), Error> {
    let mut recovery = Recovery::default();
    loop {
        client.ready().await?;
        if client.revision().is_some_and(|revision| revision.era() == Era::Legacy) {
            return open_legacy(client, wanted, extensions).await;
        }
        match open_modern(&client.shared, &wanted, &extensions).await {
            Ok(opened) => return Ok(opened),
            Err(Failure::Local(error)) => return Err(error),
            Err(Failure::Call { error, revision, reason }) => {
                let method = Method::SUBSCRIPTIONS_LISTEN;
                if !recovery.recover(&client, &extensions, &method, revision, &error).await {
                    return Err(Error::of_call(error, reason.as_deref()));
                }
            }
        }
    }
}

/// Opens a subscription, for up to the idle timeout, and waits for its acknowledgement for up to that time.
pub(crate) async fn open_modern(
    shared: &Arc<Shared>,
    wanted: &SubscriptionFilter,
    extensions: &CallExtensions,
) -> Result<(ChangeSource, SubscriptionFilter), Failure> {
    let limit = shared.settings.call_options.idle_timeout;
    let mut send_timeout = limit.map(|limit| Timeout::new(shared, limit));
    let mut waiter = Waiter::new(shared, |core| &mut core.ready_waiters);
    let mut opened: Option<(ChangeSource, CallId, Revision)> = None;
    let span = telemetry::sent_span(&Method::SUBSCRIPTIONS_LISTEN, shared.settings.network);
    let meta = telemetry::trace_context(shared, &span).map(|trace| {
        let mut meta = RequestMeta::default();
        meta.set_trace_context(&trace);
        meta
    });
    let acknowledged = poll_fn(|cx| {
        if opened.is_none() {
            let started = shared.with(|core, now| {
                let started = core.start_listening(now, wanted, meta.as_ref(), extensions, limit);
                if let CallStart::Wait = started {
                    waiter.wait(core, cx.waker());
                }
                started
            });
            match started {
                CallStart::Call(call, revision) => {
                    telemetry::sent(&span, shared, call, revision);
                    let source = ChangeSource::new(shared, Origin::Call(call), span.clone());
                    opened = Some((source, call, revision));
                    send_timeout = None;
                }
                CallStart::Failed(error) => return Poll::Ready(Err(Failure::Local(error.into()))),
                CallStart::Closed(closed) => return Poll::Ready(Err(Failure::Local(closed.into()))),
                CallStart::Wait => {}
            }
        }
        if let Some((_, call, revision)) = &opened
            && let Some(acknowledged) = acknowledgement(shared, *call, *revision, cx)
        {
            return Poll::Ready(acknowledged);
        }
        match &mut send_timeout {
            Some(timeout) => Pin::new(timeout).poll(cx).map(|()| Err(Failure::Local(Error::TimedOut))),
            None => Poll::Pending,
        }
    });
    let acknowledged = acknowledged.await;
    let Some((mut source, ..)) = opened else {
        return Err(acknowledged.err().unwrap_or(Failure::Local(Error::Cancelled)));
    };
    let outcome = match &acknowledged {
        // Dropping a subscription is its normal end.
        Ok(_) => OperationOutcome::Completed,
        Err(Failure::Call { error, .. }) => OperationOutcome::of_call_error(error),
        Err(Failure::Local(error)) => outcome_of(error),
    };
    telemetry::end(&source.span, outcome);
    if let Some(observed) = &mut source.observed {
        observed.set_outcome(outcome);
    }
    Ok((source, acknowledged?))
}

/// Returns the acknowledged filter, once the server has responded.
fn acknowledgement(
    shared: &Shared,
    call: CallId,
    revision: Revision,
    cx: &Context<'_>,
) -> Option<Result<SubscriptionFilter, Failure>> {
    shared.with(|core, _| {
        let Some(pending) = core.pending_calls.get_mut(&call) else {
            let reason = core.disconnect_reason.clone();
            return Some(Err(Failure::Call { error: CallError::Disconnected, revision, reason }));
        };
        pending.waker = Some(cx.waker().clone());
        match (&pending.acknowledged, &pending.outcome) {
            (Some(filter), _) => Some(Ok(filter.clone())),
            (None, Some(Err(error))) => {
                if let Some(error) = pending.send_error.take() {
                    return Some(Err(Failure::Local(*error)));
                }
                let reason = pending.stream_error.clone().or_else(|| core.disconnect_reason.clone());
                Some(Err(Failure::Call { error: error.clone(), revision, reason }))
            }
            // L-3: the acknowledgement must be the first message.
            (None, Some(Ok(_))) => {
                Some(Err(Failure::Local(Error::InvalidResponse("the subscription was not acknowledged".to_owned()))))
            }
            (None, None) => None,
        }
    })
}

async fn open_legacy(
    client: Client,
    wanted: SubscriptionFilter,
    extensions: CallExtensions,
) -> Result<(ChangeSource, SubscriptionFilter), Error> {
    let shared = &client.shared;
    // The stream of the session has the changes of its user, which no request would tell.
    if !extensions.is_empty()
        && shared.owner_of(&extensions).await? != shared.owner_of(&CallExtensions::default()).await?
    {
        return Err(Error::Interrupted(OTHER_USER.to_owned()));
    }
    let filter = supported(wanted, client.server().capabilities.as_ref());
    let (subscription, epoch) = shared.with(|core, _| (core.legacy_subscriptions.add(filter.clone()), core.epoch));
    // From here on, dropping the source unsubscribes.
    let source = ChangeSource::new(shared, Origin::Connection { subscription, epoch }, Span::none());
    for uri in filter.resource_subscriptions.iter().flatten() {
        let params = RawObject::new(&SubscribeRequestParams::new(uri.clone()));
        let call = Call::<EmptyResult>::new(&client, Method::RESOURCES_SUBSCRIBE, params);
        call.extensions(extensions.clone()).await?;
    }
    Ok((source, filter))
}

/// Reduces a filter to what a legacy server supports.
fn supported(mut wanted: SubscriptionFilter, capabilities: Option<&ServerCapabilities>) -> SubscriptionFilter {
    let Some(offers) = capabilities else { return wanted };
    let is_set = |changed: Option<Option<bool>>| changed.flatten() == Some(true);
    let tools = is_set(offers.tools.as_ref().map(|tools| tools.list_changed));
    let prompts = is_set(offers.prompts.as_ref().map(|prompts| prompts.list_changed));
    let resources = is_set(offers.resources.as_ref().map(|resources| resources.list_changed));
    let subscribe = is_set(offers.resources.as_ref().map(|resources| resources.subscribe));
    wanted.tools_list_changed = wanted.tools_list_changed.filter(|_| tools);
    wanted.prompts_list_changed = wanted.prompts_list_changed.filter(|_| prompts);
    wanted.resources_list_changed = wanted.resources_list_changed.filter(|_| resources);
    wanted.resource_subscriptions = wanted.resource_subscriptions.filter(|_| subscribe);
    wanted
}

impl ChangeSource {
    fn new(shared: &Arc<Shared>, origin: Origin, span: Span) -> Self {
        let observed = match origin {
            Origin::Call(_) => ObservedCall::start(shared, &Method::SUBSCRIPTIONS_LISTEN, || None),
            Origin::Connection { .. } => None,
        };
        let waiter = Waiter::new(shared, |core| &mut core.state_waiters);
        Self { shared: Arc::clone(shared), origin, waiter, span, observed }
    }

    /// Polls for the next change; `None` at the end of the subscription.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Change>> {
        let (origin, waiter) = (&self.origin, &mut self.waiter);
        self.shared.with(|core, _| match *origin {
            Origin::Call(call) => {
                let Some(pending) = core.pending_calls.get_mut(&call) else { return Poll::Ready(None) };
                if let Some(change) = pending.changes.pop() {
                    return Poll::Ready(Some(change));
                }
                if pending.outcome.is_some() {
                    return Poll::Ready(None);
                }
                pending.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Origin::Connection { subscription, epoch } => {
                if let Some(change) = core.legacy_subscriptions.next(subscription, cx.waker()) {
                    return Poll::Ready(Some(change));
                }
                if core.epoch != epoch || matches!(core.phase, Phase::Closing | Phase::Closed(_)) {
                    return Poll::Ready(None);
                }
                waiter.wait(core, cx.waker());
                Poll::Pending
            }
        })
    }

    /// Reports everything that the filter covers as changed, and drops it from the cache.
    fn assume_all_changed(&self, filter: &SubscriptionFilter) {
        self.shared.with(|core, _| {
            for change in all_of(filter) {
                core.cache.invalidate(&change);
                match self.origin {
                    Origin::Call(call) => {
                        drop(core.pending_calls.get_mut(&call).and_then(|pending| pending.push_change(change)))
                    }
                    Origin::Connection { subscription, .. } => core.legacy_subscriptions.push_to(subscription, change),
                }
            }
        });
    }
}

impl Drop for ChangeSource {
    fn drop(&mut self) {
        self.shared.with(|core, now| match self.origin {
            Origin::Call(call) => core.cancel_call(call),
            Origin::Connection { subscription, epoch } => {
                let uncovered = core.legacy_subscriptions.remove(subscription);
                if core.epoch != epoch {
                    return;
                }
                for uri in uncovered {
                    let Ok(params) = RawObject::new(&UnsubscribeRequestParams::new(uri)) else { continue };
                    // The response is ignored.
                    let _ = core.kernel.call(now, &Method::RESOURCES_UNSUBSCRIBE, &params, Default::default());
                    core.wake_transport();
                }
            }
        });
    }
}

/// Returns a random duration between one half of `longest` and `longest`.
pub(crate) fn jittered(longest: Duration) -> Duration {
    let random = std::hash::RandomState::new().hash_one(longest);
    longest.mul_f64(0.5 + 0.5 * (random as u32 as f64 / f64::from(u32::MAX)))
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("acknowledged", &self.acknowledged).finish_non_exhaustive()
    }
}
