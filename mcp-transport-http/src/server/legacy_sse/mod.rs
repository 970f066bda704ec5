//! HTTP+SSE, the transport of 2024-11-05: one event stream per client, and an endpoint to POST messages to.

mod service;
mod session;
mod sessions;
mod stream;

#[cfg(feature = "serve")]
pub(crate) use service::method_not_allowed;
pub use service::{LegacySseError, LegacySseService};
pub(crate) use stream::SseStream;
