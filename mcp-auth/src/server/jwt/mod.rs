//! Tokens that are JWTs, verified with the keys of their issuer.

mod algorithm;
pub(super) mod claims;
pub(super) mod jws;
mod key_cache;
mod key_set;
mod key_source;
pub(super) mod public_key;
mod several_issuers;
mod verifier;

pub use algorithm::SignatureAlgorithm;
pub use key_source::{KeySource, KeySourceError, StaticKeys};
pub use several_issuers::JwtVerifiers;
pub use verifier::JwtVerifier;
