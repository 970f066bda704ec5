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
pub(super) struct Requests(Arc<Shared>);

struct Shared {
    endpoint: Box<dyn IntrospectionEndpoint>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: HashMap<TokenDigest, watch::Receiver<Option<Outcome>>>,
    /// The rounds that failed since the last request that did not.
    failures: u32,
    /// Increases with each failure that counts. Requests in flight at that time belong to the round before.
    round: u64,
    /// When the next request may be sent, after too many failures.
    retry_at: Option<Instant>,
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

impl Requests {
    pub(super) fn new(endpoint: impl IntrospectionEndpoint + 'static) -> Self {
        Self(Arc::new(Shared { endpoint: Box::new(endpoint), state: Mutex::default() }))
    }

    /// Asks about a token, unless a request about it is in flight: then its outcome is the same. `judge` reads the response.
    pub(super) async fn send(
        &self,
        digest: TokenDigest,
        token: &str,
        judge: impl FnOnce(Result<Vec<u8>, TokenError>) -> Outcome + Send + 'static,
    ) -> Outcome {
        let mut outcome = match self.find_or_create(digest)? {
            Found::InFlight(outcome) => outcome,
            Found::New(request, outcome) => {
                // Without the lock: a runtime that shuts down drops the task at once, which takes it.
                request.start(token, judge)?;
                outcome
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(TokenError::unavailable("the introspection was interrupted")))
    }

    fn find_or_create(&self, digest: TokenDigest) -> Result<Found, TokenError> {
        let now = Instant::now();
        let mut state = self.0.lock();
        if let Some(outcome) = state.in_flight.get(&digest) {
            return Ok(Found::InFlight(outcome.clone()));
        }
        if state.in_flight.len() >= MAX_REQUESTS {
            return Err(TokenError::unavailable("too many tokens are being introspected"));
        }
        if state.failures >= MAX_FAILURES
            && (!state.in_flight.is_empty() || state.retry_at.is_some_and(|retry_at| now < retry_at))
        {
            return Err(TokenError::unavailable("the introspection has failed too often"));
        }
        let (sender, receiver) = watch::channel(None);
        state.in_flight.insert(digest, receiver.clone());
        let request = InFlight { shared: Arc::clone(&self.0), digest, round: state.round, sender };
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
    /// The round that it belongs to.
    round: u64,
    sender: watch::Sender<Option<Outcome>>,
}

impl InFlight {
    fn start(
        self,
        token: &str,
        judge: impl FnOnce(Result<Vec<u8>, TokenError>) -> Outcome + Send + 'static,
    ) -> Result<(), TokenError> {
        let runtime = Handle::try_current();
        let runtime = runtime.map_err(|_| TokenError::unavailable("introspection needs a tokio runtime"))?;
        let token = Secret::from(token);
        runtime.spawn(async move {
            let response = timeout(TIMEOUT, self.shared.endpoint.introspect(token.expose())).await;
            let response = response.unwrap_or_else(|_| Err(TokenError::unavailable("the introspection took too long")));
            self.sender.send_replace(Some(judge(response)));
        });
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let has_failed = matches!(*self.sender.borrow(), None | Some(Err(TokenError::Unavailable(_))));
        let mut state = self.shared.lock();
        state.in_flight.remove(&self.digest);
        if !has_failed {
            (state.failures, state.retry_at) = (0, None);
            return;
        }
        // Requests that were in flight together fail together, which is one failure.
        if self.round != state.round {
            return;
        }
        state.round += 1;
        state.failures = state.failures.saturating_add(1);
        let doublings = state.failures.saturating_sub(MAX_FAILURES).min(8);
        state.retry_at = Instant::now().checked_add((MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE));
        if state.failures == MAX_FAILURES {
            tracing::warn!(target: "mcp", "introspection has failed too often: requests are sent one by one, with pauses");
        }
    }
}
