//! The server's side.

mod admission;
mod body;
#[cfg(feature = "serve")]
mod discard;
mod exchange;
mod lifeline;
mod options;
#[cfg(feature = "serve")]
mod patience;
mod refusal;
#[cfg(feature = "serve")]
mod serve;
mod service;
mod sessions;
mod sse;
#[cfg(feature = "serve")]
mod stall;
mod start_error;
mod unsent;
mod upload;

pub use body::ResponseBody;
pub use lifeline::Drained;
pub use options::{HttpOptions, SessionMode};
pub use refusal::Refusal;
#[cfg(feature = "serve")]
pub use serve::{HttpServer, serve, shutdown_signal};
pub use service::{HttpService, ResponseFuture, ValidUntil};
pub use sessions::ResponseStream;
pub use sse::{LegacySseError, LegacySseFuture, LegacySseService};
pub use start_error::StartError;
