//! How a client becomes known to an authorization server.

mod choice;
mod metadata;
mod response;

pub(crate) use choice::{Choice, bind, choose};
pub(crate) use metadata::{ClientMetadata, redirect_uri, wants_refresh};
pub(crate) use response::read_registration;

/// The maximum length of the response to a registration, in bytes.
pub(crate) const MAX_REGISTRATION_RESPONSE_BYTES: usize = 64 * 1024;
