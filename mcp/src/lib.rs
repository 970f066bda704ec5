//! Servers and clients for every revision of the [Model Context Protocol](https://modelcontextprotocol.io).
//!
//! One handler serves clients of all five revisions, from 2024-11-05 to 2026-07-28, over standard streams and over HTTP.
//! One client connects to servers of all five, and detects the revision.
//!
//! # A server
//!
//! ```toml
//! [dependencies]
//! mcp = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
#![cfg_attr(all(feature = "server", feature = "stdio"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "server", feature = "stdio")), doc = "```ignore")]
//! use mcp::prelude::*;
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Text {
//!     text: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let count = tool("count_words", async |_, Text { text }| text.split_whitespace().count().to_string());
//!     let server = Server::builder("words", "1.0").tool(count.description("Counts the words of a text")).build()?;
//!     mcp::stdio::serve_stdio(server).await
//! }
//! ```
//!
//! The arguments are a Rust type: the model gets its JSON Schema, doc comments included, and arguments that do not match
//! are refused before the handler runs. To serve over HTTP, enable the feature `http` and replace the last line with
//! `mcp::http::serve(server, "127.0.0.1:8000").await`.
//!
//! # A client
//!
//! ```toml
//! [dependencies]
//! mcp = { version = "0.1", default-features = false, features = ["client", "stdio"] }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
#![cfg_attr(all(feature = "client", feature = "stdio"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "client", feature = "stdio")), doc = "```ignore")]
//! use mcp::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), mcp::client::Error> {
//!     let client = Client::connect(ChildTransport::new(ServerCommand::new("target/release/minimal"))).await?;
//!     for tool in client.tools().all().await? {
//!         println!("{}: {}", tool.name, tool.description.unwrap_or_default());
//!     }
//!     let result = client.call_tool("count_words").arguments(&json!({ "text": "to be or not to be" })).await?;
//!     println!("{}", result.to_text());
//!     client.close().await;
//!     Ok(())
//! }
//! ```
//!
//! The server is a child process here: the program above, built as `target/release/minimal`. For a server at a URL,
//! enable the feature `http-client` and connect an `HttpTransport`.
//!
//! # Features
//!
//! | feature | adds | module |
//! |---|---|---|
//! | `server` (default) | tools, prompts and resources; requests to the client in every revision | `server` |
//! | `stdio` (default) | standard streams and sockets for servers, child processes and streams for clients | `stdio` |
//! | `client` | calls, lists, subscriptions; handlers for requests of the server | `client` |
//! | `http` | servers over HTTP: a tower service, a server on hyper, sessions; implies `server` | `http`, `session` |
//! | `http-client` | clients over HTTP, on reqwest; implies `client` | `http` |
//! | `tls` | `https` and HTTP/2 for clients; implies `http-client` | |
//! | `tls-server` | `https` for servers, with certificates from files; implies `http` | `http` |
//! | `auth` | OAuth: with `http` protecting a server, with `http-client` logging in | `auth` |
//! | `keyring` | logins in the keyring of the operating system; implies `auth` and `http-client` | `auth` |
//! | `tasks` | tool calls that outlive their request and their process; implies `server` | `tasks` |
//! | `redis` | what instances of a server share, in Redis: sessions, changes, handles, used states, with `tasks` tasks and with `auth` proofs; implies `http` | `redis` |
//! | `redis-tls` | TLS to Redis; implies `redis` | |
//! | `telemetry` | OpenTelemetry metrics, and trace contexts between clients and servers | `telemetry` |
//! | `prometheus` | the metrics in the text format of Prometheus; implies `telemetry` | `telemetry` |
//! | `memory` | a client connected to a server in the same process, for tests; implies `server` and `client` | `client` |
//! | `tower` | tower layers around the requests of a server; implies `server` | `server` |
//! | `anyhow` | handlers that return `anyhow::Error`; implies `server` | `server` |
//! | `blocking` | tools whose functions block, on the threads of tokio; implies `server` | `server` |
//! | `validate` (default) | JSON Schema validation of arguments and structured results | `server`, `client` |
//!
//! Features only add API, except for `validate`: it enforces the constraints of schemas that deserializing does not check, such
//! as `#[schemars(range(max = 8))]`, and is half of the dependency tree. Without it they are hints for the model. The [types of
//! the protocol](types) need no feature.
//!
//! # Where to go next
//!
//! | to | see |
//! |---|---|
//! | write tools, prompts, resources and middleware; test a server | [`mcp::server`][server] |
//! | make calls, subscribe to changes, handle requests of the server | [`mcp::client`][client] |
//! | serve sockets, start and stop child processes | [`mcp::stdio`][stdio] |
//! | set hosts, origins, limits and sessions over HTTP; mount the service in axum | [`mcp::http`][http] |
//! | protect a server with access tokens, log in to servers | [`mcp::auth`][auth] |
//! | store sessions outside of the process | [`mcp::session`][session] |
//! | run slow tools as tasks | [`mcp::tasks`][tasks] |
//! | record metrics, connect the spans of clients and servers | [`mcp::telemetry`][telemetry] |
//! | read and write messages yourself, as gateways and inspectors do | [`mcp::types`](types) |
//! | run something | the examples in the repository; `examples/README.md` is their index |
//! | return errors, use state and users, add middleware, protect a server, log in, show tools per user, keep state between calls, ask the user, test, run several instances, write a gateway or a transport | the guides in `docs/`, which README.md lists |
//!
//! # Deriving `JsonSchema`
//!
//! Arguments and structured results implement [`schemars::JsonSchema`](https://docs.rs/schemars/1), and this crate
//! re-exports [`schemars`](https://docs.rs/schemars/1). The code that the derive generates refers to a crate named
//! `schemars`, so that name has to be in scope. The [prelude] has it. Without the prelude, import it:
//!
#![cfg_attr(feature = "server", doc = "```")]
#![cfg_attr(not(feature = "server"), doc = "```ignore")]
//! use mcp::schemars;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Text {
//!     text: String,
//! }
//! # let text: Text = mcp::serde_json::from_str(r#"{"text":"to be"}"#)?;
//! # assert_eq!(text.text, "to be");
//! # Ok::<(), mcp::serde_json::Error>(())
//! ```
//!
//! A dependency on `schemars` 1 of your own works as well, and is needed for its optional features. `serde` has to be a
//! dependency of your own, because its derive does not follow imports.
//!
//! # One crate or several
//!
//! This crate has no code of its own: each module is another crate, re-exported. Libraries that need only one of them,
//! such as the types or the state machines without I/O (`mcp-kernel`), can depend on that one; the Rust types are the
//! same either way. The guide `docs/picking-crates.md` lists the crates.
//!
#![cfg_attr(feature = "auth", doc = "[auth]: mcp_auth")]
#![cfg_attr(not(feature = "auth"), doc = "[auth]: https://docs.rs/mcp-auth")]
#![cfg_attr(feature = "client", doc = "[client]: mcp_client")]
#![cfg_attr(not(feature = "client"), doc = "[client]: https://docs.rs/mcp-client")]
#![cfg_attr(any(feature = "http", feature = "http-client"), doc = "[http]: mcp_transport_http")]
#![cfg_attr(not(any(feature = "http", feature = "http-client")), doc = "[http]: https://docs.rs/mcp-transport-http")]
#![cfg_attr(feature = "http", doc = "[session]: mcp_session")]
#![cfg_attr(not(feature = "http"), doc = "[session]: https://docs.rs/mcp-session")]
#![cfg_attr(feature = "server", doc = "[server]: mcp_server")]
#![cfg_attr(not(feature = "server"), doc = "[server]: https://docs.rs/mcp-server")]
#![cfg_attr(feature = "stdio", doc = "[stdio]: mcp_transport_stdio")]
#![cfg_attr(not(feature = "stdio"), doc = "[stdio]: https://docs.rs/mcp-transport-stdio")]
#![cfg_attr(feature = "tasks", doc = "[tasks]: mcp_tasks")]
#![cfg_attr(not(feature = "tasks"), doc = "[tasks]: https://docs.rs/mcp-tasks")]
#![cfg_attr(feature = "telemetry", doc = "[telemetry]: mcp_telemetry")]
#![cfg_attr(not(feature = "telemetry"), doc = "[telemetry]: https://docs.rs/mcp-telemetry")]
#![forbid(unsafe_code)]

pub mod prelude;

#[cfg(feature = "auth")]
pub use mcp_auth as auth;
#[cfg(feature = "client")]
pub use mcp_client as client;
#[cfg(feature = "redis")]
pub use mcp_redis as redis;
#[cfg(feature = "server")]
pub use mcp_server as server;
#[cfg(feature = "http")]
pub use mcp_session as session;
#[cfg(feature = "tasks")]
pub use mcp_tasks as tasks;
#[cfg(feature = "telemetry")]
pub use mcp_telemetry as telemetry;
#[cfg(any(feature = "http", feature = "http-client"))]
pub use mcp_transport_http as http;
#[cfg(feature = "stdio")]
pub use mcp_transport_stdio as stdio;
pub use mcp_types as types;
#[cfg(feature = "server")]
pub use schemars;
pub use serde_json;
