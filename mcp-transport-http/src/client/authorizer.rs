//! The source of a client's credentials.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use mcp_client::{AuthorizationError, CallExtensions};
use reqwest::Url;

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
/// use std::sync::{PoisonError, RwLock};
///
/// use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, async_trait};
///
/// /// Requests a new token when the server refuses the current one.
/// struct Refreshing {
///     token: RwLock<String>,
/// }
///
/// #[async_trait]
/// impl Authorizer for Refreshing {
///     async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
///         let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
///         Ok(Some(Credential::bearer(&token)?))
///     }
///
///     async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
///         let current = self.credential().await?;
///         if current != challenge.refused {
///             return Ok(current); // Another request has refreshed it.
///         }
///         let token = request_token().await?;
///         self.token.write().unwrap_or_else(PoisonError::into_inner).clone_from(&token);
///         Ok(Some(Credential::bearer(&token)?))
///     }
/// }
///
/// async fn request_token() -> Result<String, AuthorizationError> {
///     Ok("token".to_owned()) // Ask the authorization server.
/// }
/// ```
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Returns the credential for the next request, or `None` to send none.
    ///
    /// # Errors
    ///
    /// The call fails with the error, which reaches its caller as [`Error::Authorization`](mcp_client::Error::Authorization).
    /// Nothing is sent.
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError>;

    /// Returns the credential for a call with these values, or `None` to send none. Defaults to
    /// [`credential`](Self::credential).
    ///
    /// # Errors
    ///
    /// As for [`credential`](Self::credential).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_client::CallExtensions;
    /// use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, async_trait};
    ///
    /// struct Token(String);
    ///
    /// struct PerCall;
    ///
    /// #[async_trait]
    /// impl Authorizer for PerCall {
    ///     async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
    ///         Ok(Some(Credential::bearer("of the gateway")?))
    ///     }
    ///
    ///     async fn credential_for(&self, call: &CallExtensions) -> Result<Option<Credential>, AuthorizationError> {
    ///         match call.get::<Token>() {
    ///             Some(Token(token)) => Ok(Some(Credential::bearer(token)?)),
    ///             None => self.credential().await,
    ///         }
    ///     }
    ///
    ///     async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
    ///         Ok(None)
    ///     }
    /// }
    ///
    /// # async fn call(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// let result = client.call_tool("mail").extension(Token("of Ada".to_owned())).await?;
    /// # drop(result);
    /// # Ok(())
    /// # }
    /// ```
    async fn credential_for(&self, call: &CallExtensions) -> Result<Option<Credential>, AuthorizationError> {
        let _ = call;
        self.credential().await
    }

    /// Called when the server refused a request with 401 or 403. The request is sent again with the returned credential;
    /// with `None` it fails with the status.
    ///
    /// Several requests may be refused at the same time: compare [`Challenge::refused`] with the current credential to see
    /// whether it was already replaced.
    ///
    /// A user may have to act, so this can take as long as it needs: the timeouts of the call or of the handshake stop in the
    /// meantime. If the request belongs to no call, those of all calls do. The returned future is dropped if the caller drops
    /// the call, and if the client is closed.
    ///
    /// It is not called for requests that are not worth a login: the end of a session, and the cancellation of a call.
    ///
    /// # Errors
    ///
    /// The call fails with the error, which reaches its caller as [`Error::Authorization`](mcp_client::Error::Authorization).
    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError>;

    /// Returns the value of the `DPoP` header of a request that is about to be sent with a
    /// [DPoP credential](Credential::dpop). It is called for each attempt to send a request, and for no other credential.
    ///
    /// If the server responds with 401 and asks for a nonce, the request is sent again once, with a new proof. This is no
    /// challenge. [`handle_response`](Self::handle_response) has the nonce before. Defaults to an error.
    ///
    /// # Errors
    ///
    /// The call fails with the error, which reaches its caller as [`Error::Authorization`](mcp_client::Error::Authorization).
    async fn proof(
        &self,
        credential: &Credential,
        request: &RequestHead<'_>,
    ) -> Result<HeaderValue, AuthorizationError> {
        let _ = (credential, request);
        Err(AuthorizationError::new("the authorizer has a DPoP credential and creates no proofs"))
    }

    /// Called with the head of each response before it is used, for example to record the nonce of the server for the next
    /// [proof](Self::proof). `credential` is that of the request. It must not block. Defaults to no effect.
    fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        let _ = (credential, response);
    }
}

/// The parts of a request that a proof is made for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The URL, with its query.
    pub url: &'a Url,
}

impl<'a> RequestHead<'a> {
    /// Creates a head, for tests of authorizers.
    #[must_use]
    pub fn new(method: &'a Method, url: &'a Url) -> Self {
        Self { method, url }
    }
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// The HTTP status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The URL that responded.
    pub url: &'a Url,
    /// Whether the server refused the request before, and it was sent again with the credential that
    /// [`challenged`](Authorizer::challenged) returned.
    pub is_retry: bool,
}

impl<'a> ResponseHead<'a> {
    /// Creates a head, for tests of authorizers.
    #[must_use]
    pub fn new(status: StatusCode, headers: &'a HeaderMap, url: &'a Url) -> Self {
        Self { status, headers, url, is_retry: false }
    }

    /// Sets whether the server refused the request before.
    #[must_use]
    pub const fn retry(mut self, is_retry: bool) -> Self {
        self.is_retry = is_retry;
        self
    }
}

/// The value of an `Authorization` header. Its `Debug` output does not contain the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(super) value: HeaderValue,
    pub(super) subject: Option<Arc<str>>,
    /// Whether requests with it need a proof.
    pub(super) needs_proof: bool,
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

    /// Creates a credential that is bound to a key: `DPoP TOKEN`. Each request with it has a [proof](Authorizer::proof).
    ///
    /// # Errors
    ///
    /// Returns an error if the token has characters that are not allowed in a header.
    pub fn dpop(token: &str) -> Result<Self, InvalidCredential> {
        Ok(Self { needs_proof: true, ..Self::new(&format!("DPoP {token}"))? })
    }

    /// Creates a credential of any scheme from the whole header value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has characters that are not allowed in a header.
    pub fn new(value: &str) -> Result<Self, InvalidCredential> {
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidCredential)?;
        value.set_sensitive(true);
        Ok(Self { value, subject: None, needs_proof: false })
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

    /// Returns what follows the scheme, which is a secret: the access token of a bearer or DPoP credential.
    #[must_use]
    pub fn token(&self) -> &str {
        // Credentials are created from text.
        let value = self.value.to_str().unwrap_or_default();
        value.split_once(' ').map_or("", |(_, token)| token)
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

impl From<InvalidCredential> for AuthorizationError {
    fn from(error: InvalidCredential) -> Self {
        Self::new(error.to_string())
    }
}

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

impl Challenge {
    /// Creates a challenge of a request that was sent without a credential and belongs to no call.
    #[must_use]
    pub fn new(status: u16, www_authenticate: impl IntoIterator<Item = String>) -> Self {
        let www_authenticate = www_authenticate.into_iter().collect();
        Self { status, www_authenticate, refused: None, call: CallExtensions::default() }
    }

    /// Sets the credential that the request was sent with.
    #[must_use]
    pub fn refused(mut self, credential: impl Into<Option<Credential>>) -> Self {
        self.refused = credential.into();
        self
    }
}

/// Returns the same credential for all requests.
pub(crate) struct Fixed(pub(crate) Credential);

#[async_trait]
impl Authorizer for Fixed {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        Ok(Some(self.0.clone()))
    }

    async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        Ok(None)
    }
}
