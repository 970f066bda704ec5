//! A server that lets in requests with a valid access token, and no others.

mod attacks;
mod challenges;
mod dpop;
#[cfg(feature = "reqwest")]
mod http;
mod introspection;
mod issuer;
mod keys;
mod mcp;
mod protected;
mod secrets;
mod several_issuers;
