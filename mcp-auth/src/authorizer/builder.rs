//! The settings of an authorizer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::observe::{Observation, Observer};
use reqwest::ClientBuilder;

use super::error::{BuildError, OAuthError};
use super::login_run::Interaction;
use super::logins::Logins;
use super::oauth::OAuth;
use super::prompt::{AssertionSource, DevicePrompt, LoginPrompt};
use super::sender::Sender;
use crate::Scopes;
use crate::address::shown;
use crate::client::{Flow, IdentityProvider, InvalidConfig, LoginConfig, LoginError, PreRegistered};
use crate::fetch::{AddressPolicy, Fetcher};
use crate::jose::SigningKey;
use crate::store::{MemoryStore, TokenStore};

const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_ASSERTION_TIMEOUT: Duration = Duration::from_secs(30);

/// A builder of [`OAuth`].
#[must_use]
pub struct OAuthBuilder {
    settings: Settings,
    store: Arc<dyn TokenStore>,
    account: Option<String>,
    client_key: Option<Arc<SigningKey>>,
    timeout: Option<Duration>,
    configure: Option<Configure>,
}

type Configure = Box<dyn FnOnce(ClientBuilder) -> ClientBuilder + Send>;

/// What logins need to know.
pub(super) struct Settings {
    /// The URL of the server, which may have a key in its query.
    server: String,
    /// What can be shown of it.
    pub(super) server_name: String,
    /// The flow without a user, if there is one.
    pub(super) flow: Option<Flow>,
    pub(super) interaction: Interaction,
    pub(super) assertions: Option<Arc<dyn AssertionSource>>,
    pub(super) login_timeout: Duration,
    pub(super) assertion_timeout: Duration,
    pub(super) uses_dpop: bool,
    pub(super) requires_dpop: bool,
    login_hint: String,
    client_name: Option<String>,
    client_uri: Option<String>,
    client: Option<PreRegistered>,
    client_metadata_url: Option<String>,
    dynamic_registration: bool,
    scopes: Scopes,
    private_addresses: Option<bool>,
    observer: Option<Arc<dyn Observer>>,
}

impl Settings {
    /// Reports a login or a refresh that has ended.
    pub(super) fn observe(&self, observation: &Observation<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe(observation);
        }
    }

    /// Returns the configuration of a login.
    pub(super) fn login_config(&self, flow: Flow) -> Result<LoginConfig, InvalidConfig> {
        let mut config = LoginConfig::new(&self.server, flow)?
            .dynamic_registration(self.dynamic_registration)
            .ask_for_client(matches!(self.interaction, Interaction::Browser(_)))
            .scopes(self.scopes.clone());
        if let Some(name) = &self.client_name {
            config = config.client_name(name);
        }
        if let Some(uri) = &self.client_uri {
            config = config.client_uri(uri);
        }
        if let Some(client) = &self.client {
            config = config.pre_registered(client.clone());
        }
        if let Some(url) = &self.client_metadata_url {
            config = config.client_metadata_url(url)?;
        }
        if let Some(are_allowed) = self.private_addresses {
            config = config.private_addresses(are_allowed);
        }
        Ok(config)
    }

    /// Whether logins need no user.
    pub(super) const fn is_unattended(&self) -> bool {
        self.flow.is_some()
    }

    /// Returns the error of a user who has to log in and cannot be asked, with the reason why an earlier login has ended.
    pub(super) fn not_logged_in(&self, ended: Option<&LoginError>) -> OAuthError {
        let hint = &self.login_hint;
        let hint = ended.map_or_else(|| hint.clone(), |ended| format!("{ended}; {hint}"));
        OAuthError::NotLoggedIn { server: self.server_name.clone(), hint }
    }
}

impl OAuthBuilder {
    pub(super) fn new(server: String) -> Self {
        let settings = Settings {
            server_name: shown(&server),
            server,
            flow: None,
            interaction: Interaction::None,
            assertions: None,
            login_timeout: DEFAULT_LOGIN_TIMEOUT,
            assertion_timeout: DEFAULT_ASSERTION_TIMEOUT,
            uses_dpop: false,
            requires_dpop: false,
            login_hint: "log in first".to_owned(),
            client_name: None,
            client_uri: None,
            client: None,
            client_metadata_url: None,
            dynamic_registration: true,
            scopes: Scopes::new(),
            private_addresses: None,
            observer: None,
        };
        let store = Arc::new(MemoryStore::new());
        Self { settings, store, account: None, client_key: None, timeout: None, configure: None }
    }

    /// Sets where logins are kept. Defaults to a [`MemoryStore`], so that the user logs in each time the program starts.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the account of the user, so that a store can have several logins to the same server. The name is the
    /// application's own, and is not sent. Defaults to none.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// Lets users log in with a browser. Without this and the methods below, a login has to be in the store.
    pub fn prompt(mut self, prompt: impl LoginPrompt) -> Self {
        (self.settings.interaction, self.settings.flow) = (Interaction::Browser(Arc::new(prompt)), None);
        self
    }

    /// Lets users log in by entering a code at another device.
    pub fn device_prompt(mut self, prompt: impl DevicePrompt) -> Self {
        (self.settings.interaction, self.settings.flow) = (Interaction::Device(Arc::new(prompt)), None);
        self
    }

    /// Logs in as the client itself, without a user. It has to be [registered](Self::client) and have a secret, or a
    /// [key](Self::client_key).
    pub fn client_credentials(self) -> Self {
        self.unattended(Flow::ClientCredentials, None)
    }

