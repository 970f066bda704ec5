//! OAuth for the Model Context Protocol: logging in as a client, and protecting a server.
//!
//! Applications use it as `mcp::auth`. The guides `docs/protecting-a-server.md`, `docs/logging-in.md` and `docs/machines.md` of the
//! repository show how.
//!
//! | task | module | feature |
//! |---|---|---|
//! | Protect a server: verify access tokens, challenge requests without one | `server` | `server`; `reqwest` to load keys |
//! | Log in to a server over HTTP, with a user or without | `authorizer` | `authorizer`; `browser` to open one |
//! | Keep logins in memory, in a file or in the keyring | `store` | `store`, `keyring` |
//! | Sign client assertions and DPoP proofs | `jose` | `jose` |
//! | Drive the flows with other I/O: a state machine | `client` | `client` |
//! | Request addresses that come from a server with care | `fetch` | `reqwest` |
//! | Read and write challenges and metadata | [`Challenge`], [`metadata`] | |
//!
//! No feature is enabled by default. `tls` adds `https` to requests, and is needed everywhere but in tests.

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "authorizer")]
pub mod authorizer;
#[cfg(any(feature = "client", all(feature = "server", feature = "reqwest")))]
mod basic_credentials;
mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "reqwest")]
pub mod fetch;
#[cfg(feature = "jose")]
pub mod jose;
#[cfg(any(feature = "jose", feature = "server"))]
mod jwk;
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
