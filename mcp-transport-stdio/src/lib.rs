//! The stdio transport of the Model Context Protocol: newline-delimited JSON messages.
//!
//! Works on any ordered byte streams: standard input and output, sockets, pipes.
//!
//! | To | use | feature |
//! |---|---|---|
//! | serve the client that started this process | `serve_stdio`, `serve_stdio_with` | `server` (default) |
//! | serve local clients on a socket | `serve_tcp`, `serve_unix` | `server` |
//! | serve one client on any pair of byte streams | `serve_io` | `server` |
//! | connect a client to a server in a child process | `ChildTransport`, `ServerCommand`, `RestartPolicy`, `ShutdownTimeouts` | `client` |
//! | connect a client to a server on any pair of byte streams | `StreamTransport` | `client` |
//! | start and stop a server process without a client | `ServerCommand`, `ChildProcess` | `client` |
//! | split a byte stream into lines | [`LineReader`] | |
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
//! - **Standard output is reserved for the protocol.** Do not use `println!` anywhere in the process; log to standard error.
//! - Requests are served concurrently, in the task of their connection. A handler that computes for long should yield, or
//!   use a thread.
//! - The server stops when its input ends, or on SIGTERM, SIGINT or Ctrl-C. Handlers in flight then have
//!   `ServeOptions::drain_timeout` to complete, and their responses are sent.
//! - A line that exceeds `ServeOptions::line_limit` is skipped without being buffered. Its id is still extracted, so that a
//!   request gets an error response, and a response fails the request that it belongs to.
//! - If a client does not read responses, the server stops reading requests, so memory stays bounded.
//!
//! # Sockets
//!
//! Every process that can connect to a socket is served, and web pages can make a browser connect to local sockets.
//! Therefore, on sockets and with `serve_io`, the first line that is not a JSON object closes the connection:
//!
//! | input | standard streams | sockets and `serve_io` |
//! |---|---|---|
//! | a message | served | served |
//! | a JSON object that is not a message | error response | error response |
//! | an array, if 2025-03-26 was negotiated | served as a batch | served as a batch |
//! | any other line, or the start of one | error response | error response, connection closed |
//!
//! Standard input that is a network socket, as with inetd, counts as a socket. A byte order mark at the start of a stream
//! is skipped.
//!
//! # Gateways
//!
//! Some gateways start one server process and forward the messages of several clients to it, one after the other. A second
//! `initialize` never renegotiates the connection:
//!
//! | second `initialize` | default | `ServeOptions::shared_pipe`, no requests in flight | `shared_pipe`, requests in flight |
//! |---|---|---|---|
//! | same version and capabilities | same response, no other effect | new connection | same response, no other effect |
//! | any other | error | new connection | error |
//!
//! A new connection starts after the teardown of the old one. Clients that share a connection share the state that the
//! server keeps for it, so they should belong to one user.
//!
//! # Connecting
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> Result<(), mcp_client::Error> {
//! use mcp_client::Client;
//! use mcp_transport_stdio::{ChildTransport, ServerCommand};
//!
//! let server = ServerCommand::new("my-server").arg("--stdio").env("TOKEN", "secret");
//! let client = Client::connect(ChildTransport::new(server)).await?;
//! let result = client.call_tool("hello").await?;
//! # drop(result);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! - The server process gets a short list of environment variables, and those that `ServerCommand::env` sets.
//! - The client probes with `server/discover` whether the server is modern or legacy. A server that exits on the probe is
//!   restarted once, as legacy.
//! - A server that exits is restarted, as far as `RestartPolicy` allows. Calls that were in flight fail with its exit
//!   status; later calls wait for the restart.
//! - Reading and writing are independent, and queued output is bounded. A line that is not a message is ignored. A line that
//!   exceeds `line_limit` fails the call that it responds to with `mcp_client::Error::ResponseTooLong`, or all calls if its
//!   id is unknown.
//! - Closing the client stops the process: its standard input is closed, and after `ShutdownTimeouts` it gets SIGTERM and
//!   SIGKILL. The same goes for the processes that it started: its process group on Unix, its job object on Windows.
//!
//! # Testing
//!
//! `serve_io` accepts any streams, so that a test does not need a process:
//!
//! ```
//! # #[cfg(feature = "server")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use mcp_server::{NoArguments, Server, tool};
//! use mcp_transport_stdio::{StopReason, ServeOptions, serve_io};
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
//! assert_eq!(ended, StopReason::InputClosed);
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
pub use child::{ChildProcess, ServerCommand, ShutdownTimeouts, SpawnError, Stderr};
#[cfg(feature = "client")]
pub use client::{ChildTransport, RestartPolicy, StreamTransport};
pub use framing::{Line, LineReader};
#[cfg(all(unix, feature = "server"))]
pub use server::serve_unix;
#[cfg(feature = "server")]
pub use server::{ServeOptions, StopReason, serve_io, serve_stdio, serve_stdio_with, serve_tcp};
