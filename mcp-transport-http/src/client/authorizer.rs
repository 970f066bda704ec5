//! Where credentials come from.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;

/// Knows what to show to a server that wants to know who asks.
///
/// It is asked before each request, and before a private result is served from the client's cache, so what it has should
/// be at hand; what takes time, such as sending a person to a page, belongs into [`challenged`](Self::challenged).
///
/// What belongs to one user is never used for another. When the credential changes, private results are forgotten,
/// subscriptions are opened again, and the session with a legacy server counts as lost. A new token of the same user
/// changes nothing if both name that user ([`Credential::subject`]).
pub trait Authorizer: Send + Sync + 'static {
    /// What to show with the next request; nothing, if there is nothing to show yet.
    fn credential(&self) -> CredentialFuture<'_>;

    /// The server did not let a request pass. Whatever this comes back with is shown in a second attempt; with nothing,
    /// the status is the answer.
    ///
    /// Several requests may be refused at the same time: [`Challenge::refused`] tells whether the credential that is at
    /// hand by now is another one already.
    ///
    /// The time of the call, or of the handshake, goes on meanwhile, and when it is over, what is returned here is dropped.
    /// Where a person is asked, the client needs
    /// [time for that](mcp_client::ClientBuilder::handshake_timeout), or the question a task of its own.
    fn challenged<'a>(&'a self, challenge: &'a Challenge) -> CredentialFuture<'a>;
}

/// What an [`Authorizer`] comes back with, when it has it.
pub type CredentialFuture<'a> = Pin<Box<dyn Future<Output = Option<Credential>> + Send + 'a>>;

/// The value of an `Authorization` header. It is never shown in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    value: HeaderValue,
    subject: Option<Arc<str>>,
}

impl Credential {
    /// A token: `Bearer TOKEN`.
    ///
    /// # Errors
    ///
    /// Fails if the token has characters that no header can have.
    pub fn bearer(token: &str) -> Result<Self, InvalidCredential> {
        Self::new(&format!("Bearer {token}"))
    }

    /// Any scheme, with all that follows it.
    ///
    /// # Errors
    ///
    /// Fails if there are characters in it that no header can have.
    pub fn new(value: &str) -> Result<Self, InvalidCredential> {
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidCredential)?;
        value.set_sensitive(true);
        Ok(Self { value, subject: None })
    }

    /// Names the user that the credential stands for, by a name that is the application's own and not sent.
    ///
    /// Credentials with the same subject share the client's cache and the session with a legacy server, so that both
    /// outlive a token that is refreshed. Without a subject, each different credential counts as another user's.
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

/// A credential has characters that no header can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidCredential;

impl fmt::Display for InvalidCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credential has characters that no header can have")
    }
}

impl std::error::Error for InvalidCredential {}

/// How a server refused a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The values of all `WWW-Authenticate` headers.
    pub www_authenticate: Vec<String>,
    /// What was shown with the request.
    pub refused: Option<Credential>,
}

/// The same credential for all requests.
pub(crate) struct Fixed(pub(crate) Credential);

impl Authorizer for Fixed {
    fn credential(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::ready(Some(self.0.clone())))
    }

    fn challenged<'a>(&'a self, _: &'a Challenge) -> CredentialFuture<'a> {
        Box::pin(std::future::ready(None))
    }
}
