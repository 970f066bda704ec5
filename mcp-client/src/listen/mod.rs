//! Hearing of changes, in either era.

pub(crate) mod changes;

use std::future::poll_fn;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use mcp_kernel::{CallError, CallId, Change, Time};
use mcp_types::{
    EmptyResult, Era, Method, RawObject, Revision, ServerCapabilities, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};

use crate::call::Call;
use crate::call::exchange::Failure;
use crate::call::recovery::Attempt;
use crate::client::Client;
use crate::error::Error;
use crate::request_handlers::BoxFuture;
use crate::state::timers::Sleep;
use crate::state::waiters::Place;
use crate::state::{Phase, Shared, Started};

use self::changes::all_of;

/// A stream of changes; made by [`Client::listen`].
///
/// It is opened again when it breaks, after a while that gets longer with each attempt. Nobody knows what happened in
/// the meantime, so everything that it listens to is then reported as changed. It ends with an error if the server
/// refuses to go on, or if there is no connection any more.
///
/// Modern servers tell what they were asked for on a stream of its own. Legacy ones tell changes of lists to everybody,
/// and those of resources to whoever subscribed to them, which the listener does; over HTTP that needs the stream of
/// the session.
#[must_use = "changes are heard of by whoever looks"]
pub struct Listener {
    client: Client,
    wanted: SubscriptionFilter,
    acknowledged: SubscriptionFilter,
    state: State,
    /// How often it was opened in vain, or for a short time.
    failures: u32,
}

enum State {
    Open { ear: Ear, since: Time },
    Opening(BoxFuture<Result<(Ear, SubscriptionFilter), Error>>),
    Waiting(Sleep),
    Ended,
}

/// Where changes come from. Dropping it tells the server that nobody listens any more.
struct Ear {
    shared: Arc<Shared>,
    source: Source,
    place: Place,
}

enum Source {
    /// A subscription of its own.
    Call(CallId),
    /// The stream of the connection, which is good for as long as it is the same connection.
    Connection { listener: u64, epoch: u64 },
}

/// A listener that lived for this long was not opened in vain.
const LONG: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl Listener {
    pub(crate) async fn open(client: Client, wanted: SubscriptionFilter) -> Result<Self, Error> {
        let (ear, acknowledged) = open(client.clone(), wanted.clone()).await?;
        let since = client.shared.now();
        Ok(Self { client, wanted, acknowledged, state: State::Open { ear, since }, failures: 0 })
    }

    /// What the server agreed to tell, which may be less than what it was asked for.
    // L-5, L-6
    #[must_use]
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// Waits before it is opened again: longer each time, and not at the same time as others.
    // C-10
    fn wait(&mut self) -> State {
        let longest = FIRST_WAIT.saturating_mul(1 << self.failures.min(16)).min(LONGEST_WAIT);
        self.failures += 1;
        State::Waiting(Sleep::new(&self.client.shared, jittered(longest)))
    }
}

impl Stream for Listener {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let this = &mut *self;
            let next = match &mut this.state {
                State::Ended => return Poll::Ready(None),
                State::Open { ear, since } => match (ear.poll(cx), *since) {
                    (Poll::Pending, _) => return Poll::Pending,
                    (Poll::Ready(Some(change)), _) => return Poll::Ready(Some(Ok(change))),
                    (Poll::Ready(None), since) => {
                        if this.client.shared.now().duration_since(since) >= LONG {
                            this.failures = 0;
                        }
                        this.wait()
                    }
                },
                State::Waiting(sleep) => match Pin::new(sleep).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => State::Opening(Box::pin(open(this.client.clone(), this.wanted.clone()))),
                },
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok((ear, acknowledged))) => {
                        ear.assume_all(&acknowledged);
                        this.acknowledged = acknowledged;
                        State::Open { ear, since: this.client.shared.now() }
                    }
                    Poll::Ready(Err(error)) if is_passing(&error) => this.wait(),
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

