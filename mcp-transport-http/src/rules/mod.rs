//! The protocol's rules about HTTP headers and statuses, as pure functions.

pub mod header_encoding;
pub mod header_names;
pub mod headers;
pub mod hosts;
pub mod media;

#[cfg(feature = "server")]
pub mod claims;
#[cfg(feature = "server")]
pub mod era;
#[cfg(feature = "server")]
pub mod status;
