//! The state machines of the Model Context Protocol, without I/O.
//!
//! One [`server::Connection`] is all that a server knows about one client, one [`client::Connection`] all that a client
//! knows about one server. Both speak every revision: the legacy ones with their handshake and their questions to the
//! client, and the modern one in which every request stands alone, also at the same time on one connection.
//!
//! There is no socket, no clock, no thread, no runtime and no randomness in here: the dependencies are `mcp-types` and
//! what it is made of. A driver brings bytes and the time in and takes messages, events and deadlines out, so the same
//! machines serve stdio, HTTP, a browser and a test with a virtual clock.
//!
//! # The loop
//!
//! Methods fall into three groups: *commands* of the application, *inputs* of the driver (`handle_*`), and *outputs*
//! (`poll_*`) that the driver empties after each of the former. Here both machines talk to each other in memory:
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_kernel::{CallOptions, Time, client, server};
//! use mcp_types::{
//!     CallToolResult, ClientCapabilities, Implementation, Method, RawObject, ServerCapabilities, ToolsCapability,
//! };
//!
//! let offers = ServerCapabilities::default().tools(ToolsCapability::default());
//! let server_config = server::ServerConfig::new(Implementation::new("server", "1.0"), offers);
//! let client_config = client::ClientConfig::new(Implementation::new("client", "1.0"), ClientCapabilities::default());
//! let mut server = server::Connection::long_lived(Arc::new(server_config));
//! let mut client = client::Connection::new(Arc::new(client_config));
//!
//! let now = Time::EPOCH;
//! client.start(now, None);
//! let mut answer = None;
//! while answer.is_none() {
//!     // The link: what one side sends, the other one gets.
//!     while let Some(client::Transmit::Send { message, .. }) = client.poll_transmit() {
//!         server.handle_bytes(now, &message, None);
//!     }
//!     while let Some(transmit) = server.poll_transmit() {
//!         client.handle_bytes(now, &transmit.message);
//!     }
//!     // The applications.
//!     while let Some(event) = client.poll_event() {
//!         match event {
//!             client::Event::Ready { .. } => {
//!                 let params = RawObject::parse(r#"{"name":"hello"}"#)?;
//!                 client.call(now, &Method::TOOLS_CALL, &params, CallOptions::default())?;
//!             }
//!             client::Event::CallFinished { outcome, .. } => answer = Some(outcome?),
//!             other => panic!("unexpected: {other:?}"),
//!         }
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let server::Event::Request { responder, .. } = event {
//!             server.respond(responder, Ok(CallToolResult::text("hello yourself")));
//!         }
//!     }
//! }
//! let result: CallToolResult = answer.expect("an answer").result.decode()?;
//! assert_eq!(result.content[0].as_text(), Some("hello yourself"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What never happens
//!
//! - An input does not fail. What is wrong with it becomes an event and, where the protocol wants one, an answer.
//! - A call does not end twice, or not at all: answer, error, cancellation, timeout and disconnect are all there is.
//! - A deadline does not outlive what it is for.
//! - A request does not change what another one means: everything about it is in its
//!   [`RequestScope`](server::RequestScope).
//! - A peer does not make a queue grow beyond its [limit](Limits).

#![forbid(unsafe_code)]

mod calls;
mod change;
pub mod client;
mod deadlines;
mod errors;
mod keys;
mod limits;
mod queue;
pub mod server;
mod time;

pub use calls::CallOptions;
pub use change::Change;
pub use deadlines::{Deadline, DeadlineKind};
pub use errors::{CallError, CommandError, PeerMisbehaved};
pub use keys::{CallId, RequestKey};
pub use limits::Limits;
#[doc(hidden)]
pub use queue::Fifo;
pub use time::Time;
