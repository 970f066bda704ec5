//! Keys and signatures: what a client proves that it has a private key with.

mod assertion;
mod dpop;
mod jwk;
mod jwt;
mod signing_key;

pub use assertion::AssertionClaims;
pub use dpop::DpopClaims;
pub use jwk::PublicJwk;
pub use signing_key::{InvalidKey, KeyAlgorithm, SigningError, SigningKey};
