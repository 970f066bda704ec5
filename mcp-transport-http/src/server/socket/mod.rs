//! A server on a TCP socket, with hyper.

mod client_stream;
mod connection;
mod discard;
mod idle_timeout;
mod quiet_waker;
mod routes;
mod server;
mod stall_detector;

pub use server::{HttpServer, serve, shutdown_signal};
