//! Server-to-client requests: elicitation, sampling and roots, in both eras.

pub(crate) mod error;
pub mod form;
pub(crate) mod legacy_rounds;
pub(crate) mod options;
#[cfg(feature = "mrtr")]
pub(crate) mod round_slot;
#[cfg(feature = "mrtr")]
pub(crate) mod rounds;
pub(crate) mod server_requests;
