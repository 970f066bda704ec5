//! Work that many tasks wait for, and that is done once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use mcp_transport_http::Credential;

use super::active_login::ActiveLogin;
use super::clock;
use super::core::Core;
use super::error::OAuthError;
use crate::Challenge;

/// How long to wait before tokens that are still valid are refreshed again after a failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

pub(super) type Renewed = Result<Option<Arc<ActiveLogin>>, OAuthError>;
pub(super) type Flight = Shared<BoxFuture<'static, Renewed>>;
pub(super) type WeakFlight = WeakShared<BoxFuture<'static, Renewed>>;

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
    pub(super) fn start_renewal(self: &Arc<Self>, stale: Option<Arc<ActiveLogin>>) -> Flight {
        let mut state = self.state();
        if let Some(flight) = state.renewal.as_ref().filter(|flight| flight.peek().is_none()) {
            return flight.clone();
        }
        let core = Arc::clone(self);
        // In a task of its own: if it were dropped between the response and saving it, the login would be lost.
        let task = tokio::spawn(async move {
            let renewed = core.renew(stale).await;
            let mut state = core.state();
            // It is not polled if no call waits for it, so it does not know that the task is over.
            state.renewal = None;
            if renewed.is_err() {
                let pause = LONGEST_RETRY.min(FIRST_RETRY * 2_u32.saturating_pow(state.failures.min(10)));
                state.failures = state.failures.saturating_add(1);
                state.retry_at = clock::since_epoch() + pause;
            }
            drop(state);
            renewed
        });
        let flight = async move { task.await.unwrap_or(Err(OAuthError::Shutdown)) }.boxed().shared();
        state.renewal = Some(flight.clone());
        flight
    }

    /// Waits until tokens are replaced. Returns `None` if that needs a user: only failures that can pass are errors.
    pub(super) async fn renewed(self: &Arc<Self>, stale: Arc<ActiveLogin>) -> Renewed {
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
    pub(super) async fn start_login(self: &Arc<Self>, reason: LoginReason) -> Renewed {
        if self.settings.is_unattended() {
            let stale = {
                let mut state = self.state();
                if !reason.challenges.is_empty() {
                    state.challenges = reason.challenges;
                }
                state.active.clone()
            };
            return self.start_renewal(stale).await;
        }
        let flight = {
            let mut state = self.state();
            let joined = state.login.as_ref().and_then(WeakShared::upgrade).filter(|flight| flight.peek().is_none());
            joined.unwrap_or_else(|| {
                let core = Arc::clone(self);
                let flight = async move { core.log_in(reason).await }.boxed().shared();
                state.login = flight.downgrade();
                flight
            })
        };
        flight.await
    }
}