/// Whether it may be different the next time.
fn is_passing(error: &Error) -> bool {
    match error {
        // One that is too long was hardly meant for a subscription, which is answered with next to nothing.
        Error::TimedOut | Error::Interrupted(_) | Error::TooLong { .. } => true,
        Error::Status { status, .. } => *status >= 500 || *status == 408 || *status == 429,
        Error::Rejected(_)
        | Error::InvalidAnswer(_)
        | Error::Cancelled
        | Error::Closed(_)
        | Error::Misuse(_)
        | Error::InvalidParams(_)
        | Error::Unanswered { .. }
        | Error::Rounds(_)
        | Error::ToolFailed(_)
        | Error::EndlessList
        | Error::ListTooLong(_) => false,
    }
}

async fn open(client: Client, wanted: SubscriptionFilter) -> Result<(Ear, SubscriptionFilter), Error> {
    let mut attempt = Attempt::default();
    loop {
        client.ready().await?;
        if client.revision().is_some_and(|revision| revision.era() == Era::Legacy) {
            return open_legacy(client, wanted).await;
        }
        match open_modern(&client.shared, &wanted).await {
            Ok(opened) => return Ok(opened),
            Err(Failure::Local(error)) => return Err(error),
            Err(Failure::Call { error, revision, why }) => {
                if !attempt.mend(&client, &Method::SUBSCRIPTIONS_LISTEN, revision, &error).await {
                    return Err(Error::of_call(error, why.as_deref()));
                }
            }
        }
    }
}

/// Opens a subscription, and waits until it is acknowledged: for as long as the server might be silent.
async fn open_modern(shared: &Arc<Shared>, wanted: &SubscriptionFilter) -> Result<(Ear, SubscriptionFilter), Failure> {
    let mut patience = shared.settings.calls.idle.map(|idle| Sleep::new(shared, idle));
    let mut place = Place::new(shared, |core| &mut core.waiting);
    let mut opened: Option<(Ear, CallId, Revision)> = None;
    let acknowledged = poll_fn(|cx| {
        if opened.is_none() {
            let started = shared.with(|core, now| {
                let started = core.start_listening(now, wanted);
                if let Started::Wait = started {
                    place.wait(core, cx.waker());
                }
                started
            });
            match started {
                Started::Call(call, revision) => {
                    opened = Some((Ear::new(shared, Source::Call(call)), call, revision));
                }
                Started::Misuse(misuse) => return Poll::Ready(Err(Failure::Local(misuse.into()))),
                Started::Closed(why) => return Poll::Ready(Err(Failure::Local(why.into()))),
                Started::Wait => {}
            }
        }
        if let Some((_, call, revision)) = &opened
            && let Some(answer) = acknowledgement(shared, *call, *revision, cx)
        {
            return Poll::Ready(answer);
        }
        match &mut patience {
            Some(patience) => Pin::new(patience).poll(cx).map(|()| Err(Failure::Local(Error::TimedOut))),
            None => Poll::Pending,
        }
    });
    let acknowledged = acknowledged.await?;
    let Some((ear, ..)) = opened else { return Err(Failure::Local(Error::Cancelled)) };
    Ok((ear, acknowledged))
}

/// What the server agreed to tell, if it has answered.
fn acknowledgement(
    shared: &Shared,
    call: CallId,
    revision: Revision,
    cx: &Context<'_>,
) -> Option<Result<SubscriptionFilter, Failure>> {
    shared.with(|core, _| {
        let Some(slot) = core.slots.get_mut(&call) else {
            let why = core.lost.clone();
            return Some(Err(Failure::Call { error: CallError::Disconnected, revision, why }));
        };
        slot.waker = Some(cx.waker().clone());
        match (&slot.filter, &slot.outcome) {
            (Some(filter), _) => Some(Ok(filter.clone())),
            (None, Some(Err(error))) => {
                let why = slot.why.clone().or_else(|| core.lost.clone());
                Some(Err(Failure::Call { error: error.clone(), revision, why }))
            }
            // L-3: the acknowledgement comes first.
            (None, Some(Ok(_))) => {
                Some(Err(Failure::Local(Error::InvalidAnswer("it was not acknowledged".to_owned()))))
            }
            (None, None) => None,
        }
    })
}

