//! Refreshing tokens, once for all tasks and processes.

use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::observe::Observation;

use super::active_login::{ActiveLogin, Freshness, Origin};
use super::clock;
use super::core::Core;
use super::error::OAuthError;
use super::login_run::dpop_key;
use super::logins::SaveContext;
use super::record::{SavedGrant, SavedLogin};
use super::single_flight::{LoginResult, Renewal};
use crate::client::{Action, LoginError, Refresh, Save};
use crate::store::StoreError;

/// How long to wait for another process that refreshes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// How often saving is tried.
const SAVE_ATTEMPTS: usize = 4;
const SAVE_PAUSE: Duration = Duration::from_millis(50);

impl Core {
    /// Replaces tokens that are about to expire, or that the server refused. Returns `None` if only a login of a user helps.
    ///
    /// It must run to its end once a request was sent, so it runs in a task of its own.
    pub(super) async fn renew(
        self: &Arc<Self>,
        stale: Option<Arc<ActiveLogin>>,
        renewal: Renewal,
        generation: u64,
    ) -> LoginResult {
        let stale = stale.as_deref();
        let is_refresh = matches!(renewal, Renewal::Refresh);
        // Without the lock first: most of the time another process has refreshed them.
        if is_refresh && let Some(renewed) = self.adopt_newer(&self.logins.load().await?, stale, generation)? {
            return Ok(Some(renewed));
        }
        let locked = tokio::time::timeout(LOCK_TIMEOUT, self.logins.lock()).await;
        let lock = locked.unwrap_or_else(|_| Err(StoreError::Locked { store: "the login".to_owned() }))?;
        // From here on the user cannot log out, as that takes the lock.
        self.check_generation(generation)?;
        let saved = self.logins.load().await?;
        if is_refresh && let Some(renewed) = self.adopt_newer(&saved, stale, generation)? {
            return Ok(Some(renewed));
        }
        let grant = self.unsaved().or_else(|| saved.grant.clone());
        // Tokens that were refreshed a moment ago and are replaced already were refused: another refresh does not help.
        let was_refused = stale.is_some_and(ActiveLogin::is_refused_refresh);
        let refreshed = match &grant {
            Some(grant) if is_refresh && grant.grant.tokens.refresh_token.is_some() && !was_refused => {
                let refreshed = self.refresh(grant.clone(), generation).await;
                let is_successful = matches!(refreshed, Ok(Some(_)));
                self.settings.observe(&Observation::TokenRefresh { is_successful });
                refreshed
            }
            _ => Ok(None),
        };
        let renewed = match refreshed {
            Ok(None) if self.settings.is_unattended() => {
                let challenges = match renewal {
                    Renewal::Refresh => self.challenges(),
                    Renewal::Login { challenges } => challenges,
                };
                self.log_in_unattended(grant, saved, challenges, generation).await.map(Some)
            }
            refreshed => refreshed,
        };
        if matches!(renewed, Ok(None)) {
            self.set_active(None, generation)?;
        }
        drop(lock);
        match &renewed {
            Ok(_) => {}
            Err(error) => tracing::debug!(server = %self.settings.server_name, %error, "the tokens were not refreshed"),
        }
        renewed
    }

    /// Uses the tokens of the store if they are others, and fresh.
    fn adopt_newer(
        &self,
        saved: &SavedLogin,
        stale: Option<&ActiveLogin>,
        generation: u64,
    ) -> Result<Option<Arc<ActiveLogin>>, OAuthError> {
        let Some(grant) = &saved.grant else { return Ok(None) };
        if stale.is_some_and(|stale| stale.has_tokens_of(grant) || !stale.is_saved) {
            return Ok(None);
        }
        let active = self.activate(grant.clone(), Origin::Store, true)?;
        if active.freshness() != Freshness::Fresh {
            return Ok(None);
        }
        self.set_active(Some(Arc::clone(&active)), generation)?;
        Ok(Some(active))
    }

    /// Refreshes tokens. The caller has the lock.
    async fn refresh(&self, saved: SavedGrant, generation: u64) -> LoginResult {
        let SavedGrant { grant, id, key, .. } = saved;
        let context = SaveContext { id: Arc::clone(&id), key: key.clone() };
        let described = key.as_deref().map(|key| dpop_key(key, self.settings.requires_dpop));
        let mut refresh = Refresh::new(grant, described.as_ref());
        let mut is_saved = true;
        loop {
            match refresh.poll() {
                Action::Fetch(request) => match self.sender.send(request, key.as_deref()).await {
                    Ok(response) => refresh.handle_response(clock::now(), response),
                    Err(error) => refresh.handle_failure(error),
                },
                Action::Save(save) => {
                    if let Err(error) = self.save(save, &context).await {
                        tracing::warn!(server = %self.settings.server_name, %error, "refreshed tokens are kept in memory only");
                        is_saved = false;
                    }
                    refresh.handle_saved();
                }
                Action::Done(grant) => {
                    let key = key.filter(|_| grant.is_dpop_bound());
                    let saved = SavedGrant { grant: *grant, issued_at: clock::now(), id, key };
                    let active = self.activate(saved, Origin::Refresh, is_saved)?;
                    self.set_active(Some(Arc::clone(&active)), generation)?;
                    tracing::debug!(server = %self.settings.server_name, "the tokens were refreshed");
                    return Ok(Some(active));
                }
                Action::Failed(error) if error.needs_login() => {
                    tracing::info!(server = %self.settings.server_name, %error, "the login has ended");
                    self.set_ended(error);
                    return Ok(None);
                }
                Action::Failed(error) => return Err(error.into()),
                Action::OpenBrowser(_)
                | Action::ShowDeviceCode(_)
                | Action::WaitUntil(_)
                | Action::AskForClient { .. }
                | Action::SupplyAssertion(_)
                | Action::Idle => return Err(LoginError::Declined.into()),
            }
        }
    }

    /// Saves a change. It is tried several times: what the authorization server issued is issued once.
    pub(super) async fn save(&self, save: Save, context: &SaveContext) -> Result<(), StoreError> {
        for _ in 1..SAVE_ATTEMPTS {
            if self.logins.apply(save.clone(), context).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(SAVE_PAUSE).await;
        }
        self.logins.apply(save, context).await
    }
}
