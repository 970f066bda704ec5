//! The Model Context Protocol over HTTP ("Streamable HTTP").
//!
//! A [`Server`](mcp_server::Server) becomes a service that answers clients of every revision at one address: modern ones
//! by what each request says about itself, legacy ones by the revision that its header names or, if they are to have
//! sessions, by what they agreed on when theirs began.
//!
//! ```no_run
//! use mcp_server::{NoArguments, Server, tool};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("hello", "1.0").tool(tool("hello", async |_, _: NoArguments| "Hello!")).build()?;
//! mcp_transport_http::serve(server, "127.0.0.1:8000").await?; // at http://127.0.0.1:8000/mcp
//! # Ok(())
//! # }
//! ```
//!
//! | to | there is |
//! |---|---|
//! | listen at an address | [`serve`], [`HttpServer`] |
//! | add it to an application of axum, hyper or tower | [`HttpService`] |
//! | let others in, set limits, choose a server for each request | [`HttpOptions`], [`Refusal`] |
//! | give legacy clients sessions, keep them in a store | [`SessionMode`], [`SessionOptions`], [`session`] |
//! | let a client go while its request goes on | [`ResponseStream`] |
//! | end without breaking anything off | [`HttpService::drain`], [`Drained`] |
//! | serve clients that know nothing but 2024-11-05's `/sse` | [`HttpService::legacy_sse`], [`LegacySseService`] |
//! | check headers elsewhere, as a gateway does | [`rules`] |
//! | be a client (feature `client`, with `client-tls` also of `https`) | `HttpTransport` |
//! | know who asks, as a client | `Authorizer`, `Credential` |
//!
//! # What a request costs
//!
//! A handler runs in the task that reads the request: most requests are answered without another task, channel or timer.
//! An answer is one JSON object, unless something is said before it, or nothing for 15 s: then it becomes a stream of
//! events. A client that goes away cancels its request at once, except in a session: there it may come back.
//!
//! # Who may ask
//!
//! A server answers those who reach it by a name of this machine, and pages that come from it. All others get 403, with
//! a text that names the setting: [`HttpOptions::allow_host`], [`HttpOptions::allow_origin`]. Who the client is has to be
//! found out by something in front of the service: whatever puts a [`Principal`](mcp_server::Principal) into the
//! extensions of a request decides whose limits count, and handlers see it.
//!
//! # Too much to do
//!
//! Everything that clients can make the server keep has a limit, and who hits one is told at once, with 429 or 503 and
//! `Retry-After`, while what was taken on goes on.
#![cfg_attr(feature = "client", doc = include_str!("client/guide.md"))]
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod clock;
pub mod rules;
#[cfg(feature = "server")]
mod server;

#[cfg(all(feature = "client", feature = "internals"))]
#[doc(hidden)]
pub use client::internals;
#[cfg(feature = "client")]
pub use client::{Authorizer, Challenge, Credential, CredentialFuture, HttpTransport, InvalidCredential, InvalidUrl};
#[cfg(feature = "server")]
pub use mcp_session as session;
#[cfg(feature = "server")]
pub use mcp_session::{SessionMetrics, SessionOptions};
#[cfg(feature = "server")]
pub use server::{
    Drained, HttpOptions, HttpService, LegacySseError, LegacySseFuture, LegacySseService, Refusal, ResponseBody,
    ResponseFuture, ResponseStream, SessionMode, StartError, ValidUntil,
};
#[cfg(feature = "serve")]
pub use server::{HttpServer, serve, shutdown_signal};
