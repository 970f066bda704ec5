//! The private key of a client.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

use super::PublicJwk;
use crate::Secret;

/// A private key that signs assertions and proofs. Its `Debug` output has the public part only.
///
/// ```
/// use mcp_auth::jose::SigningKey;
///
/// let key = SigningKey::generate()?;
/// let saved = key.to_pem();
/// let restored = SigningKey::from_pem(saved.expose()).expect("a key that was generated is valid");
/// assert_eq!(restored.thumbprint(), key.thumbprint());
/// # Ok::<(), mcp_auth::jose::SigningError>(())
/// ```
pub struct SigningKey {
    pair: KeyPair,
    key_id: Option<String>,
    public: PublicJwk,
    thumbprint: String,
    pem: Secret,
}

enum KeyPair {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// An algorithm that keys sign with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyAlgorithm {
    /// ECDSA on the curve P-256 with SHA-256.
    Es256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// EdDSA on the curve Ed25519.
    EdDsa,
}

impl KeyAlgorithm {
    /// Returns the name that the algorithm has in tokens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl SigningKey {
    /// Generates a key for ES256, which every authorization server with DPoP supports.
    ///
    /// # Errors
    ///
    /// Returns an error if the random source of the operating system fails.
    pub fn generate() -> Result<Self, SigningError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| SigningError)?;
        let document = pair.to_pkcs8v1().map_err(|_| SigningError)?;
        let body = Zeroizing::new(BASE64_STANDARD.encode(document.as_ref()));
        let mut pem = String::with_capacity(body.len() + 64);
        pem.push_str("-----BEGIN PRIVATE KEY-----\n");
        for line in body.as_bytes().chunks(64) {
            pem.push_str(std::str::from_utf8(line).unwrap_or_default());
            pem.push('\n');
        }
        pem.push_str("-----END PRIVATE KEY-----\n");
        Self::new(KeyPair::Es256(pair), Secret::new(pem)).map_err(|_| SigningError)
    }

    /// Reads a private key in PEM: PKCS #8, SEC 1 (`EC PRIVATE KEY`) or PKCS #1 (`RSA PRIVATE KEY`), without a password.
    ///
    /// The key determines the algorithm: P-256 signs with ES256, RSA of at least 2,048 bits with RS256, Ed25519 with EdDSA.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has no private key, or one of another kind.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidKey> {
        // The error of the parser can have a line of the key, so it is dropped.
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| InvalidKey::NoKey)?;
        let pair = match &der {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(KeyPair::Rs256),
            PrivateKeyDer::Sec1(key) => ecdsa(key.secret_sec1_der()),
            PrivateKeyDer::Pkcs8(key) => {
                let key = key.secret_pkcs8_der();
                ecdsa(key)
                    .or_else(|| Ed25519KeyPair::from_pkcs8(key).ok().map(KeyPair::Ed25519))
                    .or_else(|| RsaKeyPair::from_pkcs8(key).ok().map(KeyPair::Rs256))
            }
            _ => None,
        };
        Self::new(pair.ok_or(InvalidKey::Unsupported)?, Secret::new(pem))
    }

    fn new(pair: KeyPair, pem: Secret) -> Result<Self, InvalidKey> {
        let public = pair.public().ok_or(InvalidKey::Unsupported)?;
        Ok(Self { thumbprint: public.thumbprint(), pair, key_id: None, public, pem })
    }

    /// Sets the `kid` that assertions have in their header. Defaults to none.
    #[must_use]
    pub fn key_id(mut self, key_id: impl Into<String>) -> Self {
        self.key_id = Some(key_id.into());
        self
    }

    /// Returns the algorithm that the key signs with.
    #[must_use]
    pub const fn algorithm(&self) -> KeyAlgorithm {
        match self.pair {
            KeyPair::Es256(_) => KeyAlgorithm::Es256,
            KeyPair::Rs256(_) => KeyAlgorithm::Rs256,
            KeyPair::Ed25519(_) => KeyAlgorithm::EdDsa,
        }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public_jwk(&self) -> &PublicJwk {
        &self.public
    }

    /// Returns the SHA-256 thumbprint of the public key (RFC 7638).
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Returns the private key in PEM, for a store.
    #[must_use]
    pub const fn to_pem(&self) -> &Secret {
        &self.pem
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningError> {
        let random = SystemRandom::new();
        match &self.pair {
            KeyPair::Es256(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| SigningError)?;
                Ok(signature.as_ref().to_vec())
            }
            KeyPair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(|_| SigningError)?;
                Ok(signature)
            }
            KeyPair::Ed25519(pair) => Ok(pair.try_sign(message).map_err(|_| SigningError)?.as_ref().to_vec()),
        }
    }
}

fn ecdsa(der: &[u8]) -> Option<KeyPair> {
    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok().map(KeyPair::Es256)
}

impl KeyPair {
    fn public(&self) -> Option<PublicJwk> {
        match self {
            Self::Es256(pair) => {
                // An uncompressed point: 0x04, then both coordinates with 32 bytes each.
                let point = pair.public_key().as_ref();
                let (x, y) = point.strip_prefix(&[4])?.split_at_checked(32)?;
                Some(PublicJwk::elliptic("P-256", x, y))
            }
            Self::Rs256(pair) => {
                let key = pair.public_key();
                let modulus = key.modulus();
                let exponent = key.exponent();
                Some(PublicJwk::rsa(
                    modulus.big_endian_without_leading_zero(),
                    exponent.big_endian_without_leading_zero(),
                ))
            }
            Self::Ed25519(pair) => Some(PublicJwk::ed25519(pair.public_key().as_ref())),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm())
            .field("key_id", &self.key_id)
            .field("thumbprint", &self.thumbprint)
            .finish_non_exhaustive()
    }
}

/// The error of a text that is no private key that can sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The text has no private key in PEM.
    #[error("the text has no private key in PEM without a password")]
    NoKey,
    /// The key is of a kind that is not supported.
    #[error("the private key is not supported: use P-256, Ed25519, or RSA of at least 2048 bits")]
    Unsupported,
}

/// The error of a key that could not be generated or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cryptographic library could not generate the key or sign with it")]
#[non_exhaustive]
pub struct SigningError;
