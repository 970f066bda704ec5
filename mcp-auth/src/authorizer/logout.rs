//! Logging out.

use std::sync::Arc;

use super::core::Core;
use super::error::OAuthError;
use super::record::SavedGrant;
use crate::client::{Action, Grant, Revocation};
use crate::jose::SigningKey;

impl Core {
    /// Forgets the tokens, and revokes them, in a task of its own: tokens that are forgotten cannot be revoked later.
    pub(super) async fn logout(self: &Arc<Self>) -> Result<(), OAuthError> {
        let core = Arc::clone(self);
        let task = tokio::spawn(async move { core.forget_and_revoke().await });
        task.await.unwrap_or_else(|error| Err(OAuthError::of_task(&error)))
    }

    async fn forget_and_revoke(&self) -> Result<(), OAuthError> {
        let lock = self.logins.lock().await?;
        let saved = self.logins.load().await?;
        self.logins.remove().await?;
        // Tokens that could not be saved are newer than those of the store.
        let unsaved = self.state().log_out().filter(|active| !active.is_saved);
        drop(lock);
        let grant = unsaved.map(|active| active.saved.clone()).or(saved.grant);
        let Some(SavedGrant { grant, key, .. }) = grant else { return Ok(()) };
        self.revoke(grant, key.as_deref()).await
    }

    /// Revokes tokens that a login obtained after the user had logged out.
    pub(super) async fn revoke_unused(&self, grant: Grant, key: Option<&SigningKey>) {
        if let Err(error) = self.revoke(grant, key).await {
            tracing::warn!(server = %self.settings.server_name, %error, "tokens were not revoked after a log-out");
        }
    }

    /// Revokes tokens that are not in the store.
    async fn revoke(&self, grant: Grant, key: Option<&SigningKey>) -> Result<(), OAuthError> {
        let mut revocation = Revocation::new(grant);
        loop {
            match revocation.poll() {
                Action::Fetch(request) => match self.sender.send(request, key).await {
                    Ok(response) => revocation.handle_response(&response),
                    Err(error) => revocation.handle_failure(error),
                },
                // The store does not have them.
                Action::Save(_) => revocation.handle_saved(),
                Action::Failed(error) => return Err(error.into()),
                Action::Done(_)
                | Action::OpenBrowser(_)
                | Action::ShowDeviceCode(_)
                | Action::WaitUntil(_)
                | Action::AskForClient { .. }
                | Action::SupplyAssertion(_)
                | Action::Idle => return Ok(()),
            }
        }
    }
}
