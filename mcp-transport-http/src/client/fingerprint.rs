//! Fingerprints of credentials, to compare them without storing them.

use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;
use mcp_client::{AuthorizationError, CallExtensions, CredentialFingerprint, CredentialSource};
use sha2::{Digest as _, Sha256};

use super::authorizer::{Authorizer, Credential};

/// Computes fingerprints that can be compared with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprinter {
    salt: [u8; 16],
}

/// The credential that a request is sent with.
#[derive(Clone, Copy)]
pub(crate) enum PresentedCredential<'a> {
    /// The credential of an authorizer.
    Credential(&'a Credential),
    /// A header that the application adds to all requests, without an authorizer.
    Header(&'a HeaderValue),
    Nothing,
}

impl Fingerprinter {
    pub(crate) fn new() -> Self {
        let random = RandomState::new();
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&random.hash_one(0).to_ne_bytes());
        salt[8..].copy_from_slice(&random.hash_one(1).to_ne_bytes());
        Self { salt }
    }

    /// Creates a fingerprinter with the salt of another fingerprint.
    pub(crate) fn with_salt_of(other: &CredentialFingerprint) -> Self {
        Self { salt: other.salt() }
    }

    pub(crate) fn of(&self, presented: PresentedCredential<'_>) -> CredentialFingerprint {
        let (kind, text) = match presented {
            PresentedCredential::Credential(credential) => match credential.subject.as_deref() {
                Some(subject) => (b's', subject.as_bytes()),
                None => (b'c', credential.value.as_bytes()),
            },
            PresentedCredential::Header(value) => (b'c', value.as_bytes()),
            PresentedCredential::Nothing => (b'n', &b""[..]),
        };
        let digest = Sha256::new().chain_update(self.salt).chain_update([kind]).chain_update(text).finalize();
        CredentialFingerprint::new(self.salt, digest.into())
    }
}

/// Returns the credential of a call, or that of the client.
pub(crate) async fn credential(
    authorizer: &dyn Authorizer,
    call: &CallExtensions,
) -> Result<Option<Credential>, AuthorizationError> {
    if call.is_empty() { authorizer.credential().await } else { authorizer.credential_for(call).await }
}

/// Computes the fingerprint of an authorizer's current credential.
pub(crate) struct AuthorizerFingerprint {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) fingerprints: Fingerprinter,
}

impl CredentialSource for AuthorizerFingerprint {
    fn fingerprint<'a>(
        &'a self,
        call: &'a CallExtensions,
    ) -> Pin<Box<dyn Future<Output = Result<CredentialFingerprint, AuthorizationError>> + Send + 'a>> {
        Box::pin(async move {
            let credential = credential(&*self.authorizer, call).await?;
            let presented = credential.as_ref().map_or(PresentedCredential::Nothing, PresentedCredential::Credential);
            Ok(self.fingerprints.of(presented))
        })
    }
}
