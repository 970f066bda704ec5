//! The credentials that requests are sent with.

use std::fmt;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::AuthorizationError;
use crate::context::CallExtensions;

/// A salted digest of a credential, or of the user that it identifies: compares credentials without revealing them.
///
/// Fingerprints with different salts are never equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CredentialFingerprint {
    salt: [u8; 16],
    digest: [u8; 32],
}

impl CredentialFingerprint {
    /// Creates a fingerprint from a salt and a cryptographic digest over the salt and the credential.
    #[must_use]
    pub fn new(salt: [u8; 16], digest: [u8; 32]) -> Self {
        Self { salt, digest }
    }

    /// Returns the salt.
    #[must_use]
    pub fn salt(&self) -> [u8; 16] {
        self.salt
    }
}

impl fmt::Debug for CredentialFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialFingerprint(..)")
    }
}

/// Identifies the credentials that a request would be sent with.
///
/// A [`Transport`](crate::Transport) whose credentials may change provides one: the client calls it before it returns a
/// private result from its cache, for which no request is sent.
pub trait CredentialSource: Send + Sync + 'static {
    /// Returns the fingerprint of the credentials that a call with these values would be sent with now, or the error that
    /// the call would fail with.
    fn fingerprint<'a>(
        &'a self,
        call: &'a CallExtensions,
    ) -> Pin<Box<dyn Future<Output = Result<CredentialFingerprint, AuthorizationError>> + Send + 'a>>;
}
