//! Deciding whether an access token is valid.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_server::AuthInfo;

use crate::Secret;

/// Decides whether an access token is valid, and what it says.
///
/// [`JwtVerifier`](super::JwtVerifier) and [`IntrospectionVerifier`](super::IntrospectionVerifier) implement it;
/// [`verifier_fn`] makes one from a function. [`ProtectedResource`](super::ProtectedResource) checks what is the same for all
/// tokens: that they were issued for this server, their expiry, scopes, and the key that they are bound to (the claim
/// `cnf.jkt`; tokens with other members of `cnf` are not valid). So the [`AuthInfo`] has to have all of it that the token says.
#[async_trait]
pub trait TokenVerifier: Send + Sync {
    /// Verifies a token, and returns what it says.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is not valid, or if that cannot be found out now.
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError>;

    /// Returns for how long a valid token is remembered before it is verified again, unless it expires earlier. A token that is
    /// revoked may be accepted for that long. Defaults to 5 minutes.
    fn remember_for(&self) -> Duration {
        Duration::from_secs(300)
    }
}

/// Why a token is not accepted. Clients get neither the variant's text nor its cause; it is traced at level `debug`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is not valid. The client gets 401, and has to get a new token.
    #[error("invalid token: {0}")]
    Invalid(Cow<'static, str>),
    /// It is unknown whether the token is valid, because something that decides it cannot be reached. The client gets 503, and
    /// can try again with the same token.
    #[error("the token cannot be verified now: {0}")]
    Unavailable(Cow<'static, str>),
}

impl TokenError {
    /// Creates the error of a token that is not valid. The reason must not contain the token.
    pub fn invalid(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Creates the error of a token that cannot be verified now.
    pub fn unavailable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Unavailable(reason.into())
    }
}

#[async_trait]
impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError> {
        (**self).verify(token).await
    }

    fn remember_for(&self) -> Duration {
        (**self).remember_for()
    }
}

/// Makes a verifier from a function, for tokens that neither are JWTs nor can be introspected.
///
/// ```
/// use mcp_auth::Secret;
/// use mcp_auth::server::{TokenError, verifier_fn};
/// use mcp_server::{AuthInfo, Principal};
///
/// let verifier = verifier_fn(|token: Secret| async move {
///     // Looks the token up in a database.
///     let user = if token.expose() == "s3cret" { "alice" } else { return Err(TokenError::invalid("unknown")) };
///     Ok(AuthInfo::builder(Principal::new(None, user)).audience(["https://api.example.com/mcp"]).build())
/// });
/// ```
pub fn verifier_fn<F, Fut>(verify: F) -> impl TokenVerifier + 'static
where
    F: Fn(Secret) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<AuthInfo, TokenError>> + Send + 'static,
{
    VerifierFn(verify)
}

struct VerifierFn<F>(F);

#[async_trait]
impl<F, Fut> TokenVerifier for VerifierFn<F>
where
    F: Fn(Secret) -> Fut + Send + Sync,
    Fut: Future<Output = Result<AuthInfo, TokenError>> + Send,
{
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError> {
        (self.0)(Secret::from(token)).await
    }
}
