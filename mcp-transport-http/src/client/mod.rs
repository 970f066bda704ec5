//! The HTTP transport for clients.

mod authorizer;
mod driver;
mod fingerprint;
#[cfg(feature = "internals")]
pub mod internals;
mod request;
mod state;
mod transport;

pub use async_trait::async_trait;
pub use authorizer::{Authorizer, Challenge, Credential, InvalidCredential};
pub use transport::{HttpTransport, InvalidUrl};
