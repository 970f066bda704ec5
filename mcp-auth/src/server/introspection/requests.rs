//! Requests to the authorization server: one for each token, not too many, and fewer while they fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_server::AuthInfo;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::IntrospectionEndpoint;
use crate::Secret;
use crate::server::token_digest::TokenDigest;
use crate::server::verifier::TokenError;

/// What a token turned out to be.
pub(super) type Outcome = Result<AuthInfo, TokenError>;

/// The requests in flight.
///
/// A request runs in a task of its own: a client that disconnects does not interrupt it for others that sent the same token,
/// and cannot make the next one start early.
pub(super) struct IntrospectionRequests(Arc<Shared>);

struct Shared {
    endpoint: Box<dyn IntrospectionEndpoint>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: HashMap<TokenDigest, watch::Receiver<Option<Outcome>>>,
    known: Failures,
    unknown: Failures,
}

/// Whether a token has been active before.
///
/// Anyone can send tokens that were never active, and some of them may make the endpoint fail. So the failures of both kinds are
/// counted apart, and those of unknown tokens cannot pause the introspection of known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Known,
    Unknown,
}

/// The failures of requests for one kind of tokens.
#[derive(Default)]
struct Failures {
    in_flight: usize,
    /// The rounds that failed since the last request that did not.
    count: u32,
    /// Increases with each failure that counts. Requests in flight at that time belong to the round before.
    round: u64,
    /// When the next request may be sent, after too many failures.
    retry_at: Option<Instant>,
}

impl State {
    fn failures(&mut self, kind: TokenKind) -> &mut Failures {
        match kind {
            TokenKind::Known => &mut self.known,
            TokenKind::Unknown => &mut self.unknown,
        }
    }
}

impl Failures {
    fn is_paused(&self, now: Instant) -> bool {
        self.count >= MAX_FAILURES && (self.in_flight > 0 || self.retry_at.is_some_and(|retry_at| now < retry_at))
    }

    fn reset(&mut self) {
        (self.count, self.retry_at) = (0, None);
    }

    /// Counts a failure. Returns whether it is the one after which there are pauses.
    fn add(&mut self, round: u64, now: Instant) -> bool {
        // Requests that were in flight together fail together, which is one failure.
        if self.round != round {
            return false;
        }
        self.round += 1;
        self.count = self.count.saturating_add(1);
        let doublings = self.count.saturating_sub(MAX_FAILURES).min(8);
        self.retry_at = now.checked_add((MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE));
        self.count == MAX_FAILURES
    }
}

/// The maximum number of requests in flight.
const MAX_REQUESTS: usize = 64;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of failed rounds in a row after which requests are sent one by one, with pauses.
const MAX_FAILURES: u32 = 5;
/// The first of these pauses, which double.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl IntrospectionRequests {
    pub(super) fn new(endpoint: impl IntrospectionEndpoint + 'static) -> Self {
        Self(Arc::new(Shared { endpoint: Box::new(endpoint), state: Mutex::default() }))
    }

    /// Asks about a token, unless a request about it is in flight: then its outcome is the same. `check` reads the response.
    pub(super) async fn send(
        &self,
        (digest, kind): (TokenDigest, TokenKind),
        token: &str,
        check: impl FnOnce(Result<Vec<u8>, TokenError>) -> Outcome + Send + 'static,
    ) -> Outcome {
        let mut outcome = match self.find_or_create(digest, kind)? {
            Found::InFlight(outcome) => outcome,
            Found::New(request, outcome) => {
                // Without the lock: a runtime that shuts down drops the task at once, which takes it.
                request.start(token, check)?;
                outcome
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(TokenError::unavailable("the introspection was interrupted")))
    }

    fn find_or_create(&self, digest: TokenDigest, kind: TokenKind) -> Result<Found, TokenError> {
        let now = Instant::now();
        let mut state = self.0.lock();
        if let Some(outcome) = state.in_flight.get(&digest) {
            return Ok(Found::InFlight(outcome.clone()));
        }
        if state.in_flight.len() >= MAX_REQUESTS {
            return Err(TokenError::unavailable("too many tokens are being introspected"));
        }
        let failures = state.failures(kind);
        if failures.is_paused(now) {
            return Err(TokenError::unavailable("the introspection has failed too often"));
        }
        failures.in_flight += 1;
        let round = failures.round;
        let (sender, receiver) = watch::channel(None);
        state.in_flight.insert(digest, receiver.clone());
        let request = InFlight { shared: Arc::clone(&self.0), digest, kind, round, sender };
        Ok(Found::New(request, receiver))
    }
}

enum Found {
    InFlight(watch::Receiver<Option<Outcome>>),
    New(InFlight, watch::Receiver<Option<Outcome>>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight. It ends also if the endpoint panics.
struct InFlight {
    shared: Arc<Shared>,
    digest: TokenDigest,
    kind: TokenKind,
    /// The round that it belongs to.
    round: u64,
    sender: watch::Sender<Option<Outcome>>,
}

impl InFlight {
    fn start(
        self,
        token: &str,
        check: impl FnOnce(Result<Vec<u8>, TokenError>) -> Outcome + Send + 'static,
    ) -> Result<(), TokenError> {
        let runtime = Handle::try_current();
        let runtime = runtime.map_err(|_| TokenError::unavailable("introspection needs a tokio runtime"))?;
        let token = Secret::from(token);
        runtime.spawn(async move {
            let response = timeout(TIMEOUT, self.shared.endpoint.introspect(token.expose())).await;
            let response = response.unwrap_or_else(|_| Err(TokenError::unavailable("the introspection took too long")));
            self.sender.send_replace(Some(check(response)));
        });
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let error = match &*self.sender.borrow() {
            None => Some("the introspection was interrupted".into()),
            Some(Err(TokenError::Unavailable(reason))) => Some(reason.clone()),
            Some(Ok(_) | Err(TokenError::Invalid(_))) => None,
        };
        let mut state = self.shared.lock();
        state.in_flight.remove(&self.digest);
        state.failures(self.kind).in_flight -= 1;
        let Some(error) = error else {
            // The endpoint works, whatever the token is.
            state.known.reset();
            state.unknown.reset();
            return;
        };
        if state.failures(self.kind).add(self.round, Instant::now()) {
            tracing::warn!(
                target: "mcp",
                tokens = ?self.kind,
                %error,
                "introspection has failed too often: requests are sent one by one, with pauses"
            );
        }
    }
}
