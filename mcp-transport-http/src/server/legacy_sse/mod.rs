//! HTTP+SSE of 2024-11-05: one stream for all that a client hears, and another address for all that it says.

mod service;
mod session;
mod sessions;
mod stream;

#[cfg(feature = "serve")]
pub(crate) use service::method_not_allowed;
pub use service::{LegacySseError, LegacySseFuture, LegacySseService};
pub(crate) use stream::SseStream;
