//! Multi round-trip requests: a modern request that needs input ends, and the client retries it with the responses.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_mrtr::{
    Binding, InputRequiredBuilder, InvalidState, Journal, Key, KeyRing, NONCE_BYTES, ReplayGuard, Round, Sealer,
};
use mcp_types::gate;
use mcp_types::{Era, ErrorObject, InputRequest, InputRequiredResult, RawJson, RawObject};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::error::AskError;
use crate::asking::round_slot::{OpenedRound, RoundWaiter};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::BoxFuture;
use crate::serve::response::Response;

/// How the `requestState` of multi round-trip requests is encrypted.
pub(crate) struct StateSealing {
    /// The configured keys; without any, a random key is created at the first use.
    pub(crate) ring: Option<KeyRing>,
    sealer: OnceLock<Sealer>,
    pub(crate) replay_guard: Option<Arc<dyn ReplayGuard>>,
    pub(crate) lifetime: Duration,
    /// The maximum length of a state in bytes: as much as a retry may have.
    limit: usize,
    /// The time since the Unix epoch, by which states expire; the system's clock, if none is given.
    pub(crate) unix_clock: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
    /// Fills a buffer with random bytes; the system's source, if none is given.
    pub(crate) random_source: Option<Arc<RandomSource>>,
}

/// Fills a buffer with random bytes; returns whether that succeeded.
pub(crate) type RandomSource = dyn Fn(&mut [u8]) -> bool + Send + Sync;

impl Default for StateSealing {
    fn default() -> Self {
        Self {
            ring: None,
            sealer: OnceLock::new(),
            replay_guard: None,
            lifetime: Duration::from_secs(600),
            limit: usize::MAX,
            unix_clock: None,
            random_source: None,
        }
    }
}

impl StateSealing {
    /// Limits states to what is accepted in a retry, where the quotes count, too.
    pub(crate) fn limit_to(&mut self, request_state_bytes: usize) {
        self.limit = request_state_bytes.saturating_sub(2);
    }

    /// The sealer; `None` if it needs a random key, and the random source fails.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        if let Some(sealer) = self.sealer.get() {
            return Some(sealer);
        }
        let ring = match &self.ring {
            Some(ring) => ring.clone(),
            None => KeyRing::new(Key::new(u32::from_le_bytes(self.random()?), self.random()?)),
        };
        let made = Sealer::new(ring).lifetime(self.lifetime).max_bytes(self.limit);
        Some(self.sealer.get_or_init(|| made))
    }

    /// The seconds since the Unix epoch; `None` if there is no clock.
    pub(crate) fn seconds(&self) -> Option<u64> {
        let now = self.unix_clock.as_ref().map_or_else(system::since_unix_epoch, |clock| Some(clock()));
        now.map(|now| now.as_secs())
    }

    /// Random bytes; `None` if the random source fails.
    pub(crate) fn random<const N: usize>(&self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let is_filled = match &self.random_source {
            Some(fill) => fill(&mut bytes),
            None => system::fill_random(&mut bytes),
        };
        is_filled.then_some(bytes)
    }
}

fn no_clock() -> AskError {
    AskError::NoBackChannel("sealing a state needs a clock: set `ServerBuilder::unix_clock` on this platform".into())
}

fn no_randomness() -> AskError {
    AskError::NoBackChannel(
        "sealing a state needs randomness, and its source failed (see `ServerBuilder::random_source`)".into(),
    )
}

/// Refuses input requests that a handler returns after it has used `elicit`, `sample`, `list_roots` or `once`: their
/// responses and results would be lost in the next round.
pub(crate) fn reject_mixed_styles(ctx: &RequestContext, outcome: &mut Result<Response, ErrorObject>) {
    if matches!(outcome, Ok(Response::InputRequired(_))) && ctx.round().is_open() {
        tracing::error!(target: "mcp", "a handler returned input requests after it had used `elicit`, `sample`, `list_roots` or `once`: use one style only");
        *outcome = Err(ErrorObject::internal_error("the server cannot request input"));
    }
}

/// Records that a handler awaited a request to a legacy client, or a step; neither has to be stored.
pub(crate) fn mark_awaited(ctx: &RequestContext) {
    // It fails if the round has ended, where nothing has to be recorded.
    let _ = ctx.round().with(|| Ok(Round::default()), |_| ());
}

/// Returns the input response with this key, or records that it has to be requested.
pub(crate) async fn request_input(
    ctx: &RequestContext,
    key: &str,
    request: &InputRequest,
) -> Result<Option<RawObject>, AskError> {
    with_round(ctx, |round| {
        round.request_input(key, request).map_err(|error| AskError::InvalidRequest(error.to_string().into()))
    })
    .await?
}

/// The result of a step of an earlier round.
pub(crate) async fn step(ctx: &RequestContext, key: &str) -> Result<Option<RawJson>, AskError> {
    with_round(ctx, |round| round.step(key).cloned()).await
}

