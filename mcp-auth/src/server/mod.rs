//! Protecting a server: it lets in requests with a valid access token, and tells other clients where to get one.
//!
//! | task | items |
//! |---|---|
//! | Protect a server | [`ProtectedResource`], [`ProtectLayer`] |
//! | Verify tokens that are JWTs | [`JwtVerifier`], [`JwtVerifiers`], [`KeySource`] |
//! | Ask the authorization server about tokens | [`IntrospectionVerifier`] |
//! | Verify other tokens | [`TokenVerifier`], [`verifier_fn`] |
//! | Serve the metadata in a router | [`MetadataService`] |
//! | Share used DPoP proofs between instances | [`ProofLedger`], [`UsedProof`] |
//!
//! Handlers take an [`AuthInfo`](mcp_server::AuthInfo), and a [`Principal`](mcp_server::Principal), which follows from it.

mod clock;
mod credentials;
mod dpop;
mod guard;
#[cfg(feature = "reqwest")]
mod http;
mod introspection;
mod jwt;
mod layer;
mod metadata;
mod protected_resource;
mod refusal;
mod renewals;
mod spare_extensions;
mod token_cache;
mod token_digest;
mod verifier;

pub use async_trait::async_trait;
#[cfg(any(test, feature = "store-tests"))]
pub use dpop::ledger_tests;
pub use dpop::{MemoryProofLedger, ProofLedger, UsedProof};
#[cfg(feature = "reqwest")]
pub use http::{HttpIntrospection, HttpKeys};
pub use introspection::{IntrospectionEndpoint, IntrospectionVerifier};
pub use jwt::{JwtVerifier, JwtVerifiers, KeySource, KeySourceError, StaticKeys, TokenAlgorithm};
pub use layer::{ProtectLayer, Protected, ProtectedFuture};
pub use metadata::{BytesBody, MetadataService};
pub use protected_resource::{InvalidResource, ProtectedResource};
pub use verifier::{TokenError, TokenVerifier, verifier_fn};
