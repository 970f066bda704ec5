//! The source of a client's credentials.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;

/// A source of credentials for requests.
///
/// [`credential`](Self::credential) is called before each request, and before a private result is returned from the
/// client's cache, so it should return quickly. Slow work, such as sending a user to a login page, belongs in
/// [`challenged`](Self::challenged).
///
/// When the credential changes, the client clears private cached results, reopens subscriptions, and treats the session
/// with a legacy server as lost. A new token of the same user changes nothing if both credentials have the same
/// [subject](Credential::subject).
pub trait Authorizer: Send + Sync + 'static {
    /// Returns the credential for the next request, or `None` to send none.
    fn credential(&self) -> CredentialFuture<'_>;

    /// Called when the server refused a request with 401 or 403. The request is sent again with the returned credential;
    /// with `None` it fails with the status.
    ///
    /// Several requests may be refused at the same time: compare [`Challenge::refused`] with the current credential to see
    /// whether it was already replaced.
    ///
    /// The timeout of the call or of the handshake continues to run, and drops the returned future when it expires. If a
    /// user has to act, raise the [handshake timeout](mcp_client::ClientBuilder::handshake_timeout) or spawn a task.
    fn challenged<'a>(&'a self, challenge: &'a Challenge) -> CredentialFuture<'a>;
}

/// The future that an [`Authorizer`] returns.
pub type CredentialFuture<'a> = Pin<Box<dyn Future<Output = Option<Credential>> + Send + 'a>>;

/// The value of an `Authorization` header. Its `Debug` output does not contain the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    value: HeaderValue,
    subject: Option<Arc<str>>,
}

impl Credential {
    /// Creates a bearer token credential: `Bearer TOKEN`.
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

    pub(crate) fn value(&self) -> &HeaderValue {
        &self.value
    }

    pub(crate) fn named_subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// The error of a credential that has characters that are not allowed in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidCredential;

impl fmt::Display for InvalidCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credential has characters that are not allowed in a header")
    }
}

impl std::error::Error for InvalidCredential {}

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
}

/// Returns the same credential for all requests.
pub(crate) struct Fixed(pub(crate) Credential);

impl Authorizer for Fixed {
    fn credential(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::ready(Some(self.0.clone())))
    }

    fn challenged<'a>(&'a self, _: &'a Challenge) -> CredentialFuture<'a> {
        Box::pin(std::future::ready(None))
    }
}
