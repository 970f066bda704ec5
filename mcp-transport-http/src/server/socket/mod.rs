//! A server on a TCP socket, with hyper.

mod byte_stream;
mod client_stream;
mod connection;
mod discard;
#[cfg(feature = "http2")]
mod http2;
mod idle_timeout;
mod layered;
mod quiet_waker;
mod routes;
mod server;
mod stall_detector;
mod status;
#[cfg(feature = "serve-tls")]
mod tls;

pub use discard::RequestBody;
pub use layered::{RoutedService, RoutedServiceFuture};
pub use server::{HttpServer, serve, shutdown_signal};
pub use status::StatusServer;
#[cfg(feature = "serve-tls")]
pub use tls::ServerTls;
