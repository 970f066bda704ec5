//! What the store has.

use std::sync::Arc;

use super::clock;
use super::record::{SavedGrant, SavedLogin, SavedRegistrations};
use crate::client::{Registration, Save};
use crate::jose::SigningKey;
use crate::store::{StoreError, StoreKey, StoreLock, TokenStore};

/// The login of an account to a server, in a store.
pub(super) struct Logins {
    store: Arc<dyn TokenStore>,
    key: StoreKey,
    /// The name of the lock that is held while a user logs in. It is not the one of refreshes: a login takes minutes, and tokens
    /// with too few scopes can be used and refreshed meanwhile.
    prompt_key: StoreKey,
}

/// What belongs to tokens that are saved, and does not come from the authorization server.
pub(super) struct SaveContext {
    /// The identity of the login.
    pub(super) id: Arc<str>,
    /// The key that tokens are bound to.
    pub(super) key: Option<Arc<SigningKey>>,
}

impl Logins {
    pub(super) fn new(store: Arc<dyn TokenStore>, server: &str, account: Option<&str>) -> Self {
        let key = StoreKey::login(server, account);
        let prompt_key = StoreKey::prompt(server, account);
        Self { store, key, prompt_key }
    }

    pub(super) async fn load(&self) -> Result<SavedLogin, StoreError> {
        match self.store.load(&self.key).await? {
            Some(record) => SavedLogin::decode(&record, &self.key),
            None => Ok(SavedLogin::default()),
        }
    }

    pub(super) async fn registrations(&self) -> Result<Vec<Registration>, StoreError> {
        Ok(self.load_registrations().await?.0)
    }

    async fn load_registrations(&self) -> Result<SavedRegistrations, StoreError> {
        match self.store.load(&StoreKey::registrations()).await? {
            Some(record) => SavedRegistrations::decode(&record),
            None => Ok(SavedRegistrations::default()),
        }
    }

    /// Waits for the right to refresh the tokens, or to replace them.
    pub(super) async fn lock(&self) -> Result<StoreLock, StoreError> {
        self.store.lock(&self.key).await
    }

    /// Waits for the right to ask the user.
    pub(super) async fn lock_prompt(&self) -> Result<StoreLock, StoreError> {
        self.store.lock(&self.prompt_key).await
    }

    /// Does what a flow wants saved. Changes of the tokens need the lock.
    pub(super) async fn apply(&self, save: Save, context: &SaveContext) -> Result<(), StoreError> {
        match save {
            Save::Grant(grant) => {
                let issued_at = clock::now();
                let requested_scopes = grant.requested_scopes.clone();
                let key = context.key.clone().filter(|_| grant.is_dpop_bound());
                let grant = SavedGrant { grant: *grant, issued_at, id: Arc::clone(&context.id), key };
                self.save(&SavedLogin { grant: Some(grant), requested_scopes }).await
            }
            Save::ForgetGrant { issuer, resource } => self.forget(&issuer, &resource).await,
            Save::Registration(registration) => self.change_registrations(|known| known.insert(registration)).await,
            Save::ForgetRegistration { issuer, client_id } => {
                self.change_registrations(|known| known.remove(&issuer, &client_id)).await
            }
        }
    }

    pub(super) async fn save(&self, login: &SavedLogin) -> Result<(), StoreError> {
        self.store.save(&self.key, &login.encode()).await
    }

    /// Gives up the tokens of an issuer for a resource, and keeps which scopes were requested.
    async fn forget(&self, issuer: &str, resource: &str) -> Result<(), StoreError> {
        let login = self.load().await?;
        let is_meant = |saved: &SavedGrant| saved.grant.issuer == issuer && saved.grant.resource == resource;
        let Some(saved) = login.grant.filter(is_meant) else { return Ok(()) };
        let requested_scopes = login.requested_scopes.union(&saved.grant.requested_scopes);
        self.save(&SavedLogin { grant: None, requested_scopes }).await
    }

    /// Removes everything about the login.
    pub(super) async fn remove(&self) -> Result<(), StoreError> {
        self.store.remove(&self.key).await
    }

    async fn change_registrations(&self, change: impl FnOnce(&mut SavedRegistrations)) -> Result<(), StoreError> {
        let key = StoreKey::registrations();
        let _lock = self.store.lock(&key).await?;
        let mut registrations = self.load_registrations().await?;
        change(&mut registrations);
        self.store.save(&key, &registrations.encode()).await
    }
}
