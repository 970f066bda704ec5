//! The rules of the protocol that are about HTTP: pure functions of headers and messages.

pub mod header_encoding;
pub mod headers;
pub mod hosts;
pub mod media;

#[cfg(feature = "server")]
pub mod era;
#[cfg(feature = "server")]
pub mod status;
