//! A server on a TCP socket, with hyper.

mod byte_stream;
mod client_stream;
mod connection;
mod discard;
#[cfg(feature = "http2")]
mod http2;
mod idle_timeout;
mod quiet_waker;
mod routes;
mod server;
mod stall_detector;
#[cfg(feature = "serve-tls")]
mod tls;

pub use server::{HttpServer, serve, shutdown_signal};
#[cfg(feature = "serve-tls")]
pub use tls::ServerTls;