async fn open_legacy(client: Client, wanted: SubscriptionFilter) -> Result<(Ear, SubscriptionFilter), Error> {
    let shared = &client.shared;
    let filter = offered(wanted, client.server().capabilities.as_ref());
    let (listener, epoch) = shared.with(|core, _| (core.legacy_listeners.add(filter.clone()), core.epoch));
    // From here on the ear takes care of what was begun.
    let ear = Ear::new(shared, Source::Connection { listener, epoch });
    for uri in filter.resource_subscriptions.iter().flatten() {
        let params = RawObject::new(&SubscribeRequestParams::new(uri.clone()));
        Call::<EmptyResult>::new(&client, Method::RESOURCES_SUBSCRIBE, params).await?;
    }
    Ok((ear, filter))
}

/// What a legacy server tells of all that is wanted.
fn offered(mut wanted: SubscriptionFilter, capabilities: Option<&ServerCapabilities>) -> SubscriptionFilter {
    let Some(offers) = capabilities else { return wanted };
    let tells = |changed: Option<Option<bool>>| changed.flatten() == Some(true);
    let tools = tells(offers.tools.as_ref().map(|tools| tools.list_changed));
    let prompts = tells(offers.prompts.as_ref().map(|prompts| prompts.list_changed));
    let resources = tells(offers.resources.as_ref().map(|resources| resources.list_changed));
    let subscribe = tells(offers.resources.as_ref().map(|resources| resources.subscribe));
    wanted.tools_list_changed = wanted.tools_list_changed.filter(|_| tools);
    wanted.prompts_list_changed = wanted.prompts_list_changed.filter(|_| prompts);
    wanted.resources_list_changed = wanted.resources_list_changed.filter(|_| resources);
    wanted.resource_subscriptions = wanted.resource_subscriptions.filter(|_| subscribe);
    wanted
}

impl Ear {
    fn new(shared: &Arc<Shared>, source: Source) -> Self {
        Self { shared: Arc::clone(shared), source, place: Place::new(shared, |core| &mut core.watching) }
    }

    /// The next change; `None` when nothing more comes from here.
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Change>> {
        let (source, place) = (&self.source, &mut self.place);
        self.shared.with(|core, _| match *source {
            Source::Call(call) => {
                let Some(slot) = core.slots.get_mut(&call) else { return Poll::Ready(None) };
                if let Some(change) = slot.changes.next() {
                    return Poll::Ready(Some(change));
                }
                if slot.outcome.is_some() {
                    return Poll::Ready(None);
                }
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Source::Connection { listener, epoch } => {
                if let Some(change) = core.legacy_listeners.next(listener, cx.waker()) {
                    return Poll::Ready(Some(change));
                }
                if core.epoch != epoch || matches!(core.phase, Phase::Closing | Phase::Over(_)) {
                    return Poll::Ready(None);
                }
                place.wait(core, cx.waker());
                Poll::Pending
            }
        })
    }

    /// Reports everything as changed, so that nothing of it is used again either.
    fn assume_all(&self, filter: &SubscriptionFilter) {
        self.shared.with(|core, _| {
            for change in all_of(filter) {
                core.cache.invalidate(&change);
                match self.source {
                    Source::Call(call) => drop(core.slots.get_mut(&call).and_then(|slot| slot.changed(change))),
                    Source::Connection { listener, .. } => core.legacy_listeners.tell(listener, change),
                }
            }
        });
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.shared.with(|core, now| match self.source {
            Source::Call(call) => core.abandon(call),
            Source::Connection { listener, epoch } => {
                let unheard = core.legacy_listeners.remove(listener);
                if core.epoch != epoch {
                    return;
                }
                for uri in unheard {
                    let Ok(params) = RawObject::new(&UnsubscribeRequestParams::new(uri)) else { continue };
                    // Nobody waits for the answer.
                    let _ = core.kernel.call(now, &Method::RESOURCES_UNSUBSCRIBE, &params, Default::default());
                    core.wake_driver();
                }
            }
        });
    }
}

/// Between half of it and all of it.
fn jittered(longest: Duration) -> Duration {
    let random = std::hash::RandomState::new().hash_one(longest);
    longest.mul_f64(0.5 + 0.5 * (random as u32 as f64 / f64::from(u32::MAX)))
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("acknowledged", &self.acknowledged).finish_non_exhaustive()
    }
}
