//! Server-to-client requests: elicitation, sampling and roots, in both eras.

pub(crate) mod connection_requests;
pub(crate) mod error;
pub mod form;
pub(crate) mod legacy_rounds;
pub(crate) mod options;
pub(crate) mod request;
#[cfg(feature = "mrtr")]
pub(crate) mod round_slot;
#[cfg(feature = "mrtr")]
pub(crate) mod rounds;
mod sent_request;
pub(crate) mod server_requests;
#[cfg(feature = "mrtr")]
mod state_claim;
pub(crate) mod target;
