//! Servers on lines of text.

mod driver;
mod listen;
mod options;
mod standard;
mod threaded;

pub use driver::{Ended, serve_io};
pub use listen::serve_tcp;
#[cfg(unix)]
pub use listen::serve_unix;
pub use options::ServeOptions;
pub use standard::{serve_stdio, serve_stdio_with};
