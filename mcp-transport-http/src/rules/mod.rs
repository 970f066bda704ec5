//! The rules of the protocol that are about HTTP: pure functions of headers and messages.

pub mod hosts;
pub mod media;
pub mod metadata;
pub mod sentinel;

#[cfg(feature = "server")]
pub mod era;
#[cfg(feature = "server")]
pub mod status;
