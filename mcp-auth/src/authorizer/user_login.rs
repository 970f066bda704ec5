//! Logins of users.

use std::sync::Arc;

use super::active_login::{Freshness, Origin};
use super::core::Core;
use super::error::OAuthError;
use super::login_run::{LoginRun, LoginStart};
use super::logins::SaveContext;
use super::sender::unique_id;
use super::single_flight::{LoginReason, LoginResult, Renewal};
use crate::client::Stored;

impl Core {
    /// Lets the user log in.
    pub(super) async fn log_in(self: &Arc<Self>, reason: LoginReason, generation: u64) -> LoginResult {
        let timeout = self.settings.login_timeout;
        let login = tokio::time::timeout(timeout, self.ask_user(reason, generation)).await;
        login.unwrap_or(Err(OAuthError::TimedOut(timeout)))
    }

    /// Refreshes the tokens of the store, also if the login is cancelled meanwhile: what is issued must be saved.
    /// Returns `None` if the user has to log in.
    async fn renew_to_the_end(self: &Arc<Self>, generation: u64) -> LoginResult {
        let core = Arc::clone(self);
        let renewal = tokio::spawn(async move { core.renew(None, Renewal::Refresh, generation).await });
        match renewal.await {
            Ok(Err(OAuthError::Login(error))) if !error.is_transient() => Ok(None),
            Ok(renewed) => renewed,
            Err(error) => Err(OAuthError::of_task(&error)),
        }
    }

    async fn ask_user(self: &Arc<Self>, reason: LoginReason, generation: u64) -> LoginResult {
        let known = self.logins.load().await?.grant;
        let lock = self.logins.lock_prompt().await?;
        self.check_generation(generation)?;
        let saved = self.logins.load().await?;
        let unsaved = self.unsaved();
        // Another process may have logged in while this one waited.
        if let Some(grant) = saved.grant.as_ref().filter(|_| !reason.is_forced && unsaved.is_none()) {
            let is_refused = reason
                .refused
                .as_ref()
                .is_some_and(|refused| refused.token() == grant.grant.tokens.access_token.expose());
            let other = self.activate(grant.clone(), Origin::Store, true)?;
            if !is_refused && other.freshness() != Freshness::Expired {
                self.set_active(Some(Arc::clone(&other)), generation)?;
                return Ok(Some(other));
            }
            // It has expired while this one waited, which refreshed only what it knew.
            if !is_refused
                && known.is_none_or(|known| !other.has_tokens_of(&known))
                && other.is_refreshable()
                && let Some(renewed) = self.renew_to_the_end(generation).await?
            {
                return Ok(Some(renewed));
            }
        }
        let earlier = unsaved.or(saved.grant);
        let key = self.dpop_key(earlier.as_ref())?;
        // With more scopes it is the same user; otherwise it may be another.
        let same = earlier.as_ref().filter(|_| reason.step_up.is_some()).map(|saved| Arc::clone(&saved.id));
        let context = SaveContext { id: same.unwrap_or_else(|| unique_id().into()), key: key.clone() };
        let stored = Stored {
            registrations: self.logins.registrations().await?,
            // It was refreshed before, if it could be.
            grant: earlier.map(|saved| saved.grant.without_refresh_token()),
            requested_scopes: saved.requested_scopes,
        };
        let start =
            LoginStart { stored, challenges: reason.challenges, key, context, prompt_lock: Some(lock), generation };
        match LoginRun::run(Arc::clone(self), start).await {
            Ok(active) => Ok(Some(active)),
            Err(OAuthError::NotLoggedIn { .. }) => Err(self.not_logged_in()),
            Err(error) => Err(error),
        }
    }
}
