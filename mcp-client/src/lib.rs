//! Clients of the Model Context Protocol: one for servers of every revision.
//!
//! A [`Client`] finds out by itself whether its server is modern (2026-07-28: every request stands alone) or legacy
//! (2024-11-05 to 2025-11-25: a handshake, sessions), and is the same to its user in both cases. A transport brings it
//! together with a server: a child process or a socket with `mcp-transport-stdio`, an address with
//! `mcp-transport-http`, and a server of the same process with `Memory` (feature `memory`).
//!
//! ```
//! # #[cfg(feature = "memory")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_client::{Client, Memory};
//! # use mcp_server::{Json, Server, tool};
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Add { a: f64, b: f64 }
//! # #[derive(serde::Serialize, schemars::JsonSchema)]
//! # struct Sum { sum: f64 }
//! # let add = tool("add", async |_, Add { a, b }| Json(Sum { sum: a + b }));
//! # let server = Server::builder("adder", "1.0").tool(add).build()?;
//!
//! let client = Client::connect(Memory::new(server)).await?;
//! for tool in client.tools().all().await? {
//!     println!("{}", tool.name);
//! }
//! let result = client.call_tool("add", &serde_json::json!({ "a": 1, "b": 2 })).await?;
//! assert_eq!(result.content[0].as_text(), Some(r#"{"sum":3.0}"#));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "memory"))]
//! # fn main() {}
//! ```
//!
//! | to | there is |
//! |---|---|
//! | connect | [`Client::connect`], [`Client::builder`], [`ClientBuilder`], [`Mode`], [`Transport`] |
//! | call a tool, read a resource, fill in a prompt, complete what is typed | methods of [`Client`], which give a [`Call`] |
//! | limit, watch or cancel a call | [`Call`], [`CancelHandle`] |
//! | list things, page by page or all of them | [`Pages`], [`ListLimits`] |
//! | read a result as a type, check it by its schema | [`Call::structured`], `OutputSchema` (feature `validate`) |
//! | answer questions of the server | [`ClientBuilder::on_form`], [`on_url`](ClientBuilder::on_url), [`on_sampling`](ClientBuilder::on_sampling), [`roots`](ClientBuilder::roots) |
//! | hear of changes | [`Client::listen`], [`Listener`], [`Change`] |
//! | know what went wrong | [`Error`], [`Closed`] |
//! | learn that a session was lost, and decide what to do | [`ClientBuilder::on_event`], [`ClientBuilder::on_session_lost`] |
//! | skip era detection for a known server | [`RevisionCache`], [`Client::detected_revision`], [`ClientBuilder::detected_revision`] |
//! | go on with a session after a restart | [`Client::save_session`], [`ClientBuilder::resume`] |
//! | carry messages in another way | [`Transport`], [`Link`], [`Order`] |
//! | name the protocol's data | [`types`], which is the crate `mcp-types` |
//!
//! # Calls
//!
//! A method of [`Client`] describes a call, and awaiting it makes the call. Each has two limits: how long the server may be
//! silent, which progress starts anew, and how long the call may take in all. Dropping the future cancels the call and
//! tells the server.
//!
//! - A call that cannot be made yet waits: until the connection is there, until a server that died was started again,
//!   until there is room for it.
//! - A session that a legacy server has forgotten is begun anew, and calls that met that are made again, once. A call
//!   whose stream broke is not: nobody knows what became of it ([`Error::Interrupted`]). The new session is empty, so the
//!   application is told ([`ClientBuilder::on_event`]), and may choose to have the client closed instead
//!   ([`ClientBuilder::on_session_lost`]).
//! - A refused version is replaced by a common one, headers that follow from an outdated schema are made anew, and what
//!   was remembered about a server is corrected. Each of these happens once in a call.
//!
//! # Questions of the server
//!
//! Functions given to the builder answer forms, pages to visit, and requests for the client's model. What there is a
//! function for is declared to the server, and nothing else. Legacy servers ask while a call is open; modern ones end a
//! round of the call with their questions, and the call is made again with the answers. The functions do not notice.
//!
//! # Answers that may be used again
//!
//! Modern servers say for how long lists and resources stay fresh. Until then they come out of the client's memory,
//! unless the server tells of a change, or the call says [`fresh`](Call::fresh). Each client has its own, what is private
//! is served for the credentials that it was given for and no others, and nothing that depended on an answer of the user is kept.
//!
//! # Runtimes
//!
//! Nothing in here needs a runtime, except for `Memory`: the transports bring tasks, timers and sockets with them.

#![forbid(unsafe_code)]

mod builder;
mod cache;
mod call;
mod client;
mod closed;
mod error;
mod list;
mod listen;
mod request_handlers;
mod revision_cache;
mod session;
mod settings;
mod state;
mod transport;

pub use builder::ClientBuilder;
#[cfg(feature = "validate")]
pub use call::OutputSchema;
pub use call::{Call, CancelHandle, Headers};
pub use client::Client;
pub use closed::Closed;
pub use error::Error;
pub use list::{ListLimit, ListLimits, Listed, Pages};
pub use listen::Listener;
pub use mcp_kernel::client::{ConnectError, DetectedRevision, Mode, ServerFacts};
pub use mcp_kernel::{CallId, CallOptions, Change, Limits, Misuse, Time};
pub use mcp_mrtr::RetryLimits;
pub use mcp_types as types;
pub use request_handlers::IntoAnswer;
pub use revision_cache::RevisionCache;
pub use session::{ClientEvent, DecideSessionLost, SavedSession, SessionLoss, SessionLossReason, SessionLost};
#[cfg(feature = "memory")]
pub use transport::Memory;
pub use transport::{Clock, CredentialFingerprint, CredentialSource, Link, Lost, Order, Outgoing, Transport, TransportKind};
