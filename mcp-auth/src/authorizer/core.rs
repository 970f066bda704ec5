//! What the tasks of a process share about a login.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::active_login::{ActiveLogin, Origin};
use super::backoff::Backoff;
use super::builder::Settings;
use super::clock;
use super::error::OAuthError;
use super::logins::{Logins, SaveContext};
use super::record::SavedGrant;
use super::sender::Sender;
use super::single_flight::{LoginResult, SharedResult, WeakSharedResult};
use super::step_ups::StepUps;
use crate::Challenge;
use crate::client::{DpopNonce, Grant, LoginError};
use crate::jose::SigningKey;

pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) sender: Sender,
    pub(super) logins: Logins,
    /// Not locked while anything is awaited.
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) active: Option<Arc<ActiveLogin>>,
    /// Whether the store was read.
    pub(super) is_loaded: bool,
    /// Why the last login has ended.
    pub(super) ended: Option<LoginError>,
    /// The refresh in flight, in a task of its own.
    pub(super) refresh: Option<SharedResult>,
    /// The login without a user in flight that was asked for, in a task of its own.
    pub(super) unattended_login: Option<SharedResult>,
    /// The login of a user in flight, as long as a call waits for it.
    pub(super) login: Option<WeakSharedResult>,
    pub(super) step_ups: StepUps,
    /// The nonce of the server for proofs.
    pub(super) nonce: DpopNonce,
    /// The latest challenges of the server, for logins without a user.
    pub(super) challenges: Vec<Challenge>,
    /// When to try to refresh, or to log in without a user, again.
    pub(super) backoff: Backoff,
    /// How often the user has logged out. Tokens that were requested before the last time must not be used.
    pub(super) generation: u64,
}

impl State {
    /// Forgets the tokens and returns them. What is in flight is not joined any more, and its tokens are not used.
    pub(super) fn log_out(&mut self) -> Option<Arc<ActiveLogin>> {
        self.generation += 1;
        (self.login, self.refresh, self.unattended_login) = (None, None, None);
        self.active.take()
    }
}

impl Core {
    pub(super) fn new(settings: Settings, sender: Sender, logins: Logins) -> Self {
        Self { settings, sender, logins, state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the tokens in use. Returns an error if the user has logged out since they were requested.
    pub(super) fn set_active(&self, active: Option<Arc<ActiveLogin>>, generation: u64) -> Result<(), OAuthError> {
        let mut state = self.state();
        if state.generation != generation {
            return Err(OAuthError::LoggedOut);
        }
        if active.is_some() {
            state.ended = None;
            state.backoff.reset();
        }
        let earlier = std::mem::replace(&mut state.active, active);
        state.is_loaded = true;
        drop(state);
        drop(earlier);
        Ok(())
    }

    /// Returns an error if the user has logged out since then.
    pub(super) fn check_generation(&self, generation: u64) -> Result<(), OAuthError> {
        if self.state().generation == generation { Ok(()) } else { Err(OAuthError::LoggedOut) }
    }

    pub(super) fn set_ended(&self, error: LoginError) {
        self.state().ended = Some(error);
    }

    pub(super) fn challenges(&self) -> Vec<Challenge> {
        self.state().challenges.clone()
    }

    pub(super) fn activate(
        &self,
        saved: SavedGrant,
        origin: Origin,
        is_saved: bool,
    ) -> Result<Arc<ActiveLogin>, OAuthError> {
        let active = ActiveLogin::new(saved, origin, is_saved);
        let invalid = |_| LoginError::InvalidTokenResponse("the access token has characters that cannot be sent");
        Ok(Arc::new(active.map_err(invalid)?))
    }

    /// Uses the tokens of a login.
    pub(super) fn use_login(
        &self,
        grant: Grant,
        context: SaveContext,
        generation: u64,
        is_saved: bool,
    ) -> Result<Arc<ActiveLogin>, OAuthError> {
        let key = context.key.filter(|_| grant.is_dpop_bound());
        let saved = SavedGrant { grant, issued_at: clock::now(), id: context.id, key };
        let active = self.activate(saved, Origin::Login, is_saved)?;
        self.set_active(Some(Arc::clone(&active)), generation)?;
        tracing::debug!(server = %self.settings.server_name, "logged in");
        Ok(active)
    }

    /// Returns the key that tokens are bound to, if any: that of the earlier login, or a new one.
    pub(super) fn dpop_key(&self, earlier: Option<&SavedGrant>) -> Result<Option<Arc<SigningKey>>, OAuthError> {
        if !self.settings.uses_dpop {
            return Ok(None);
        }
        match earlier.and_then(|saved| saved.key.clone()) {
            Some(key) => Ok(Some(key)),
            None => Ok(Some(Arc::new(SigningKey::generate()?))),
        }
    }

    /// Returns the tokens in use if they could not be saved. They are newer than those of the store.
    pub(super) fn unsaved(&self) -> Option<SavedGrant> {
        self.state().active.as_ref().filter(|active| !active.is_saved).map(|active| active.saved.clone())
    }

    pub(super) fn not_logged_in(&self) -> OAuthError {
        let ended = self.state().ended.clone();
        self.settings.not_logged_in(ended.as_ref())
    }

    /// Returns the tokens in use, which are read from the store the first time.
    pub(super) async fn active(&self) -> LoginResult {
        let generation = {
            let state = self.state();
            if state.is_loaded {
                return Ok(state.active.clone());
            }
            state.generation
        };
        let saved = self.logins.load().await?;
        let loaded = saved.grant.map(|grant| self.activate(grant, Origin::Store, true)).transpose()?;
        let mut state = self.state();
        // A login, a refresh or a log-out may have been faster.
        if !state.is_loaded && state.generation == generation {
            (state.active, state.is_loaded) = (loaded, true);
        }
        Ok(state.active.clone())
    }

    /// Whether tokens can be replaced without a user.
    pub(super) fn is_renewable(&self, active: &ActiveLogin) -> bool {
        active.is_refreshable() || self.settings.is_unattended()
    }
}
