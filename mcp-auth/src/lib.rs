//! OAuth for the Model Context Protocol: logging in as a client, and protecting a server.

#[cfg(feature = "authorizer")]
pub mod authorizer;
pub mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "reqwest")]
pub mod fetch;
#[cfg(feature = "jose")]
pub mod jose;
pub mod metadata;
mod scopes;
mod secret;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "store")]
pub mod store;
mod unix_time;

pub use challenge::Challenge;
pub use scopes::{InvalidScope, Scopes};
pub use secret::Secret;
pub use unix_time::UnixTime;
