//! The source of a client's credentials.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;
use mcp_client::CallExtensions;

/// A source of credentials for requests.
///
/// [`credential`](Self::credential) is called before each request, and before a private result is returned from the
/// client's cache, so it should return quickly. Slow work, such as sending a user to a login page, belongs in
/// [`challenged`](Self::challenged).
///
/// When the credential changes, the client clears private cached results, reopens subscriptions, and treats the session
/// with a legacy server as lost. A new token of the same user changes nothing if both credentials have the same
/// [subject](Credential::subject).
///
/// # Credentials per call
///
/// With [`credential_for`](Self::credential_for), calls of several users can share a client: [`Call::extension`] attaches
/// the user to a call, [`Items::extension`] to a list and [`Listen::extension`] to a subscription. The handshake and other
/// requests that belong to no call have the credential of [`credential`](Self::credential). Private results are cached for
/// each user. The session of a legacy server belongs to one user, so a call with the credential of another fails: use one
/// client for each user there.
///
/// [`Call::extension`]: mcp_client::Call::extension
/// [`Items::extension`]: mcp_client::Items::extension
/// [`Listen::extension`]: mcp_client::Listen::extension
///
/// # Examples
///
/// ```
/// use std::sync::RwLock;
///
/// use mcp_transport_http::{Authorizer, Challenge, Credential, async_trait};
///
/// /// Requests a new token when the server refuses the current one.
/// struct Refreshing {
///     token: RwLock<String>,
/// }
///
/// #[async_trait]
/// impl Authorizer for Refreshing {
///     async fn credential(&self) -> Option<Credential> {
///         Credential::bearer(&self.token.read().ok()?).ok()
///     }
///
///     async fn challenged(&self, challenge: &Challenge) -> Option<Credential> {
///         let current = self.credential().await;
///         if current != challenge.refused {
///             return current; // Another request has refreshed it.
///         }
///         let token = request_token().await?;
///         self.token.write().ok()?.clone_from(&token);
///         Credential::bearer(&token).ok()
///     }
/// }
///
/// async fn request_token() -> Option<String> {
///     Some("token".to_owned()) // Ask the authorization server.
/// }
/// ```
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Returns the credential for the next request, or `None` to send none.
    async fn credential(&self) -> Option<Credential>;

    /// Returns the credential for a call with these values, or `None` to send none. Defaults to
    /// [`credential`](Self::credential).
    ///
    /// ```
    /// use mcp_client::CallExtensions;
    /// use mcp_transport_http::{Authorizer, Challenge, Credential, async_trait};
    ///
    /// struct Token(String);
    ///
    /// struct PerCall;
    ///
    /// #[async_trait]
    /// impl Authorizer for PerCall {
    ///     async fn credential(&self) -> Option<Credential> {
    ///         Credential::bearer("of the gateway").ok()
    ///     }
    ///
    ///     async fn credential_for(&self, call: &CallExtensions) -> Option<Credential> {
    ///         match call.get::<Token>() {
    ///             Some(Token(token)) => Credential::bearer(token).ok(),
    ///             None => self.credential().await,
    ///         }
    ///     }
    ///
    ///     async fn challenged(&self, _: &Challenge) -> Option<Credential> {
    ///         None
    ///     }
    /// }
    ///
    /// # async fn call(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// let result = client.call_tool("mail").extension(Token("of Ada".to_owned())).await?;
    /// # drop(result);
    /// # Ok(())
    /// # }
    /// ```
    async fn credential_for(&self, call: &CallExtensions) -> Option<Credential> {
        let _ = call;
        self.credential().await
    }

    /// Called when the server refused a request with 401 or 403. The request is sent again with the returned credential;
    /// with `None` it fails with the status.
    ///
    /// Several requests may be refused at the same time: compare [`Challenge::refused`] with the current credential to see
    /// whether it was already replaced.
    ///
    /// The timeout of the call or of the handshake continues to run, and drops the returned future when it expires. If a
    /// user has to act, raise the [handshake timeout](mcp_client::ClientBuilder::handshake_timeout) or spawn a task.
    async fn challenged(&self, challenge: &Challenge) -> Option<Credential>;
}

/// The value of an `Authorization` header. Its `Debug` output does not contain the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(super) value: HeaderValue,
    pub(super) subject: Option<Arc<str>>,
}

impl Credential {
    /// Creates a bearer token credential: `Bearer TOKEN`.
    ///
    /// ```
    /// use mcp_transport_http::Credential;
    ///
    /// let credential = Credential::bearer("token").map(|credential| credential.subject("alice"));
    /// assert!(credential.is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the token has characters that are not allowed in a header.
    pub fn bearer(token: &str) -> Result<Self, InvalidCredential> {
        Self::new(&format!("Bearer {token}"))
    }

    /// Creates a credential of any scheme from the whole header value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has characters that are not allowed in a header.
    pub fn new(value: &str) -> Result<Self, InvalidCredential> {
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidCredential)?;
        value.set_sensitive(true);
        Ok(Self { value, subject: None })
    }

    /// Sets the user that the credential belongs to. The name is the application's own, and is not sent.
    ///
    /// Credentials with the same subject share the client's cache and the session with a legacy server, so that both
    /// survive a token refresh. Without a subject, each different credential counts as a different user.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<Arc<str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// The error of a credential that has characters that are not allowed in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credential has characters that are not allowed in a header")]
#[non_exhaustive]
pub struct InvalidCredential;

/// A refusal of a request with 401 or 403.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Challenge {
    /// The HTTP status: 401 or 403.
    pub status: u16,
    /// The values of all `WWW-Authenticate` headers.
    pub www_authenticate: Vec<String>,
    /// The credential that the request was sent with.
    pub refused: Option<Credential>,
    /// The values that are attached to the call; empty if the request belongs to none.
    pub call: CallExtensions,
}

/// Returns the same credential for all requests.
pub(crate) struct Fixed(pub(crate) Credential);

#[async_trait]
impl Authorizer for Fixed {
    async fn credential(&self) -> Option<Credential> {
        Some(self.0.clone())
    }

    async fn challenged(&self, _: &Challenge) -> Option<Credential> {
        None
    }
}
