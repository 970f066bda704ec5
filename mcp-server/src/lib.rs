//! Servers for the Model Context Protocol, with typed tools, prompts and resources.
//!
//! A [`Server`] has tools, prompts and resources, whose handlers are async functions with plain types as arguments and
//! results. One server serves any number of clients at the same time, modern (2026-07-28) and legacy (2024-11-05 to
//! 2025-11-25). A transport, `mcp-transport-stdio` or `mcp-transport-http`, connects it to them.
//!
//! ```
//! use mcp_server::{Server, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Text {
//!     /// The text whose words are counted
//!     text: String,
//! }
//!
//! let count = tool("count_words", async |_ctx, Text { text }| text.split_whitespace().count().to_string());
//! let server = Server::builder("words", "1.0").tool(count.description("Counts the words of a text")).build()?;
//! // mcp_transport_stdio::serve_stdio(server).await
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | build a server | [`Server::builder`], [`ServerBuilder`], [`BuildError`] |
//! | create tools, prompts and resources | [`tool`](tool()), [`raw_tool`], [`prompt`](prompt()), [`resource`](resource()), [`text_resource`], [`blob_resource`], [`template`] |
//! | return results and errors | [`IntoToolResult`], [`Json`], [`IntoPromptResult`], [`IntoContents`], [`HandlerError`] |
//! | use the request and its connection | [`RequestContext`], [`ConnectionHandle`] |
//! | send requests to the client | [`RequestContext::elicit`], [`sample`](RequestContext::sample), [`list_roots`](RequestContext::list_roots), [`once`](RequestContext::once); [`form`] |
//! | decide about legacy clients, and run code as long as their sessions | [`ServerBuilder::on_initialize`], [`Handshake`]; [`ServerBuilder::on_session`], [`SessionContext`] |
//! | change a running server | [`Server::update`], [`Registry`], [`Server::publish`], [`Change`] |
//! | add middleware | [`ServerBuilder::layer`], [`Endpoint`], [`Request`], [`Response`] |
//! | write a transport | [`Connection`], [`Caller`] |
//! | use the protocol's types | [`types`], a re-export of `mcp-types` |
//!
//! # Tools
//!
//! The arguments of a tool are a struct. Its JSON Schema, with the doc comments of the members as descriptions, is what the
//! model sees. A handler returns any type that implements [`IntoToolResult`]: [`Json`] becomes structured content with a
//! schema, and text for older clients. An error becomes a result with `isError`, whose text the model reads: it should
//! name the problem and what to do instead.
//!
//! ```
//! use mcp_server::{HandlerError, Json, RequestContext, tool};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Divide {
//!     dividend: f64,
//!     /// Anything but zero
//!     divisor: f64,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Quotient {
//!     quotient: f64,
//! }
//!
//! async fn divide(_: RequestContext, Divide { dividend, divisor }: Divide) -> Result<Json<Quotient>, HandlerError> {
//!     if divisor == 0.0 {
//!         return Err(HandlerError::new("the divisor is zero: choose another one"));
//!     }
//!     Ok(Json(Quotient { quotient: dividend / divisor }))
//! }
//!
//! let divide = tool("divide", divide).description("Divides one number by another");
//! assert!(divide.definition().output_schema.is_some());
//! ```
//!
//! Invalid arguments do not reach the handler; the result names the member that is invalid. A [`types::ErrorObject`] as the
//! error of a handler becomes a protocol error. [`raw_tool`] is for schemas that are not known at compile time; with the
//! feature `validate`, arguments are validated against them.
//!
//! # Prompts
//!
//! The arguments of prompts are sent as text; numbers, booleans and enums are parsed. [`Prompt::complete`] adds a completer,
//! which suggests values while the user types.
//!
//! ```
//! use mcp_server::{RequestContext, CompletionInput, prompt};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Review {
//!     language: String,
//!     strict: Option<bool>,
//! }
//!
//! async fn languages(_: RequestContext, typed: CompletionInput) -> Vec<String> {
//!     ["Python", "Rust"].into_iter().filter(|name| name.starts_with(&typed.value)).map(str::to_owned).collect()
//! }
//!
//! let review = prompt("review", async |_, Review { language, strict }| {
//!     let how = if strict == Some(true) { "strictly" } else { "kindly" };
//!     format!("Review this {language} code {how}.")
//! });
//! let review = review.description("Asks for a review").complete("language", languages);
//! ```
//!
//! # Resources
//!
//! A resource has a URI. [`resource`](resource()) creates one with a fixed URI, [`template`] one for all URIs that match a
//! URI template (RFC 6570). Handlers return text, bytes, or an `Option` or `Result` of these; `None` becomes the error that
//! the client's revision defines for unknown resources.
//!
//! ```
//! use mcp_server::{RequestContext, Server, UriVariables, template, text_resource};
//!
//! let file = template("logs://{day}", "log", async |_: RequestContext, variables: UriVariables| {
//!     // The URI comes from the client: check what becomes part of a path.
//!     let day: u32 = variables.get("day")?.parse().ok()?;
//!     Some(format!("nothing happened on day {day}"))
//! });
//! let server = Server::builder("logs", "1.0")
//!     .resource(text_resource("logs://about", "about", "One log a day").description("What there is"))
//!     .template(file.description("The log of a day"))
//!     .build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # The context
//!
//! A handler gets a [`RequestContext`], with the metadata of the request and methods to send messages to its client.
//!
//! ```
//! use mcp_server::types::LoggingLevel;
//! use mcp_server::{NoArguments, RequestContext, Server, tool};
//!
//! struct Files(Vec<String>);
//!
//! async fn copy(ctx: RequestContext, _: NoArguments) -> String {
//!     let Files(files) = ctx.state().expect("the server was built with files");
//!     for (done, file) in files.iter().enumerate() {
//!         ctx.log(LoggingLevel::Debug, &format!("copying {file}"));
//!         ctx.progress((done + 1, files.len()));
//!     }
//!     format!("{} files", files.len())
//! }
//!
//! let server = Server::builder("files", "1.0").state(Files(vec!["a".into()])).tool(tool("copy", copy)).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! - Progress and log messages are sent to clients that requested them; otherwise they cost nothing.
//! - A handler whose request is cancelled is dropped at its current `await`. Tasks that it spawned can await
//!   [`RequestContext::cancelled`].
//! - Handlers of a connection share its task, so long computations should yield regularly, or run on a thread of their own.
//! - [`ConnectionHandle`] keeps values from one request to the next, and runs callbacks at the end of the connection.
//!
//! Handlers can send elicitation, sampling and roots requests to clients that declared the capability. Each request has a
//! key, which is unique among the requests of a handler. **With modern clients the handler runs again from its beginning
//! when the response arrives**: wrap side effects that must not be repeated in [`RequestContext::once`].
//!
//! ```
//! use mcp_server::{HandlerError, NoArguments, RequestContext, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Confirm {
//!     /// Whether to delete them all
//!     sure: bool,
//! }
//!
//! async fn clear(ctx: RequestContext, _: NoArguments) -> Result<&'static str, HandlerError> {
//!     let Confirm { sure } = ctx.elicit("confirm", "Delete 3 files?").await?.accepted()?;
//!     Ok(if sure { "deleted" } else { "kept" })
//! }
//!
//! let clear = tool("clear", clear);
//! ```
//!
//! # Middleware
//!
//! With the feature `tower`, [tower](https://docs.rs/tower) layers wrap all requests:
//!
#![cfg_attr(feature = "tower", doc = "```")]
#![cfg_attr(not(feature = "tower"), doc = "```ignore")]
//! use std::future::ready;
//! use std::task::{Context, Poll};
//!
//! use mcp_server::types::ErrorObject;
//! use mcp_server::{Response, ResponseFuture, Endpoint, Request, Server};
//! use tower_layer::layer_fn;
//! use tower_service::Service;
//!
//! /// Refuses tool calls.
//! #[derive(Clone)]
//! struct ReadOnly(Endpoint);
//!
//! impl Service<Request> for ReadOnly {
//!     type Response = Response;
//!     type Error = ErrorObject;
//!     type Future = ResponseFuture;
//!
//!     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
//!         self.0.poll_ready(cx)
//!     }
//!
//!     fn call(&mut self, request: Request) -> ResponseFuture {
//!         if request.ctx.method().as_str() == "tools/call" {
//!             return Box::pin(ready(Err(ErrorObject::invalid_request("this server is read-only"))));
//!         }
//!         self.0.call(request)
//!     }
//! }
//!
//! let server = Server::builder("museum", "1.0").layer(layer_fn(ReadOnly)).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! All requests except the handshake and `ping` pass through the layers. For `server/discover`, `logging/setLevel` and
//! subscriptions the inner service returns [`Response::ByProtocol`], a placeholder: a layer can refuse the request, but not
//! read the result.
//!
//! Each request has a `tracing` span, named by the conventions of OpenTelemetry.
//!
//! # Changing a running server
//!
//! [`Server::update`] adds and removes tools, prompts and resources of a running server, and notifies the clients that
//! subscribed to changes. Capabilities are declared once per connection, so a server that starts without tools and may get
//! some later has to declare them with [`ServerBuilder::offers_tools`].
//!
//! ```
//! use mcp_server::{Change, NoArguments, Server, text_resource, tool};
//!
//! let server = Server::builder("clock", "1.0").offers_tools().resource_subscriptions().build()?;
//! server.update(|registry| {
//!     registry.add_tool(tool("wind_up", async |_, _: NoArguments| "ticking"))?;
//!     registry.add_resource(text_resource("clock://time", "time", "noon"))
//! })?;
//! // Notifies the clients that subscribed to this resource.
//! server.publish(&Change::Resource("clock://time".into()));
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # Testing a server
//!
//! A [`Connection`] needs no transport: feed it the messages of a client, and take the messages for the client. The
//! crate `mcp-testkit` has a client that does this, and more tools for tests.
//!
//! ```
//! use std::task::{Context, Waker};
//!
//! use mcp_server::{Caller, Connection, NoArguments, Server, Time, tool};
//!
//! let hello = tool("hello", async |_, _: NoArguments| "Hello!");
//! let server = Server::builder("test", "1.0").without_server_info().tool(hello).build()?;
//!
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! let mut connection = Connection::long_lived(&server);
//! let now = Time::EPOCH;
//! connection.feed(now, call, &Caller::default());
//! // This handler is ready at once. For others, poll within a runtime.
//! assert!(connection.poll(&mut Context::from_waker(Waker::noop()), now).is_ready());
//! let response = connection.poll_transmit().expect("a response").message.into_bytes();
//! let result = r#""result":{"resultType":"complete","content":[{"type":"text","text":"Hello!"}]}"#;
//! assert_eq!(String::from_utf8(response)?, format!(r#"{{"jsonrpc":"2.0","id":1,{result}}}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mrtr` (default) | elicitation, sampling and roots requests to modern clients (multi round-trip requests); without it they return an error |
//! | `tower` | tower layers around requests |
//! | `validate` | validation of the arguments and structured results of [`raw_tool`]s against their JSON Schemas |

