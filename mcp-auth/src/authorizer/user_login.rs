//! Logins of users.

use std::sync::Arc;

use super::active_login::{Freshness, Origin};
use super::core::Core;
use super::error::OAuthError;
use super::login_run::LoginRun;
use super::logins::SaveContext;
use super::sender::unique_id;
use super::single_flight::{LoginReason, Renewed};
use crate::client::{Grant, Stored};

impl Core {
    /// Lets the user log in.
    pub(super) async fn log_in(&self, reason: LoginReason) -> Renewed {
        let timeout = self.settings.login_timeout;
        let login = tokio::time::timeout(timeout, self.log_in_attended(reason)).await;
        login.unwrap_or(Err(OAuthError::TimedOut(timeout)))
    }

    async fn log_in_attended(&self, reason: LoginReason) -> Renewed {
        let _lock = self.logins.lock_prompt().await?;
        let saved = self.logins.load().await?;
        // Another process may have logged in while this one waited.
        if let Some(grant) = saved.grant.as_ref().filter(|_| !reason.is_forced) {
            let is_refused = reason
                .refused
                .as_ref()
                .is_some_and(|refused| refused.token() == grant.grant.tokens.access_token.expose());
            let other = self.activate(grant.clone(), Origin::Store, true)?;
            if !is_refused && other.freshness() != Freshness::Expired {
                self.set_active(Some(Arc::clone(&other)));
                return Ok(Some(other));
            }
        }
        let key = self.dpop_key(saved.grant.as_ref())?;
        // With more scopes it is the same user; otherwise it may be another.
        let same = saved.grant.as_ref().filter(|_| reason.is_step_up).map(|saved| Arc::clone(&saved.id));
        let context = SaveContext { id: same.unwrap_or_else(|| unique_id().into()), key: key.clone() };
        let stored = Stored {
            registrations: self.logins.registrations().await?,
            grant: saved.grant.map(|saved| without_refresh_token(saved.grant)),
            requested_scopes: saved.requested_scopes,
        };
        let (settings, sender, logins) = (&self.settings, &self.sender, &self.logins);
        let run = LoginRun { settings, sender, logins, key, context, has_lock: false };
        match run.start(stored, &reason.challenges).await {
            Ok(grant) => self.use_login(grant, run.context).map(Some),
            Err(OAuthError::NotLoggedIn { .. }) => Err(self.not_logged_in()),
            Err(error) => Err(error),
        }
    }
}

/// Returns a grant that a login does not refresh: that is done before, in a task of its own.
fn without_refresh_token(mut grant: Grant) -> Grant {
    grant.tokens.refresh_token = None;
    grant
}
