//! A client for the Model Context Protocol that supports servers of every protocol revision.
//!
//! A [`Client`] detects the era of its server, modern (2026-07-28: stateless requests) or legacy (2024-11-05 to
//! 2025-11-25: handshake and sessions), and has the same interface for both. A [`Transport`] connects it: to a child process or a
//! socket with `mcp-transport-stdio`, to a URL with `mcp-transport-http`, and to a server in the same process with
//! `MemoryTransport` (feature `memory`).
//!
//! # Examples
//!
//! ```
//! # #[cfg(feature = "memory")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_client::{Client, MemoryTransport};
//! # use mcp_server::{Json, Server, tool};
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Add { a: f64, b: f64 }
//! # #[derive(serde::Serialize, schemars::JsonSchema)]
//! # struct Sum { sum: f64 }
//! # let add = tool("add", async |_, Add { a, b }| Json(Sum { sum: a + b }));
//! # let server = Server::builder("adder", "1.0").tool(add).build()?;
//!
//! let client = Client::connect(MemoryTransport::new(server)).await?;
//! for tool in client.tools().all().await? {
//!     println!("{}", tool.name);
//! }
//! let result = client.call_tool("add").arguments(&serde_json::json!({ "a": 1, "b": 2 })).await?;
//! assert_eq!(result.to_text(), r#"{"sum":3.0}"#);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "memory"))]
//! # fn main() {}
//! ```
//!
//! | To | use |
//! |---|---|
//! | connect | [`Client::connect`], [`Client::builder`], [`ClientBuilder`], [`Mode`] |
//! | call a tool, read a resource, get a prompt, complete an argument | the methods of [`Client`], which return a [`Call`] |
//! | set timeouts, watch progress, cancel | [`Call`], [`CancelHandle`] |
//! | forward the input requests of a call | [`Call::on_input`], [`InputResult`], [`Call::one_round`], [`RoundOutcome`] |
//! | follow tasks, go on with them in another process | [`Call::as_task`], [`Started`], [`TaskHandle`], [`TaskState`], [`TaskReference`], [`Client::resume_task`], [`FollowLimits`], [`TaskError`] |
//! | attach a user to a call | [`Call::extension`], [`Items::extension`], [`Listen::extension`], [`CallExtensions`], [`MessageContext`] |
//! | list tools, prompts and resources | [`Items`], [`ListLimits`] |
//! | decode and validate structured results | [`Call::structured`], `OutputSchema` (feature `validate`) |
//! | handle elicitation, sampling and roots requests | [`ClientBuilder::on_form_elicitation`], [`on_url_elicitation`](ClientBuilder::on_url_elicitation), [`on_sampling`](ClientBuilder::on_sampling), [`roots`](ClientBuilder::roots), [`on_roots`](ClientBuilder::on_roots) |
//! | handle other requests, log messages and notifications | [`ClientBuilder::on_request`], [`on_log`](ClientBuilder::on_log), [`on_notification`](ClientBuilder::on_notification) |
//! | declare capabilities | [`ClientBuilder::capabilities`], [`ClientBuilder::extension`] |
//! | subscribe to changes | [`Client::listen`], [`Listen`], [`Subscription`], [`Change`] |
//! | handle errors | [`Error`], [`CloseReason`] |
//! | handle the loss of a session or server | [`ClientBuilder::on_event`], [`ClientBuilder::on_session_lost`], [`ClientBuilder::on_restart`] |
//! | describe the server | [`Client::server`], [`Client::server_facts`] |
//! | read configuration files of desktop clients | [`config`] |
//! | skip era detection for a known server | [`RevisionCache`], [`Client::detected_revision`], [`ClientBuilder::detected_revision`] |
//! | resume a session after a restart | [`Client::save_session`], [`ClientBuilder::resume_session`] |
//! | implement a transport | [`Transport`], [`TransportHandle`], [`TransportCommand`] |
//! | use the protocol's types | [`types`], a re-export of `mcp-types` |
//!
//! # Calls
//!
//! The methods of [`Client`] return a [`Call`], which is sent when it is awaited. A call has two timeouts:
//! [`idle_timeout`](Call::idle_timeout), which progress notifications restart, and [`total_timeout`](Call::total_timeout).
//! Neither runs while a user logs in for the call. Dropping the future cancels the call, also on the server.
//!
//! - A call waits while there is no connection, such as while a server is restarted, and while too many calls are in flight.
//! - If a legacy server has lost the session, the client initializes a new one and repeats, once, the calls that failed
//!   because of that. It reports the loss to [`ClientBuilder::on_event`]; [`ClientBuilder::on_session_lost`] can close the
//!   client instead.
//! - A call whose stream or connection broke is not repeated, because the server may have executed it
//!   ([`Error::Interrupted`]).
//! - If the server rejects the protocol version, the headers or the era of a call, the client corrects it and repeats the
//!   call, at most once for each cause.
//!
//! # Tasks
//!
//! A server can make a task of a tool call, whose result is fetched later: one with the extension `io.modelcontextprotocol/tasks`
//! for any call, one of 2025-11-25 for calls that ask for it, which the client does for tools that require it. The call follows
//! the task to its end: it polls as often as the server wants, listens to changes where there is a stream for them, answers input
//! requests with the handlers, and waits out outages. Dropping the call cancels the task. [`Call::as_task`] returns a
//! [`TaskHandle`] instead, whose [`TaskReference`] lets another process go on.
//! [`ClientBuilder::without_tasks`] disables all that.
//!
//! # Server-to-client requests
//!
//! Handlers of [`ClientBuilder`] serve elicitation, sampling and roots requests, and the client declares the capabilities
//! that it has handlers for. Legacy servers send these requests while a call is in flight; modern servers respond to a call
//! with input requests, and the client repeats the call with the results. The handlers are the same for both.
//!
//! A [`MessageContext`] tells a handler which call a request belongs to, where that is known, with the values that
//! [`Call::extension`] attached to the call; log messages and notifications have one, too. [`Call::on_input`] handles the
//! requests of a single call before the handlers of the client, and [`Call::one_round`] returns those of a modern server to
//! the caller. So callers can share a client: each gets the requests of its own calls, and its calls can have their own
//! credentials.
//!
//! # Caching
//!
//! Modern servers set a time to live for lists and resources. Until then the client returns them from its cache, unless the
//! server reports a change or the call sets [`skip_cache`](Call::skip_cache). Each client has its own cache. Results with
//! the scope `private` are returned only for the credentials that they were requested with, and results that depend on input requests are not
//! cached.
//!
//! # Runtimes
//!
//! This crate does not depend on an async runtime: transports provide tasks, timers and sockets. `MemoryTransport` needs
//! tokio.

