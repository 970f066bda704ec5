//! The Model Context Protocol over lines of text.
//!
//! One message is one line, on whatever carries bytes in order: standard input and output, a socket, a pipe.
//!
//! | to | there is | feature |
//! |---|---|---|
//! | serve the client that started this process | `serve_stdio`, `serve_stdio_with` | `server` (default) |
//! | serve every client of a socket on this machine | `serve_tcp`, `serve_unix` | `server` |
//! | serve one client on any two streams of bytes | `serve_io` | `server` |
//! | start a server as a child process, and end it with all that it started | `Spawn`, `ChildProcess` | `client` |
//! | cut a stream of bytes into lines | [`LineReader`] | |
//!
//! What a message means is not known here: that is `mcp-kernel`'s. What is offered is `mcp-server`'s.
//!
//! # Serving
//!
//! ```no_run
//! # #[cfg(feature = "server")]
//! # async fn example() -> std::io::Result<()> {
//! use mcp_server::{NoArguments, Server, tool};
//! use mcp_transport_stdio::serve_stdio;
//!
//! let hello = tool("hello", async |_, _: NoArguments| "Hello!");
//! serve_stdio(Server::builder("greeter", "1.0").tool(hello).build()?).await
//! # }
//! ```
//!
//! - **Standard output belongs to the protocol.** A `println!` anywhere in the process breaks it; log to standard error.
//! - Requests are served concurrently, in the task that serves their connection. A handler that waits holds up nobody;
//!   one that computes for long should yield now and then, or use a thread.
//! - The server ends when its input does, or when the process is told to stop (SIGTERM, SIGINT, Ctrl-C). Handlers at
//!   work then have `ServeOptions::drain` to finish, and what they answer is still sent.
//! - A line that is too long is refused and skipped, and the next one is read as ever. A client that does not read its
//!   answers is not read from either, so it makes nothing grow.
//!
//! # Testing
//!
//! A server takes any streams, so a test needs no process:
//!
//! ```
//! # #[cfg(feature = "server")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use mcp_server::{NoArguments, Server, tool};
//! use mcp_transport_stdio::{Ended, ServeOptions, serve_io};
//!
//! let hello = tool("hello", async |_, _: NoArguments| "Hello!");
//! let server = Server::builder("greeter", "1.0").tool(hello).build()?;
//! let input = concat!(
//!     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{"#,
//!     r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
//!     "\n"
//! );
//! let mut output = Vec::new();
//! let never = std::future::pending();
//! let ended = serve_io(&server, input.as_bytes(), &mut output, &ServeOptions::default(), never).await?;
//! assert_eq!(ended, Ended::InputClosed);
//! assert!(String::from_utf8_lossy(&output).contains("Hello!"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "server"))]
//! # fn main() {}
//! ```

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
