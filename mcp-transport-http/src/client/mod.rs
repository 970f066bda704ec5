//! The HTTP transport for clients.

mod authorizer;
mod driver;
mod fingerprint;
#[cfg(feature = "internals")]
pub mod internals;
mod request;
mod state;
mod transport;

pub use authorizer::{Authorizer, Challenge, Credential, CredentialFuture, InvalidCredential};
pub use transport::{HttpTransport, InvalidUrl};
