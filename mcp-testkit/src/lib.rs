//! Support for tests of servers, clients and transports of the Model Context Protocol.
//!
//! The peers of this crate need no runtime, no sockets and no real time: a test sends their messages, checks what they
//! receive, and advances the clock. Add the crate to `dev-dependencies`; it is not a feature of `mcp`, because only tests need it.
//!
//! # Testing a server
//!
//! A [`ScriptedClient`](crate::ScriptedClient) of any revision sends requests to a server and returns raw responses:
#![cfg_attr(all(feature = "client", feature = "server"), doc = "```")]
#![cfg_attr(not(all(feature = "client", feature = "server")), doc = "```ignore")]
//! use mcp_server::types::Revision;
//! use mcp_server::{Server, tool};
//! use mcp_testkit::ScriptedClient;
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Text { text: String }
//!
//! let count = tool("count_words", async |_, Text { text }| text.split_whitespace().count().to_string());
//! let server = Server::builder("words", "1.0").tool(count).build()?;
//! for revision in Revision::ALL {
//!     let mut client = ScriptedClient::new(&server, revision);
//!     assert_eq!(client.call_tool_text("count_words", json!({ "text": "to be or not to be" })), "6");
//! }
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! To test with typed results, or handlers that need a runtime, connect a client of `mcp-client` with its `MemoryTransport`:
#![cfg_attr(all(feature = "client", feature = "server"), doc = "```")]
#![cfg_attr(not(all(feature = "client", feature = "server")), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use mcp_server::{NoArguments, Server, tool};
//! # let hello = tool("hello", async |_, _: NoArguments| "Hello!");
//! # let server = Server::builder("test", "1.0").tool(hello).build()?;
//! use mcp_client::types::Revision;
//! use mcp_client::{Client, MemoryTransport};
//!
//! for revision in Revision::ALL {
//!     let builder = Client::builder("test", "1.0").revisions([revision]);
//!     let client = builder.connect(MemoryTransport::new(server.clone())).await?;
//!     assert_eq!(client.call_tool("hello").await?.content[0].as_text(), Some("Hello!"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Testing a client
//!
//! A [`ScriptedServer`](crate::ScriptedServer) is a server of either era, well-behaved or not, and a [`Task`] polls the
//! code that uses the client:
#![cfg_attr(all(feature = "client", feature = "server"), doc = "```")]
#![cfg_attr(not(all(feature = "client", feature = "server")), doc = "```ignore")]
//! use mcp_client::{Client, Error, TransportKind};
//! use mcp_testkit::{ScriptedServer, Task, envelope};
//!
//! async fn greeting(client: Client) -> Result<String, Error> {
//!     let result = client.call_tool("hello").await?;
//!     Ok(result.content[0].as_text().unwrap_or("(no text)").to_owned())
//! }
//!
//! for connect in [ScriptedServer::modern, ScriptedServer::legacy] {
//!     let (client, mut server) = connect(TransportKind::Pipe, Client::builder("test", "1.0"));
//!     let mut task = Task::start(greeting(client));
//!     let request = server.expect_request("tools/call");
//!     server.respond(&request, envelope::tool_result("Hello!"));
//!     assert_eq!(task.finish()?, "Hello!");
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! # Testing a transport
//!
//! A transport carries bytes. [`envelope`] has messages to send, [`WakeFlag`] records whether its waker was woken, and
//! [`Clock`] is a time source that the test advances:
#![cfg_attr(all(feature = "client", feature = "server"), doc = "```")]
#![cfg_attr(not(all(feature = "client", feature = "server")), doc = "```ignore")]
//! use std::task::Context;
//!
//! use mcp_server::{Caller, Connection, Server};
//! use mcp_testkit::{Clock, WakeFlag, envelope};
//! use serde_json::{Value, json};
//!
//! /// The transport under test: each call exchanges one message.
//! fn exchange(connection: &mut Connection, clock: &Clock, message: &[u8]) -> Vec<u8> {
//!     connection.feed(clock.now(), message, &Caller::default());
//!     let woken = WakeFlag::default();
//!     let _ = connection.poll(&mut Context::from_waker(&woken.waker()), clock.now());
//!     connection.poll_transmit().expect("a response").message.into_bytes()
//! }
//!
//! let server = Server::builder("test", "1.0").build()?;
//! let (mut connection, clock) = (Connection::long_lived(&server), Clock::new());
//! for request in [
//!     envelope::modern_request(1, "server/discover", json!({})),
//!     envelope::initialize(1, "2025-11-25", json!({})),
//! ] {
//!     let response: Value = serde_json::from_slice(&exchange(&mut connection, &clock, request.to_string().as_bytes()))?;
//!     assert_eq!(response["id"], 1);
//!     assert!(response["result"]["capabilities"].is_object());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A transport of a client gets a `TransportHandle` when the client connects; [`ManualTransport`](crate::ManualTransport)
//! passes it to the test. Code that is built on the state machines of `mcp-kernel` alone is tested with a [`Pair`] of them.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `server` (default) | `ScriptedClient` |
//! | `client` (default) | `ScriptedServer`, `ManualTransport` |

#![forbid(unsafe_code)]

mod clock;
pub mod envelope;
mod gate;
#[cfg(feature = "client")]
mod manual_transport;
mod pair;
mod recorder;
#[cfg(feature = "server")]
mod scripted_client;
#[cfg(feature = "client")]
mod scripted_server;
mod task;
mod trace_recorder;

pub use clock::Clock;
pub use gate::{Gate, NoteOnDrop, Notes};
#[cfg(feature = "client")]
pub use manual_transport::ManualTransport;
pub use pair::Pair;
pub use recorder::Recorder;
#[cfg(feature = "server")]
pub use scripted_client::ScriptedClient;
#[cfg(feature = "client")]
pub use scripted_server::{ReceivedRequest, ScriptedServer};
pub use task::{Task, WakeFlag, expect_ready};
pub use trace_recorder::{TraceFields, TraceRecorder, Traces};
