//! The Model Context Protocol over lines of text.
//!
//! One message is one line, on whatever carries bytes in order: standard input and output, a socket, a pipe.
//!
//! - [`LineReader`] cuts a stream of bytes into lines, and lets no peer make it keep more than its limit.
//! - `Spawn` and `ChildProcess` (feature `client`) start a server as a child process and end it, together with all that
//!   it started.
//!
//! What a message means is not known here: that is `mcp-kernel`'s.

#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod child;
mod framing;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "client")]
pub use child::{ChildProcess, Exited, Ladder, Spawn, SpawnError, Stderr};
pub use framing::{DEFAULT_LINE_LIMIT, Line, LineReader};
#[cfg(all(unix, feature = "server"))]
pub use server::serve_unix;
#[cfg(feature = "server")]
pub use server::{Ended, ServeOptions, serve_io, serve_stdio, serve_stdio_with, serve_tcp};