#![forbid(unsafe_code)]

mod asking;
mod build;
mod connection;
mod extensions;
mod handlers;
mod serve;
mod server;
mod uri_template;

pub use asking::error::AskError;
pub use asking::form;
pub use asking::request::ServerRequest;
pub use asking::server_requests::{ElicitContent, Elicited, NotAccepted};
pub use build::builder::ServerBuilder;
pub use build::error::BuildError;
pub use build::registry::Registry;
pub use build::settings::ListKind;
pub use connection::handle::{ConnectionClosed, ConnectionHandle};
pub use connection::handshake::Handshake;
pub use connection::port::{ConnectionPort, InboxFull};
pub use connection::session::SessionContext;
pub use connection::shared::RouteWaker;
pub use connection::{Caller, Connection};
pub use extensions::Extensions;
pub use handlers::completion::{Completer, CompletionInput};
pub use handlers::notification::Notification;
pub use handlers::prompt::{IntoPromptResult, Prompt, prompt};
pub use handlers::resource::{IntoContents, Resource, Template, blob_resource, resource, template, text_resource};
pub use handlers::schema::NoArguments;
pub use handlers::text_values::InvalidText;
pub use handlers::tool::{ArgumentErrors, Tool, raw_tool, tool};
pub use handlers::tool_result::{HandlerError, IntoToolResult, Json, Outcome};
pub use mcp_kernel::server::{Extension, Principal, SecondHandshake};
pub use mcp_kernel::{Change, Limits, Time};
#[cfg(feature = "mrtr")]
pub use mcp_mrtr as mrtr;
pub use mcp_types as types;
pub use mcp_types::{ClientCapability, HeaderParam};
pub use serve::context::RequestContext;
pub use serve::endpoint::{BoxFuture, Endpoint, Request, ResponseFuture};
pub use serve::progress::Progress;
pub use serve::response::Response;
pub use server::Server;
pub use uri_template::{InvalidTemplate, UriTemplate, UriValue, UriVariables};
