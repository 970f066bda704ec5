//! The authorizer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;
use mcp_transport_http::{AuthorizationError, Authorizer, Credential, RequestHead, ResponseHead};

use super::builder::{OAuthBuilder, Settings};
use super::core::Core;
use super::error::OAuthError;
use super::logins::Logins;
use super::sender::Sender;
use super::single_flight::LoginReason;

/// Logs in to a server when it demands that, and keeps the login.
///
/// Clones share the login. It is the [`Authorizer`] of the server's transport:
///
/// ```no_run
/// use mcp_auth::authorizer::{OAuth, TerminalPrompt};
/// use mcp_auth::store::FileStore;
/// use mcp_transport_http::HttpTransport;
///
/// # fn transport() -> Result<HttpTransport, Box<dyn std::error::Error>> {
/// let server = "https://example.com/mcp";
/// let oauth = OAuth::builder(server)
///     .client_name("Example")
///     .prompt(TerminalPrompt::new())
///     .store(FileStore::new("/home/ada/.config/example/logins.json"))
///     .build()?;
/// let transport = HttpTransport::new(server)?.authorizer(oauth.clone());
/// # Ok(transport)
/// # }
/// ```
///
/// # Tokens
///
/// Tokens are refreshed ahead of their expiry, while calls go on with the old ones. A refresh happens once, for all tasks and for
/// all processes that share the store, and its result is saved before it is used. If the authorization server cannot be reached,
/// the tokens are kept; if it says that the login has ended, the next request that the server refuses starts a login.
///
/// Calls that wait for the same login share it. It is cancelled when the last of them is dropped.
#[derive(Clone)]
pub struct OAuth {
    core: Arc<Core>,
}

impl OAuth {
    /// Creates a builder for the server with this URL.
    pub fn builder(server: impl Into<String>) -> OAuthBuilder {
        OAuthBuilder::new(server.into())
    }

    pub(super) fn new(settings: Settings, sender: Sender, logins: Logins) -> Self {
        Self { core: Arc::new(Core::new(settings, sender, logins)) }
    }

    /// Logs in now, instead of with the first request that the server refuses. Replaces an earlier login.
    ///
    /// If the server has not refused a request before, it is sent one without a token: its challenge can name metadata that is in
    /// no well-known place, and scopes.
    ///
    /// Tokens that the store fails to save are used until the process ends, and saved when they are refreshed.
    ///
    /// # Errors
    ///
    /// Returns an error if the login failed. An earlier login is kept then.
    pub async fn login(&self) -> Result<(), OAuthError> {
        let reason = LoginReason { refused: None, challenges: Vec::new(), step_up: None, is_forced: true };
        let logged_in = match self.core.start_login(reason)? {
            Some(login) => login.await?,
            None => None,
        };
        logged_in.map(drop).ok_or_else(|| self.core.not_logged_in())
    }

    /// Whether there are tokens, or a way to get them without a user. They may be invalid.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn is_logged_in(&self) -> Result<bool, OAuthError> {
        Ok(self.core.settings.is_unattended() || self.core.active().await?.is_some())
    }

    /// Logs out: forgets the tokens, and revokes them if the authorization server supports that.
    ///
    /// Logins in flight end with [`OAuthError::LoggedOut`], and the tokens that they obtain are revoked, too.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed, or the authorization server did not confirm. The tokens are forgotten in the latter
    /// case, too.
    pub async fn logout(&self) -> Result<(), OAuthError> {
        self.core.logout().await
    }
}

#[async_trait]
impl Authorizer for OAuth {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        Ok(self.core.credential().await?)
    }

    async fn challenged(
        &self,
        challenge: &mcp_transport_http::Challenge,
    ) -> Result<Option<Credential>, AuthorizationError> {
        Ok(self.core.challenged(challenge).await?)
    }

    async fn proof(
        &self,
        credential: &Credential,
        request: &RequestHead<'_>,
    ) -> Result<HeaderValue, AuthorizationError> {
        Ok(self.core.proof(credential, request)?)
    }

    fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        self.core.handle_response(credential, response);
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("server", &self.core.settings.server_name).finish_non_exhaustive()
    }
}
