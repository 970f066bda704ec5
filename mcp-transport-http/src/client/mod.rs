//! The HTTP transport for clients.

mod authorizer;
mod config;
mod driver;
mod fingerprint;
#[cfg(feature = "internals")]
pub mod internals;
mod request;
mod state;
mod transport;

pub use async_trait::async_trait;
pub use authorizer::{Authorizer, Challenge, Credential, InvalidCredential, RequestHead, ResponseHead};
pub use config::InvalidUrlConfig;
pub use mcp_client::AuthorizationError;
pub use transport::{HttpTransport, InvalidUrl};
