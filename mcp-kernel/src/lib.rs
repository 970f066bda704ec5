//! The Model Context Protocol as state machines without I/O.
//!
//! A [`server::Connection`] is the state of a server's connection to one client, a [`client::Connection`] that of a
//! client's connection to one server. They implement all revisions of the specification: the *legacy* ones, with a
//! handshake, sessions and server-to-client requests, and the *modern* one (2026-07-28), in which every request names its
//! version and its client's capabilities. A server connection can serve requests of both at the same time; a client
//! connection detects which one its server supports.
//!
//! The crate has no sockets, clocks, threads, async code or random numbers. The program around a connection, its *driver*,
//! passes bytes and the time in, and takes messages, events and deadlines out. So the same code runs over stdio and HTTP,
//! in a browser, and in tests with a virtual clock. To write a server or a client, use `mcp-server` or `mcp-client`, which
//! are built on this crate.
//!
//! # Drivers
//!
//! The methods of a connection form three groups:
//!
//! - *Commands* of the application, such as `call` and `respond`. They queue messages, never block, and return a
//!   [`CommandError`] if they cannot be executed.
//! - *Inputs* of the driver, `handle_*`. They never fail: invalid input becomes an event and, where the protocol has one,
//!   an error response.
//! - *Outputs* for the driver, `poll_*`.
//!
//! A driver runs this loop:
//!
//! 1. Wait for bytes, for a command of the application, or for the deadline of step 4, and pass it to the connection.
//! 2. Call `poll_transmit` until it returns `None`, and send the messages.
//! 3. Call `poll_event` until it returns `None`, and pass the events to the application. If there was an event, go back to
//!    step 2: the application may have queued messages, and a response lets a queued request start, which is an event.
//! 4. Call `poll_timeout` for the next deadline, at which `handle_timeout` has to be called. Do so last, because every
//!    input, command and message can change it.
//! 5. Read more bytes only while `wants_input` returns `true`. It returns `false` while too many messages are queued
//!    for a peer that does not read them, and when the connection is closed.
//!
//! The order of steps 2 and 3 does not matter, and neither loses anything if it is called too often.
//!
//! ## Closing
//!
//! | the driver wants | it calls | what is left to do |
//! |---|---|---|
//! | to shut a server down gracefully | `drain` once, then the loop without step 1's bytes | listen streams end with their results, calls to the client end; requests in flight are still responded to. When `is_idle` returns `true`, or after a time of its choice, it calls `close` |
//! | to end the connection now | `close` | requests and calls end, as events say; the messages that are queued, among them the results of listen streams, are still to be sent: empty `poll_transmit` and `poll_event` once more |
//! | to report that the peer is gone | `handle_disconnect` | nothing can be sent any more, and `poll_transmit` returns `None`; empty `poll_event` once more |
//!
//! The last event is `Closed`. Commands after it return [`CommandError::Closed`], and inputs do nothing. A client has no
//! `drain`: it ends its calls, or waits for them, and closes.
//!
//! ## One stream or several
//!
//! A driver whose messages all share one stream, such as a pipe, writes them in the order in which it gets them. It can
//! ignore the [`Route`](server::Route) and the [`Failure`](server::Failure) of a server's message, the call and the headers
//! of a client's message, and it never calls `block`, `unblock`, `handle_stream_closed`, `abandon`, `handle_reply` or
//! `handle_status`. For a client on one stream, no [`Transmit::Abort`](client::Transmit) is emitted: a cancellation is a
//! message ([`ClientConfig::cancel_style`](client::ClientConfig)).
//!
//! A driver with a stream for each request, such as HTTP, sends a message on the stream of its route, reports the end of a
//! stream with `handle_stream_closed`, and calls `block` for a route whose stream is not read, so that the other routes are
//! not delayed.
//!
//! The example `kernel_driver` is a whole driver for one stream in 80 lines, without an async runtime.
//!
//! # Examples
//!
//! A client calls a tool of a server, in memory:
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_kernel::{CallOptions, Time, client, server};
//! use mcp_types::{
//!     CallToolResult, ClientCapabilities, Implementation, Method, RawObject, ServerCapabilities, ToolsCapability,
//! };
//!
//! let capabilities = ServerCapabilities::default().tools(ToolsCapability::default());
//! let server_config = server::ServerConfig::new(Implementation::new("server", "1.0"), capabilities);
//! let client_config = client::ClientConfig::new(Implementation::new("client", "1.0"), ClientCapabilities::default());
//! let mut server = server::Connection::long_lived(Arc::new(server_config));
//! let mut client = client::Connection::new(Arc::new(client_config));
//!
//! let now = Time::EPOCH;
//! client.start(now, None);
//! let mut outcome = None;
//! while outcome.is_none() {
//!     // The transport: each side gets the messages of the other.
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
//!             client::Event::CallFinished { outcome: finished, .. } => outcome = Some(finished?),
//!             other => panic!("unexpected event: {other:?}"),
//!         }
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let server::Event::Request { responder, .. } = event {
//!             server.respond(responder, Ok(CallToolResult::text("hello")));
//!         }
//!     }
//! }
//! let result: CallToolResult = outcome.expect("a result").result.decode()?;
//! assert_eq!(result.content[0].as_text(), Some("hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - Each call ends exactly once: with a result, an error, a cancellation, a timeout or a disconnect.
//! - A call has no deadline after its end.
//! - Each request has a [`RequestScope`](server::RequestScope) with its properties, which no other request changes.
//! - Everything that a peer can make large has a [limit](Limits).

#![forbid(unsafe_code)]

mod calls;
mod change;
pub mod client;
mod deadlines;
mod errors;
mod handled_message;
mod keys;
mod limits;
pub mod observe;
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
