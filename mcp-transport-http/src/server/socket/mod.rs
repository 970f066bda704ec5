//! A server on a TCP socket, with hyper.

mod discard;
mod server;
mod stall_detector;
mod stall_timeout;

pub use server::{HttpServer, serve, shutdown_signal};