/// Stores the result of a step.
pub(crate) async fn complete_step(ctx: &RequestContext, key: &str, result: RawJson) -> Result<(), AskError> {
    with_round(ctx, |round| round.complete_step(key, result)).await
}

/// Is ready if a handler or middleware that is pending has requested input. It has to be dropped then, and the result of
/// [`finish`] takes its place.
///
/// The future that polls it is woken if one of its tasks requests input later.
pub(crate) fn poll_ending(ctx: &RequestContext, waiter: &mut RoundWaiter, cx: &Context<'_>) -> Poll<()> {
    match ctx.era() {
        Era::Modern => ctx.round().poll_ending(waiter, cx),
        Era::Legacy => Poll::Pending,
    }
}

/// Ends a round with the input requests for the client, and the state for its retry.
pub(crate) fn finish(ctx: &RequestContext) -> Result<Response, ErrorObject> {
    let finished = ctx.round().take().and_then(|round| round.finish());
    let (requests, journal) = finished.ok_or_else(|| ErrorObject::internal_error("no input was requested"))?;
    let state = seal(ctx, &journal.to_bytes()).map_err(|fault| {
        tracing::error!(target: "mcp", %fault, "the state of a request cannot be encrypted");
        ErrorObject::internal_error("the server cannot request input")
    })?;
    let mut result = InputRequiredResult::default();
    (result.input_requests, result.request_state) = (Some(requests), Some(state));
    Ok(Response::InputRequired(Box::new(result)))
}

/// Opens the round of a request when it is first needed: before that, the state may be the application's own.
async fn with_round<R>(ctx: &RequestContext, use_round: impl FnOnce(&mut Round) -> R) -> Result<R, AskError> {
    if let Some(claim) = ctx.round().begin(|| open(ctx))? {
        let is_first = poll_fn(|cx| claim.poll(cx)).await;
        if !is_first {
            return Err(rejected(InvalidState::Replayed));
        }
    }
    ctx.round().with(|| Ok(Round::default()), use_round)
}

/// Whether the protocol allows an `InputRequiredResult` for the method.
//
pub(crate) fn allows_input_required(ctx: &RequestContext) -> bool {
    gate::method(ctx.method()).is_some_and(|facts| facts.may_require_input.contains(ctx.revision()))
}

fn open(ctx: &RequestContext) -> Result<OpenedRound, AskError> {
    if !allows_input_required(ctx) {
        return Err(AskError::NoBackChannel(
            "only `tools/call`, `prompts/get` and `resources/read` can request input".into(),
        ));
    }
    let (journal, claim) = match ctx.request_state() {
        None => (Journal::default(), None),
        Some(state) => {
            let (content, claim) = unseal(ctx, state)?;
            let journal = Journal::from_bytes(&content);
            (journal.map_err(|error| AskError::InvalidRequest(error.to_string().into()))?, claim)
        }
    };
    Ok(OpenedRound { round: Round::new(journal, ctx.input_responses().clone()), claim })
}

/// What a retry brings to a task that continues its request.
pub(crate) enum RetryState {
    /// The journal of a handler that awaits its requests.
    Journal(Box<Round>),
    /// The state of a handler that returns its requests, as tasks store it.
    Application(Option<String>),
}

/// Opens the state of a retry for a task, which stores it without encryption, as clients never get it.
pub(crate) async fn open_for_task(ctx: &RequestContext) -> Result<RetryState, AskError> {
    let Some(state) = ctx.request_state() else { return Ok(RetryState::Application(None)) };
    let content = match unseal(ctx, state) {
        Ok((content, claim)) => claimed(content, claim).await?,
        // The application has a format of its own. A client must not be able to forge the one of tasks.
        Err(_) if !state.starts_with(TASK_STATE) => return Ok(RetryState::Application(Some(state.to_owned()))),
        Err(error) => return Err(error),
    };
    if let Some(state) = content.strip_prefix(&[APPLICATION_STATE]) {
        let state = format!("{TASK_STATE}{}", String::from_utf8_lossy(state));
        return Ok(RetryState::Application(Some(state)));
    }
    let journal = Journal::from_bytes(&content).map_err(|error| AskError::InvalidRequest(error.to_string().into()))?;
    Ok(RetryState::Journal(Box::new(Round::new(journal, ctx.input_responses().clone()))))
}

fn seal(ctx: &RequestContext, content: &[u8]) -> Result<String, AskError> {
    let asking = &ctx.server().settings().asking;
    let now = asking.seconds().ok_or_else(no_clock)?;
    let nonce = asking.random::<NONCE_BYTES>().ok_or_else(no_randomness)?;
    let state = asking.sealer().ok_or_else(no_randomness)?.seal(now, nonce, &binding(ctx), content);
    state.map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))
}

