//! Servers of the Model Context Protocol: typed tools, prompts and resources, the same for every revision.
//!
//! A [`Server`] says what there is: tools to call, prompts to fill in, resources to read. It knows nothing about any
//! client, so one server serves many at the same time, of every revision from 2024-11-05 to 2026-07-28. Handlers are
//! async functions of plain types. A transport, such as `mcp-transport-stdio`, brings requests to them.
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
//! | to | there is |
//! |---|---|
//! | describe a server | [`Server::builder`], [`ServerBuilder`], [`BuildError`] |
//! | offer something | [`tool`](tool()), [`raw_tool`], [`prompt`](prompt()), [`resource`](resource()), [`text_resource`], [`blob_resource`], [`template`] |
//! | return something | [`IntoToolResult`], [`Json`], [`IntoPromptResult`], [`IntoContents`], [`HandlerError`] |
//! | know about a request | [`RequestContext`], [`ConnectionHandle`] |
//! | ask the client | [`RequestContext::elicit`], [`sample`](RequestContext::sample), [`list_roots`](RequestContext::list_roots), [`once`](RequestContext::once); [`form`] |
//! | change what is offered | [`Server::update`], [`Registry`], [`Server::publish`], [`Change`] |
//! | see all requests | [`ServerBuilder::layer`], [`Endpoint`], [`Request`], [`Response`] |
//! | carry messages | [`Connection`], [`Caller`] |
//! | name the protocol's data | [`types`], which is the crate `mcp-types` |
//!
//! # Tools
//!
//! The arguments of a tool are a struct; its schema, with the doc comments of the members, is what the model sees.
//! Whatever [`IntoToolResult`] takes can be returned. [`Json`] gives structured content and its schema, and the same as
//! text for older clients. An error is a result too, which the model reads, so it should say what to do.
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
//! Wrong arguments do not reach the handler; the model is told which member is wrong. [`types::ErrorObject`] as the
//! error of a handler is answered as a protocol error. [`raw_tool`] is for schemas that are not known to the compiler;
//! with the feature `validate` its arguments are checked by them.
//!
//! # Prompts
//!
//! Arguments of prompts travel as text; numbers, booleans and enums are read from it. [`Prompt::complete`] suggests
//! values while a person types.
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
//! A resource has an address. [`resource`](resource()) reads one, [`template`] all whose addresses follow a template of
//! RFC 6570. Text, bytes, or an `Option` or `Result` of these can be returned; `None` is answered as the error that the
//! client's revision has for what is not there.
//!
//! ```
//! use mcp_server::{RequestContext, Server, UriVariables, template, text_resource};
//!
//! let file = template("logs://{day}", "log", async |_: RequestContext, variables: UriVariables| {
//!     // The address comes from the client: whatever becomes a path has to be checked.
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
//! A handler gets a [`RequestContext`]: what the request says about itself, and the way to its client.
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
//! - Progress and log messages go to clients that asked for them; for others they cost nothing.
//! - A handler whose request is cancelled is dropped where it waits. What it spawned can watch
//!   [`RequestContext::cancelled`].
//! - Handlers of a connection share its task, so one that computes for long should yield now and then, or use a thread.
//! - [`ConnectionHandle`] keeps values for a client from one request to the next, and runs something at the end.
//!
//! Clients can be asked something while a request runs, if they declared that they can be. **With modern clients the
//! handler runs from its beginning once the answer is there**: [`RequestContext::once`] is for what must not be repeated.
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
//! With the feature `tower`, layers of [tower](https://docs.rs/tower) see every request, with its context:
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
//! /// Lets clients look, but not touch.
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
//!             return Box::pin(ready(Err(ErrorObject::invalid_request("this server is read-only today"))));
//!         }
//!         self.0.call(request)
//!     }
//! }
//!
//! let server = Server::builder("museum", "1.0").layer(layer_fn(ReadOnly)).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! They also see what the protocol layer answers by itself, `server/discover`, `logging/setLevel` and subscriptions, and
//! may refuse it; if they let it pass, the answer is [`Response::ByProtocol`], and what is behind it follows. Only the
//! handshake and `ping` do not pass layers: they are about the connection, and must not wait behind work.
//!
//! Without layers there is nothing to pay for them. Requests also come with `tracing` spans, named by the conventions
//! of OpenTelemetry.
//!
//! # Changing what is offered
//!
//! A running server can get other tools, prompts and resources. Clients that want to know are told, each by the means
//! of its revision. A client learns once what kinds of things there are, so a server that starts without tools and may
//! get some has to say so: [`ServerBuilder::offers_tools`].
//!
//! ```
//! use mcp_server::{Change, NoArguments, Server, text_resource, tool};
//!
//! let server = Server::builder("clock", "1.0").offers_tools().resource_subscriptions().build()?;
//! server.update(|registry| {
//!     registry.add_tool(tool("wind_up", async |_, _: NoArguments| "ticking"))?;
//!     registry.add_resource(text_resource("clock://time", "time", "noon"))
//! })?;
//! // Those who subscribed hear that it is no longer what it was.
//! server.publish(&Change::Resource("clock://time".into()));
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # Testing a server
//!
//! A [`Connection`] needs no transport: what a client would send goes in, and what it would get comes out.
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
//! // This handler does not wait for anything. For one that does, poll within a runtime.
//! assert!(connection.poll(&mut Context::from_waker(Waker::noop()), now).is_ready());
//! let answer = connection.poll_transmit().expect("an answer").message.into_bytes();
//! let result = r#""result":{"resultType":"complete","content":[{"type":"text","text":"Hello!"}]}"#;
//! assert_eq!(String::from_utf8(answer)?, format!(r#"{{"jsonrpc":"2.0","id":1,{result}}}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mrtr` (by default) | questions to modern clients, with sealed state; without it they are answered with an error |
//! | `tower` | layers of tower around requests |
//! | `validate` | checks of raw arguments, and of results for which a schema was given, by their JSON Schemas |

#![forbid(unsafe_code)]

mod asking;
mod build;
mod connection;
mod extensions;
mod handlers;
mod serve;
mod server;
mod uri_template;

pub use asking::client_requests::{AskError, ElicitContent, Elicited, NotAccepted};
pub use asking::form;
pub use asking::options::AskOptions;
pub use build::builder::ServerBuilder;
pub use build::error::BuildError;
pub use build::registry::Registry;
pub use build::settings::ListKind;
pub use connection::handle::ConnectionHandle;
pub use connection::port::{ConnectionPort, InboxFull};
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
pub use serve::context::{Progress, RequestContext};
pub use serve::endpoint::{BoxFuture, Endpoint, Request, ResponseFuture};
pub use serve::response::Response;
pub use server::Server;
pub use uri_template::{InvalidTemplate, UriTemplate, UriValue, UriVariables};
