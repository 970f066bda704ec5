//! Where the keys of an issuer come from.

use std::borrow::Cow;

use async_trait::async_trait;

/// Loads the keys of an issuer, as a JSON Web Key Set (RFC 7517).
///
/// [`JwtVerifier`](crate::server::JwtVerifier) decides when: at the first token, regularly, and when a token has an unknown key.
/// At most one load is in progress at a time.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// Loads the set of keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the keys cannot be loaded now. The keys that were loaded before stay in use for some time.
    async fn load(&self) -> Result<Vec<u8>, KeySourceError>;
}

/// The error of keys that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys of the issuer could not be loaded: {0}")]
pub struct KeySourceError(Cow<'static, str>);

impl KeySourceError {
    /// Creates an error with a reason, for the log of the server.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

/// Keys that do not change: a JSON Web Key Set as a text.
#[derive(Clone, Debug)]
pub struct StaticKeys(Vec<u8>);

impl StaticKeys {
    /// Creates a source of keys from a JSON Web Key Set.
    pub fn new(jwks: impl Into<Vec<u8>>) -> Self {
        Self(jwks.into())
    }
}

#[async_trait]
impl KeySource for StaticKeys {
    async fn load(&self) -> Result<Vec<u8>, KeySourceError> {
        Ok(self.0.clone())
    }
}
