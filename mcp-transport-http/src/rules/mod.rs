//! The protocol's rules about HTTP headers and statuses, as pure functions.

pub(crate) mod header_names;

#[cfg(feature = "server")]
pub(crate) mod claims;
#[cfg(feature = "server")]
pub(crate) mod headers;
#[cfg(feature = "server")]
pub(crate) mod hosts;
#[cfg(feature = "server")]
pub(crate) mod media;
#[cfg(feature = "server")]
pub(crate) mod request_headers;
#[cfg(feature = "server")]
pub(crate) mod revision;
#[cfg(feature = "server")]
pub(crate) mod status;
