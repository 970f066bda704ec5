//! A server on a TCP socket, with hyper.

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

pub use server::{HttpServer, serve, shutdown_signal};
