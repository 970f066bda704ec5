//! Keys and signatures: what a client proves that it has a private key with.

mod assertion;
mod dpop;
mod jwt;
mod signing_key;

pub use assertion::AssertionClaims;
pub use dpop::DpopClaims;
pub use signing_key::{InvalidKey, KeyAlgorithm, SigningError, SigningKey};

pub use crate::jwk::PublicJwk;
