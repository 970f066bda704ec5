//! The client's side.

mod authorizer;
mod driver;
mod event_parser;
mod events;
mod head;
mod identity;
#[cfg(feature = "internals")]
pub mod internals;
mod listening;
mod news;
mod post;
mod resumption;
mod saying;
mod transport;
mod wire;

pub use authorizer::{Authorizer, Challenge, Credential, CredentialFuture, InvalidCredential};
pub use transport::{HttpTransport, InvalidUrl};
