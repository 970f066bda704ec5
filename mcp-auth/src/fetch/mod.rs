//! Careful requests to addresses that come from a server.
//!
//! Metadata names further addresses, and a hostile server can name any: one inside the client's network, one that never
//! responds, one that sends without end. [`Fetcher`] is what all of them are requested with.

mod address;
mod error;
mod fetcher;
mod resolver;
#[cfg(test)]
mod tests;

pub use address::{AddressPolicy, RefusedAddress};
pub use error::FetchError;
pub use fetcher::{Fetcher, FetcherBuilder};