/// Opens a state, and returns its content. With a replay guard it is valid if the future returns true, too.
fn unseal(ctx: &RequestContext, state: &str) -> Result<(Vec<u8>, Option<BoxFuture<bool>>), AskError> {
    let asking = &ctx.server().settings().asking;
    let sealer = asking.sealer().ok_or_else(no_randomness)?;
    let (binding, now) = (binding(ctx), asking.seconds().ok_or_else(no_clock)?);
    let opened = sealer.open(now, &binding, state).map_err(rejected)?;
    let (nonce, expires) = (opened.nonce, opened.expires);
    let claim = asking
        .replay_guard
        .as_ref()
        .map(Arc::clone)
        .map(|guard| -> BoxFuture<bool> { Box::pin(async move { guard.claim(now, nonce, expires).await }) });
    Ok((opened.content, claim))
}

/// Returns the content of a state, unless it was used before.
async fn claimed(content: Vec<u8>, claim: Option<BoxFuture<bool>>) -> Result<Vec<u8>, AskError> {
    if let Some(claim) = claim
        && !claim.await
    {
        return Err(rejected(InvalidState::Replayed));
    }
    Ok(content)
}

fn rejected(rejected: InvalidState) -> AskError {
    tracing::warn!(target: "mcp", %rejected, "a `requestState` was rejected");
    AskError::InvalidState(rejected)
}

/// Multi round-trip requests by hand: the handler returns input requests, with a state of its own.
impl RequestContext {
    /// Returns a builder of an [`InputRequiredResult`] for this client.
    ///
    /// [`build`](InputRequiredBuilder::build) returns an error for requests that this client does not support, because of its
    /// capabilities, its revision, or because there is no session.
    pub fn input_required(&self) -> InputRequiredBuilder {
        let builder = InputRequiredBuilder::new(self.method(), self.capabilities());
        match self.era() {
            Era::Modern => builder,
            Era::Legacy => builder.legacy(self.revision(), !self.is_stateless()),
        }
    }

    /// Encrypts a state for an [`InputRequiredResult`]. The client can neither read nor change it; it expires, and is valid
    /// only for the same request, principal and server.
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be serialized, or is too large.
    //
    pub fn seal_state(&self, state: &(impl Serialize + ?Sized)) -> Result<String, AskError> {
        let state = serde_json::to_vec(state).map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
        if self.is_task() {
            return Ok(format!("{TASK_STATE}{}", String::from_utf8_lossy(&state)));
        }
        // No journal begins with this byte, so the two cannot be mistaken for each other.
        seal(self, &[&[APPLICATION_STATE], state.as_slice()].concat())
    }

    /// Decrypts the state of the previous round, if the request is a retry.
    ///
    /// # Errors
    ///
    /// Returns an error if the state was not encrypted by [`seal_state`](Self::seal_state) for this request, or has expired.
    /// The error for the client does not reveal the cause.
    pub async fn sealed_state<T: DeserializeOwned>(&self) -> Result<Option<T>, AskError> {
        let Some(state) = self.request_state() else { return Ok(None) };
        let content = match state.strip_prefix(TASK_STATE) {
            Some(state) if self.is_task() => [&[APPLICATION_STATE], state.as_bytes()].concat(),
            _ => {
                let (content, claim) = unseal(self, state)?;
                claimed(content, claim).await?
            }
        };
        let state =
            content.strip_prefix(&[APPLICATION_STATE]).ok_or(AskError::InvalidState(InvalidState::OtherRequest))?;
        let malformed = || AskError::InvalidState(InvalidState::Malformed);
        let state = str::from_utf8(state).ok().and_then(|state| RawJson::parse(state).ok()).ok_or_else(malformed)?;
        state.decode().map(Some).map_err(|_| malformed())
    }
}

/// The first byte of the encrypted state of an application.
const APPLICATION_STATE: u8 = b's';

/// The beginning of the state of an application in a task, which clients never see. No encrypted state begins with it.
const TASK_STATE: &str = "task:";

/// What a state is bound to: principal, server, method and parameters.
//
fn binding(ctx: &RequestContext) -> Binding {
    let principal = ctx.principal().map(|principal| (principal.issuer.as_deref(), &*principal.subject));
    Binding::new(principal, &ctx.server().info().name, ctx.method().as_str(), ctx.params())
}

/// The clock and the random source of the operating system.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod system {
    use std::time::{Duration, SystemTime};

    pub(super) fn since_unix_epoch() -> Option<Duration> {
        #[expect(clippy::disallowed_methods, reason = "states expire by the clock that all instances share")]
        let now = SystemTime::now();
        Some(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }

    pub(super) fn fill_random(bytes: &mut [u8]) -> bool {
        getrandom::fill(bytes).is_ok()
    }
}

/// There is no operating system: the application has to bring both.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod system {
    use std::time::Duration;

    pub(super) fn since_unix_epoch() -> Option<Duration> {
        None
    }

    pub(super) fn fill_random(_: &mut [u8]) -> bool {
        false
    }
}
