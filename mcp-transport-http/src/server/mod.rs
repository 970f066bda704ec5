//! The HTTP transport for servers.

mod admission;
mod body;
mod exchange;
mod expiry;
mod head;
mod legacy_sse;
mod observed;
mod options;
mod pacer;
mod principal_counts;
mod refusal;
mod response_future;
mod service;
mod shutdown;
#[cfg(feature = "serve")]
mod socket;
mod start_error;
mod stateful;
mod teardown;
mod unsent;
mod upload;

pub use body::ResponseBody;
pub use legacy_sse::{LegacySseError, LegacySseService};
pub use options::{HttpOptions, SessionMode};
pub use refusal::Refusal;
pub use response_future::ResponseFuture;
pub use service::{HttpService, ValidUntil};
pub use shutdown::Drained;
#[cfg(feature = "serve-tls")]
pub use socket::ServerTls;
#[cfg(feature = "serve")]
pub use socket::{HttpServer, RequestBody, RoutedService, RoutedServiceFuture, StatusServer, serve, shutdown_signal};
pub use start_error::StartError;
pub use stateful::{ResponseStream, SessionMigration};
