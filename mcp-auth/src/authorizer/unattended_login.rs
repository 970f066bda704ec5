//! Logins without a user.

use std::sync::Arc;

use super::active_login::ActiveLogin;
use super::core::Core;
use super::error::OAuthError;
use super::login_run::{LoginRun, LoginStart};
use super::logins::SaveContext;
use super::record::{SavedGrant, SavedLogin};
use super::sender::unique_id;
use crate::Challenge;
use crate::client::Stored;

impl Core {
    /// Logs in without a user. The caller has the lock of the login.
    pub(super) async fn log_in_unattended(
        self: &Arc<Self>,
        grant: Option<SavedGrant>,
        saved: SavedLogin,
        challenges: Vec<Challenge>,
        generation: u64,
    ) -> Result<Arc<ActiveLogin>, OAuthError> {
        let key = self.dpop_key(grant.as_ref())?;
        let id = grant.as_ref().map_or_else(|| unique_id().into(), |grant| Arc::clone(&grant.id));
        let stored = Stored {
            registrations: self.logins.registrations().await?,
            // It was refreshed before, if that could help.
            grant: grant.map(|saved| saved.grant.without_refresh_token()),
            requested_scopes: saved.requested_scopes,
        };
        let context = SaveContext { id, key: key.clone() };
        let start = LoginStart { stored, challenges, key, context, prompt_lock: None, generation };
        LoginRun::run(Arc::clone(self), start).await
    }
}
