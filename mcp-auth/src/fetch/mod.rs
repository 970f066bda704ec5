//! Careful requests to addresses that come from a server.
//!
//! Metadata names further addresses, and a hostile server can name any: one inside the client's network, one that never
//! responds, one that sends without end. [`Fetcher`] is what all of them are requested with.

mod error;
mod fetcher;
mod policy;
mod resolver;
#[cfg(test)]
mod tests;

pub use error::FetchError;
pub use fetcher::{Fetcher, FetcherBuilder};
pub use policy::AddressPolicy;
