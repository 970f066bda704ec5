//! The algorithms of signatures.

use std::fmt;

use jsonwebtoken::Algorithm;

/// An algorithm that tokens and proofs of clients may be signed with. All are asymmetric: with an algorithm of a shared secret, each server
/// that can verify tokens could issue them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenAlgorithm {
    /// ECDSA on the curve P-256 with SHA-256.
    Es256,
    /// ECDSA on the curve P-384 with SHA-384.
    Es384,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// RSA (PKCS #1 v1.5) with SHA-384.
    Rs384,
    /// RSA (PKCS #1 v1.5) with SHA-512.
    Rs512,
    /// RSA (PSS) with SHA-256.
    Ps256,
    /// RSA (PSS) with SHA-384.
    Ps384,
    /// RSA (PSS) with SHA-512.
    Ps512,
    /// EdDSA on the curve Ed25519.
    EdDsa,
}

impl TokenAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// Returns the name that the algorithm has in tokens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Finds the algorithm of a name. Names are compared exactly, so `none`, `None` and `HS256` are not found.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        // RFC 9864 has a name for EdDSA with each curve.
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    pub(crate) const fn to_jsonwebtoken(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::ES256,
            Self::Es384 => Algorithm::ES384,
            Self::Rs256 => Algorithm::RS256,
            Self::Rs384 => Algorithm::RS384,
            Self::Rs512 => Algorithm::RS512,
            Self::Ps256 => Algorithm::PS256,
            Self::Ps384 => Algorithm::PS384,
            Self::Ps512 => Algorithm::PS512,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for TokenAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
