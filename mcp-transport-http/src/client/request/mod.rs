//! HTTP requests to the server, and how their responses are read.

pub(crate) mod authorization;
pub(crate) mod event_reader;
pub(crate) mod headers;
pub(crate) mod login;
pub(crate) mod one_way_post;
pub(crate) mod post;
pub(crate) mod resumable_stream;
pub(crate) mod sender;
pub(crate) mod standalone_stream;
#[cfg(feature = "client-tls")]
mod tls_error;