    /// Logs in with the identity of the workload that the program is, which the platform vouches for.
    pub fn workload_identity(self, source: impl AssertionSource) -> Self {
        self.unattended(Flow::WorkloadIdentity, Some(Arc::new(source)))
    }

    /// Logs in with the identity of a user of an enterprise, who has logged in to the application before.
    pub fn enterprise_managed(self, provider: IdentityProvider, source: impl AssertionSource) -> Self {
        self.unattended(Flow::EnterpriseManaged(provider), Some(Arc::new(source)))
    }

    fn unattended(mut self, flow: Flow, assertions: Option<Arc<dyn AssertionSource>>) -> Self {
        self.settings.interaction = Interaction::None;
        (self.settings.flow, self.settings.assertions) = (Some(flow), assertions);
        self
    }

    /// Sets the name of the client, which users see when they are asked to agree.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.settings.client_name = Some(name.into());
        self
    }

    /// Sets the address of a page about the client.
    pub fn client_uri(mut self, uri: impl Into<String>) -> Self {
        self.settings.client_uri = Some(uri.into());
        self
    }

    /// Sets the client that was registered with the authorization server by hand.
    pub fn client(mut self, client: PreRegistered) -> Self {
        self.settings.client = Some(client);
        self
    }

    /// Sets the key that the client authenticates with (`private_key_jwt`).
    pub fn client_key(mut self, key: SigningKey) -> Self {
        self.client_key = Some(Arc::new(key));
        self
    }

    /// Sets the address of the client's metadata document, which identifies the client where the authorization server supports
    /// that.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.settings.client_metadata_url = Some(url.into());
        self
    }

    /// Sets whether the client registers itself where the authorization server allows that. Defaults to true.
    pub const fn dynamic_registration(mut self, is_allowed: bool) -> Self {
        self.settings.dynamic_registration = is_allowed;
        self
    }

    /// Sets scopes that are requested in addition to those that the server demands, instead of those in its metadata.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.settings.scopes = scopes;
        self
    }

    /// Binds tokens to a key where that is supported (DPoP), so that a stolen token is of no use. The key is generated, and kept
    /// with the login. Defaults to false.
    pub const fn dpop(mut self, is_wanted: bool) -> Self {
        self.settings.uses_dpop = is_wanted;
        self
    }

    /// Refuses tokens that are not bound to a key. Defaults to false.
    pub const fn require_dpop(mut self) -> Self {
        (self.settings.uses_dpop, self.settings.requires_dpop) = (true, true);
        self
    }

    /// Sets whether metadata can name addresses of this machine and of private networks. Defaults to whether the server has one,
    /// by its URL.
    ///
    /// With it, a server on the internet can make the client send requests into the network that it runs in.
    pub const fn private_addresses(mut self, are_allowed: bool) -> Self {
        self.settings.private_addresses = Some(are_allowed);
        self
    }

    /// Sets what errors tell users to do if they have to log in and cannot be asked, for example ``run `example login` ``.
    /// Defaults to `log in first`.
    pub fn login_hint(mut self, hint: impl Into<String>) -> Self {
        self.settings.login_hint = hint.into();
        self
    }

    /// Sets the time that a user has to log in. Defaults to 5 minutes. No timeout of a call runs meanwhile.
    pub const fn login_timeout(mut self, timeout: Duration) -> Self {
        self.settings.login_timeout = timeout;
        self
    }

    /// Sets the time that an [`AssertionSource`] has. Defaults to 30 seconds.
    pub const fn assertion_timeout(mut self, timeout: Duration) -> Self {
        self.settings.assertion_timeout = timeout;
        self
    }

    /// Sets the time that a request to an authorization server has. Defaults to 15 seconds.
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Configures the HTTP client for requests to authorization servers: see
    /// [`FetcherBuilder::http_client`](crate::fetch::FetcherBuilder::http_client).
    pub fn http_client(mut self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder + Send + 'static) -> Self {
        self.configure = Some(Box::new(configure));
        self
    }

    /// Sets what receives the metrics of logins and refreshes, such as that of the crate `mcp-telemetry`. By default nothing
    /// is measured.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.settings.observer = Some(observer);
        self
    }

    /// Creates the authorizer.
    ///
    /// # Errors
    ///
    /// Returns an error if an address is neither `https` nor `http` to this machine, or the HTTP client cannot be created.
    pub fn build(self) -> Result<OAuth, BuildError> {
        let Self { settings, store, account, client_key, timeout, configure } = self;
        // The redirect URI of a login is not known yet; all other addresses are checked now.
        let config = settings.login_config(settings.flow.clone().unwrap_or(Flow::DeviceCode))?;
        let policy = if config.allows_private_addresses() { AddressPolicy::Any } else { AddressPolicy::Public };
        let mut fetcher = Fetcher::builder(policy);
        if let Some(timeout) = timeout {
            fetcher = fetcher.timeout(timeout);
        }
        if let Some(configure) = configure {
            fetcher = fetcher.http_client(configure);
        }
        let sender = Sender { fetcher: fetcher.build()?, client_key };
        let logins = Logins::new(store, config.server().as_str(), account.as_deref());
        Ok(OAuth::new(settings, sender, logins))
    }
}

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").field("server", &self.settings.server_name).finish_non_exhaustive()
    }
}
