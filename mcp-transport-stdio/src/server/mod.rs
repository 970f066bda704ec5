//! Servers on byte streams.

mod driver;
mod options;
mod signals;
mod sockets;
mod standard;
mod threaded;
#[cfg(any(unix, windows))]
mod wake_gate;

pub use driver::{StopReason, serve_io};
pub use options::ServeOptions;
pub use sockets::serve_tcp;
#[cfg(unix)]
pub use sockets::serve_unix;
pub use standard::{serve_stdio, serve_stdio_with};
