//! Tokens that are bound to a key of the client (DPoP, RFC 9449).

mod ledger;
#[cfg(any(test, feature = "store-tests"))]
pub mod ledger_tests;
mod nonce;
mod proof;

use http::HeaderName;
pub use ledger::{MemoryProofLedger, ProofLedger, UsedProof};
pub(crate) use nonce::{NonceAge, Nonces};
pub(crate) use proof::{InvalidProof, ProofCheck, ProofPolicy};

/// The header with the proof.
pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");
/// The header with the nonce for the next proof.
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
