//! The Model Context Protocol over lines of text.
//!
//! One message is one line, on whatever carries bytes in order: standard input and output, a socket, a pipe.
//!
//! | to | there is | feature |
//! |---|---|---|
//! | serve the client that started this process | `serve_stdio`, `serve_stdio_with` | `server` (default) |
//! | serve every client of a socket on this machine | `serve_tcp`, `serve_unix` | `server` |
//! | serve one client on any two streams of bytes | `serve_io` | `server` |
//! | connect a client to a server that runs as a child process | `ChildTransport`, `Spawn`, `Restart`, `Ladder` | `client` |
//! | connect a client to a server on any two streams of bytes | `StreamTransport` | `client` |
//! | start a server as a child process, and end it with all that it started | `Spawn`, `ChildProcess` | `client` |
//! | cut a stream of bytes into lines | [`LineReader`] | |
//!
//! What a message means is not known here: that is `mcp-kernel`'s. What is offered is `mcp-server`'s, and who asks for
//! it is `mcp-client`'s.
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
//! - A line that is too long (`line_limit`) is skipped without being kept, and the next one is read as ever. Its id is
//!   looked for all the same: a request is refused by it, and a response ends what waits for it.
//! - A client that does not read its answers is not read from either, so it makes nothing grow.
//!
//! # Sockets
//!
//! Whoever can connect to a socket is served, and web pages can have a browser connect to this machine. So on sockets, and
//! on whatever streams `serve_io` is given, the first line that is not a JSON object ends the connection:
//!
//! | what comes | standard streams | sockets and `serve_io` |
//! |---|---|---|
//! | a message | served | served |
//! | a JSON object that is not a message | error, goes on | error, goes on |
//! | an array, where the handshake settled on 2025-03-26 | served as a batch | served as a batch |
//! | any other line, or the beginning of one | error, goes on | error, connection ends |
//!
//! Standard input that is a network socket, as under inetd, counts as a socket. A byte order mark at the start of a stream
//! is skipped everywhere.
//!
//! # Gateways
//!
//! Some gateways start one server and pass on to it what several clients say. A second `initialize` never negotiates
//! anything anew:
//!
//! | a second `initialize` | by default | `ServeOptions::shared_pipe`, nothing in flight | the same, requests in flight |
//! |---|---|---|---|
//! | same version and capabilities | same response, changes nothing | new connection | same response, changes nothing |
//! | any other | error | new connection | error |
//!
//! A new connection begins after the old one was torn down as at its end. Clients that share a connection share what the
//! server keeps for it, so they should belong to one user.
//!
//! # Connecting
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> Result<(), mcp_client::Error> {
//! use mcp_client::Client;
//! use mcp_transport_stdio::{ChildTransport, Spawn};
//!
//! let server = Spawn::new("my-server").arg("--stdio").env("TOKEN", "secret");
//! let client = Client::connect(ChildTransport::new(server)).await?;
//! let result = client.call_tool_without_arguments("hello").await?;
//! # drop(result);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! - The server gets a few harmless variables of our environment, and those that `Spawn::env` sets.
//! - The server may be modern or legacy. One that dies when it is asked which is started again, and not asked.
//! - A server that dies is started again, within bounds (`Restart`). Calls that were open end with an error that says how
//!   it died; calls that are made in the meantime wait for the next one.
//! - Reading never waits for writing, nor the other way round, and what waits to be sent is bounded. A line that is no
//!   message is passed over. One that is too long (`line_limit`) ends the call that it was to answer with
//!   `mcp_client::Error::TooLong`, or every open call if it does not say which one that is.
//! - Closing the client ends the process: its input is closed, and if that does not help, it gets SIGTERM and SIGKILL
//!   (`Ladder`). That goes for all that it started: on Unix its process group, on Windows its job.
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
#[cfg(feature = "client")]
mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod clock;
mod framing;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "client")]
pub use child::{ChildProcess, Exited, Ladder, Spawn, SpawnError, Stderr};
#[cfg(feature = "client")]
pub use client::{ChildTransport, Restart, StreamTransport};
pub use framing::{DEFAULT_LINE_LIMIT, Line, LineReader};
#[cfg(all(unix, feature = "server"))]
pub use server::serve_unix;
#[cfg(feature = "server")]
pub use server::{Ended, ServeOptions, serve_io, serve_stdio, serve_stdio_with, serve_tcp};
