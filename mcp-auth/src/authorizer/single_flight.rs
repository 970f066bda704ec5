//! Refreshes and logins that many calls wait for, and that are done once.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use mcp_transport_http::Credential;
use tokio::time::Instant;

use super::active_login::ActiveLogin;
use super::core::Core;
use super::error::OAuthError;
use super::step_ups::StepUps;
use crate::Challenge;

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
    /// Whether the tokens are valid and have too few scopes.
    pub(super) is_step_up: bool,
    /// Whether to log in even if another process has done so.
    pub(super) is_forced: bool,
}

impl Core {
    /// Returns the refresh in flight, and starts one if there is none.
    pub(super) fn start_renewal(self: &Arc<Self>, stale: Option<Arc<ActiveLogin>>) -> SharedResult {
        let mut state = self.state();
        if let Some(shared) = state.renewal.as_ref().filter(|shared| shared.peek().is_none()) {
            return shared.clone();
        }
        let core = Arc::clone(self);
        // In a task of its own: if it were dropped between the response and saving it, the login would be lost.
        let task = tokio::spawn(async move {
            let renewed = core.renew(stale).await;
            let mut state = core.state();
            // It is not polled if no call waits for it, so it does not know that the task is over.
            state.renewal = None;
            if let Err(error) = &renewed {
                let random = getrandom::u32().unwrap_or_default();
                state.backoff.fail(Instant::now(), error.clone(), random);
            }
            drop(state);
            renewed
        });
        let shared = async move { task.await.unwrap_or(Err(OAuthError::Shutdown)) }.boxed().shared();
        state.renewal = Some(shared.clone());
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

    /// Joins the login in flight, or starts one.
    pub(super) async fn start_login(self: &Arc<Self>, reason: LoginReason) -> LoginResult {
        if reason.is_forced {
            let mut state = self.state();
            state.backoff.reset();
            state.step_ups = StepUps::default();
        }
        if self.settings.is_unattended() {
            let stale = {
                let mut state = self.state();
                state.backoff.check(Instant::now())?;
                if !reason.challenges.is_empty() {
                    state.challenges = reason.challenges;
                }
                state.active.clone()
            };
            return self.start_renewal(stale).await;
        }
        let shared = {
            let mut state = self.state();
            let joined = state.login.as_ref().and_then(WeakShared::upgrade).filter(|shared| shared.peek().is_none());
            joined.unwrap_or_else(|| {
                let core = Arc::clone(self);
                let shared = async move { core.log_in(reason).await }.boxed().shared();
                state.login = shared.downgrade();
                shared
            })
        };
        shared.await
    }
}
