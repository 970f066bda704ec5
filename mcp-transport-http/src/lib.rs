//! The Streamable HTTP transport of the Model Context Protocol, for servers and clients of every revision.
//!
//! [`HttpService`] turns a [`Server`](mcp_server::Server) into a tower service that serves modern (2026-07-28) and legacy
//! (older) clients at one endpoint. A modern request names its protocol revision in `_meta`. A legacy request is served in
//! the revision of its `MCP-Protocol-Version` header or, with sessions enabled, in that negotiated by `initialize`.
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
//! | task | items |
//! |---|---|
//! | Listen on a TCP address | [`serve`], [`HttpServer`] |
//! | Mount the server in an axum, hyper or tower application | [`HttpService`] |
//! | Allow hosts and origins, set limits, select a server per request | [`HttpOptions`], [`Refusal`] |
//! | Enable sessions for legacy clients, store them | [`SessionMode`], [`SessionOptions`], [`session`] |
//! | Close a response stream while its request continues | [`ResponseStream`] |
//! | Serve health checks and metrics for operators | [`StatusServer`] |
//! | Serve with TLS (feature `serve-tls`) | `HttpServer::tls`, `ServerTls` |
//! | Shut down gracefully | [`HttpService::drain`], [`Drained`], [`shutdown_signal`] |
//! | Serve clients that only support HTTP+SSE (2024-11-05) | [`HttpService::legacy_sse`], [`LegacySseService`] |
//! | Encode and decode header values in a gateway | [`header_encoding`] |
//! | Let web pages of other origins use the server (CORS) | [`cors`], [`HttpOptions::allow_origin`] |
//! | Connect a client (feature `client`; `client-tls` for `https`) | `HttpTransport` |
//! | Provide a client's credentials | `Authorizer`, `Credential` |
//!
//! # Cost of a request
//!
//! A handler runs in the task that polls the response, so most requests need no task, channel or timer of their own.
//! The response is a single JSON object unless the handler sends a message before its result, or takes longer than
//! [`HttpOptions::keep_alive_interval`] (15 s by default): then it becomes an event stream. A client that disconnects
//! cancels its request, except in a session, where it may reconnect and resume.
//!
//! # Access control
//!
//! By default only requests to and from this machine are allowed, by their `Host` and `Origin` headers. Other requests
//! get 403 and an error that names the setting: [`HttpOptions::allow_host`], [`HttpOptions::allow_origin`].
//!
//! This crate does not authenticate. Insert a [`Principal`](mcp_server::Principal) into the request's extensions from a
//! middleware; limits per user and handlers read it.
//!
//! # Limits
//!
//! Everything that clients can make the server store has a limit. A request that exceeds one gets 429 or 503 with
//! `Retry-After`; requests in flight are not affected.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `serve` (default) | [`serve`] and [`HttpServer`], on hyper; implies `server` |
//! | `http2` (default) | HTTP/2 for [`HttpServer`], next to HTTP/1.1; implies `serve` |
//! | `server` | [`HttpService`], for any HTTP server |
//! | `serve-tls` | TLS for [`HttpServer`], on rustls; implies `serve` |
//! | `client` | `HttpTransport`, on reqwest |
//! | `client-tls` | `https` and HTTP/2 for `HttpTransport`; implies `client` |
#![cfg_attr(feature = "client", doc = include_str!("client/guide.md"))]
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod clock;
#[cfg(feature = "server")]
pub mod cors;
#[cfg(any(feature = "client", feature = "server"))]
mod event_stream;
pub mod header_encoding;
#[cfg(any(feature = "client", feature = "server"))]
mod rules;
#[cfg(feature = "server")]
mod server;

#[cfg(all(feature = "client", feature = "internals"))]
#[doc(hidden)]
pub use client::internals;
#[cfg(feature = "client")]
pub use client::{
    AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, InvalidCredential, InvalidUrl,
    InvalidUrlConfig, RequestHead, ResponseHead, async_trait,
};
#[cfg(feature = "server")]
pub use mcp_session as session;
#[cfg(feature = "server")]
pub use mcp_session::{SessionMetrics, SessionOptions};
#[cfg(feature = "serve-tls")]
pub use server::ServerTls;
#[cfg(feature = "server")]
pub use server::{
    Drained, HttpOptions, HttpService, LegacySseError, LegacySseService, Refusal, ResponseBody, ResponseFuture,
    ResponseStream, SessionMigration, SessionMode, StartError, ValidUntil,
};
#[cfg(feature = "serve")]
pub use server::{HttpServer, RequestBody, RoutedService, RoutedServiceFuture, StatusServer, serve, shutdown_signal};
