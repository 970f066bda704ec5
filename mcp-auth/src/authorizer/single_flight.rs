//! Refreshes and logins that many calls wait for, and that are done once.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared, ready};
use mcp_transport_http::Credential;
use tokio::time::Instant;

use super::active_login::{ActiveLogin, Freshness};
use super::core::{Core, State};
use super::error::OAuthError;
use super::step_ups::StepUps;
use crate::{Challenge, Scopes};

/// What a refresh or a login comes to: tokens, or `None` if only a user can obtain them.
pub(super) type LoginResult = Result<Option<Arc<ActiveLogin>>, OAuthError>;
/// A result that several calls wait for.
pub(super) type SharedResult = Shared<BoxFuture<'static, LoginResult>>;
/// The same, as long as a call waits for it.
pub(super) type WeakSharedResult = WeakShared<BoxFuture<'static, LoginResult>>;

/// Why a user has to log in.
pub(super) struct LoginReason {
    /// The credential that the server refused.
    pub(super) refused: Option<Credential>,
    pub(super) challenges: Vec<Challenge>,
    /// Set if the tokens are valid and have too few scopes.
    pub(super) step_up: Option<StepUp>,
    /// Whether to log in even if another process has done so.
    pub(super) is_forced: bool,
}

/// Which scopes a request needs, and which it had.
pub(super) struct StepUp {
    pub(super) needed: Scopes,
    pub(super) granted: Scopes,
}

/// How tokens are replaced without a user.
pub(super) enum Renewal {
    /// With the tokens of the store if they are newer, with the refresh token, or with a login if neither is possible.
    Refresh,
    /// With a login, because a refresh obtains no other scopes.
    Login { challenges: Vec<Challenge> },
}

impl Core {
    /// Returns the refresh or the login in flight, and starts a refresh if there is none.
    pub(super) fn start_renewal(self: &Arc<Self>, stale: Option<Arc<ActiveLogin>>) -> SharedResult {
        let mut state = self.state();
        let joined = state.renewal_in_flight(true).or_else(|| state.renewal_in_flight(false));
        joined.unwrap_or_else(|| self.spawn_renewal(&mut state, stale, Renewal::Refresh))
    }

    fn spawn_renewal(
        self: &Arc<Self>,
        state: &mut State,
        stale: Option<Arc<ActiveLogin>>,
        renewal: Renewal,
    ) -> SharedResult {
        let is_login = matches!(renewal, Renewal::Login { .. });
        let generation = state.generation;
        let core = Arc::clone(self);
        // In a task of its own: if it were dropped between the response and saving it, the login would be lost.
        let task = tokio::spawn(async move {
            // Created when the task runs: a runtime that shuts down drops the task at once, while the state is locked.
            let mut slot = RenewalSlot { core, is_login, generation, failure: None };
            let renewed = slot.core.renew(stale, renewal, generation).await;
            slot.failure = renewed.as_ref().err().cloned();
            renewed
        });
        let shared = async move { task.await.unwrap_or_else(|error| Err(OAuthError::of_task(&error))) };
        let shared = shared.boxed().shared();
        *state.renewal_mut(is_login) = Some(shared.clone());
        shared
    }

    /// Waits until tokens are replaced. Returns `None` if that needs a user: only failures that can pass are errors.
    pub(super) async fn renewed(self: &Arc<Self>, stale: Arc<ActiveLogin>) -> LoginResult {
        if self.settings.is_unattended() {
            self.state().backoff.check(Instant::now())?;
        }
        match self.start_renewal(Some(stale)).await {
            Err(OAuthError::Login(error)) if !error.is_transient() && !self.settings.is_unattended() => {
                tracing::info!(server = %self.settings.server_name, %error, "the tokens cannot be refreshed");
                self.set_ended(error);
                Ok(None)
            }
            renewed => renewed,
        }
    }

    /// Joins the login in flight, or starts one. Returns `None` if it would be one too many for more scopes.
    pub(super) fn start_login(self: &Arc<Self>, reason: LoginReason) -> Result<Option<SharedResult>, OAuthError> {
        let is_unattended = self.settings.is_unattended();
        let mut state = self.state();
        if reason.is_forced {
            state.backoff.reset();
            state.step_ups = StepUps::default();
        }
        // A refresh obtains neither more scopes nor a new login.
        let needs_login = reason.is_forced || reason.step_up.is_some();
        let joined = match is_unattended {
            true if needs_login => state.renewal_in_flight(true),
            true => state.renewal_in_flight(true).or_else(|| state.renewal_in_flight(false)),
            false => state.login_in_flight(),
        };
        if joined.is_some() {
            return Ok(joined);
        }
        if let Some(active) = state.active.as_ref().filter(|active| reason.is_met_by(active)) {
            return Ok(Some(ready(Ok(Some(Arc::clone(active)))).boxed().shared()));
        }
        if is_unattended {
            state.backoff.check(Instant::now())?;
        }
        // Calls that join a login are not attempts of their own.
        if let Some(StepUp { needed, granted }) = &reason.step_up
            && !state.step_ups.begin(Instant::now(), needed, granted)
        {
            return Ok(None);
        }
        if is_unattended {
            if !reason.challenges.is_empty() {
                state.challenges = reason.challenges;
            }
            let stale = state.active.clone();
            let renewal = match needs_login {
                true => Renewal::Login { challenges: state.challenges.clone() },
                false => Renewal::Refresh,
            };
            return Ok(Some(self.spawn_renewal(&mut state, stale, renewal)));
        }
        let (core, generation) = (Arc::clone(self), state.generation);
        // The prompt is code of the application. Without this, its panic would be one of all calls that wait.
        let login = async move { AssertUnwindSafe(core.log_in(reason, generation)).catch_unwind().await };
        let shared = login.map(|result| result.unwrap_or(Err(OAuthError::Panicked))).boxed().shared();
        state.login = shared.downgrade();
        Ok(Some(shared))
    }
}

/// The place of a renewal among those in flight. It is free again when the task of the renewal is over, also if it panicked.
struct RenewalSlot {
    core: Arc<Core>,
    is_login: bool,
    generation: u64,
    failure: Option<OAuthError>,
}

impl Drop for RenewalSlot {
    fn drop(&mut self) {
        let failure = self.failure.take().or_else(|| std::thread::panicking().then_some(OAuthError::Panicked));
        let mut state = self.core.state();
        // After a log-out there may be another one in its place.
        if state.generation != self.generation {
            return;
        }
        // It is not polled if no call waits for it, so it does not know that the task is over.
        let renewal = state.renewal_mut(self.is_login).take();
        if let Some(error) = failure {
            state.backoff.fail(Instant::now(), error, getrandom::u32().unwrap_or_default());
        }
        drop(state);
        drop(renewal);
    }
}

impl LoginReason {
    /// Whether another call has obtained these tokens since the server refused the request.
    fn is_met_by(&self, active: &ActiveLogin) -> bool {
        !self.is_forced && self.refused.as_ref() != Some(&active.credential) && active.freshness() != Freshness::Expired
    }
}

impl State {
    const fn renewal_mut(&mut self, is_login: bool) -> &mut Option<SharedResult> {
        if is_login { &mut self.unattended_login } else { &mut self.refresh }
    }

    fn renewal_in_flight(&self, is_login: bool) -> Option<SharedResult> {
        let renewal = if is_login { &self.unattended_login } else { &self.refresh };
        renewal.clone().filter(|shared| shared.peek().is_none())
    }

    fn login_in_flight(&self) -> Option<SharedResult> {
        self.login.as_ref().and_then(WeakShared::upgrade).filter(|shared| shared.peek().is_none())
    }
}