#![forbid(unsafe_code)]

mod authorization_error;
mod builder;
mod cache;
mod call;
mod capabilities;
mod client;
mod close_reason;
pub mod config;
mod context;
mod detected_revision;
mod error;
mod input;
mod list;
mod listen;
mod observed;
mod request_handlers;
mod revision_cache;
mod session;
mod settings;
mod state;
mod tasks;
mod transport;

pub use authorization_error::AuthorizationError;
pub use builder::ClientBuilder;
#[cfg(feature = "validate")]
pub use call::OutputSchema;
pub use call::{Call, CancelHandle, RoundOutcome};
pub use client::Client;
pub use close_reason::CloseReason;
pub use context::{CallExtensions, MessageContext};
pub use detected_revision::DetectedRevision;
pub use error::Error;
pub use input::InputResult;
pub use list::{Items, ListItem, ListLimitExceeded, ListLimits};
pub use listen::{Listen, Subscription};
pub use mcp_kernel::client::{CallHeaders, ConnectError, Mode, ServerFacts};
pub use mcp_kernel::observe::{self, Network, Observer};
pub use mcp_kernel::{CallId, CallOptions, Change, CommandError, Limits, Time};
pub use mcp_mrtr::RetryLimits;
pub use mcp_types as types;
pub use request_handlers::IntoClientResult;
pub use revision_cache::RevisionCache;
pub use session::{
    ClientEvent, Restart, RestartCause, SavedSession, SessionLoss, SessionLossAction, SessionLossPolicy,
    SessionLossReason,
};
pub use tasks::{FollowLimits, Started, TaskError, TaskHandle, TaskReference, TaskState};
#[cfg(feature = "memory")]
pub use transport::MemoryTransport;
pub use transport::{
    Clock, CredentialFingerprint, CredentialSource, OutgoingMessage, PausedTimeouts, ResponseHandle, ServerLossAction,
    Transport, TransportCommand, TransportHandle, TransportKind,
};
