//! Whose credentials requests are sent with.

use std::fmt;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// Tells credentials apart without revealing them: a salted digest of a credential, or of the user that it stands for.
///
/// Two fingerprints can be compared only if they have the same salt.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Tells a client whose credentials its next request would be sent with.
///
/// A [`Transport`](crate::Transport) whose credentials may change implements it: the client asks before it serves a
/// private result from its cache, which no request would be sent for.
pub trait CredentialSource: Send + Sync + 'static {
    /// Returns the fingerprint of the credentials that a request would be sent with now.
    fn fingerprint(&self) -> Pin<Box<dyn Future<Output = CredentialFingerprint> + Send + '_>>;
}
