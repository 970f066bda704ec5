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
//! | create them from functions with any parameters | [`tool_fn`], [`prompt_fn`], [`resource_fn`], [`template_fn`]; [`extract`] |
//! | return results and errors | [`IntoToolResult`], [`Json`], [`IntoPromptResult`], [`IntoContents`], [`HandlerError`], [`ServerBuilder::on_handler_error`] |
//! | use the request and its connection | [`RequestContext`], [`ConnectionHandle`] |
//! | keep state between calls | [`Handle`], [`Handles`], [`HandleValue`]; [`handles`] |
//! | send requests to the client | [`RequestContext::elicit`], [`sample`](RequestContext::sample), [`list_roots`](RequestContext::list_roots), [`once`](RequestContext::once); [`form`] |
//! | add middleware | [`middleware`], [`ServerBuilder::layer`], [`Tool::layer`], [`Response`], [`Outcome`] |
//! | write a gateway | [`ServerBuilder::fallback`], [`ServerBuilder::capabilities`] |
//! | combine tools, prompts and resources | [`Registry`], [`ServerBuilder::merge`], [`mount`](ServerBuilder::mount) |
//! | hide them from some clients | [`Tool::visible`], [`Prompt::visible`], [`Resource::visible`], [`Template::visible`], [`Viewer`] |
//! | forward those of another server | [`Tool::from_raw`], [`Prompt::from_raw`], [`Resource::from_raw`], [`Template::from_raw`] |
//! | change a running server | [`Server::update`], [`Registry`], [`Server::publish`], [`Change`], [`Audience`], [`ServerBuilder::on_subscription`] |
//! | write a transport | [`Connection`], [`Caller`], [`ParamClaims`] |
//! | decide about legacy clients, and run code as long as their sessions | [`ServerBuilder::on_initialize`], [`Handshake`]; [`ServerBuilder::on_session`], [`SessionContext`] |
//! | use the protocol's types | [`types`], a re-export of `mcp-types` |
//!
//! # Tools
//!
//! The arguments of a tool are a struct. Its JSON Schema, with the doc comments of the members as descriptions, is what the
//! model sees; the doc comment of the struct describes the tool unless [`Tool::description`] does. A handler returns any type
//! that implements [`IntoToolResult`]: [`Json`] becomes structured content with a schema, and text for older clients. An error
//! becomes a result with `isError`, whose text the model reads: it should name the problem and what to do instead.
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
//! Invalid arguments do not reach the handler; the result names the member that is invalid. Constraints such as
//! `#[schemars(range(max = 8))]` are enforced with the feature `validate`. [`raw_tool`] is for schemas that are not known at
//! compile time; with the feature `validate`, arguments are validated against them. Functions that block their thread are
//! for `blocking_tool` and `blocking_tool_fn` (feature `blocking`).
//!
//! # Errors
//!
//! Handlers return any error: enums of `thiserror`, `anyhow::Error` (feature `anyhow`), boxed errors, [`HandlerError`], text.
//! A [`types::ErrorObject`] becomes a protocol error, and so does an [`AskError`] for which the protocol has a code, also as
//! the cause ([`source`](std::error::Error::source)) of another error. All other errors pass through one function,
//! [`ServerBuilder::on_handler_error`], which logs them and decides what the client gets to know. By default the log has the
//! error with its causes, and the client its text without them.
//!
//! # Prompts
//!
//! The arguments of prompts are sent as text; numbers, booleans and enums are parsed. Clients get the variants of enums as
//! suggestions while the user types. [`Prompt::complete`] adds a completer, which suggests values for other arguments.
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
//! URI template (RFC 6570). Handlers return text, bytes, [`Json`], or an `Option` or `Result` of these; `None` becomes the error
//! that the client's revision defines for unknown resources. [`template_fn`] takes the variables of the URI as a struct.
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
//! use mcp_server::extract::State;
//! use mcp_server::types::LoggingLevel;
//! use mcp_server::{RequestContext, Server, tool_fn};
//!
//! struct Files { names: Vec<String> }
//!
//! async fn copy(ctx: RequestContext, files: State<Files>) -> String {
//!     for (done, file) in files.names.iter().enumerate() {
//!         ctx.log(LoggingLevel::Debug, &format!("copying {file}"));
//!         ctx.progress((done + 1, files.names.len()));
//!     }
//!     format!("{} files", files.names.len())
//! }
//!
//! let files = Files { names: vec!["a".into()] };
//! let server = Server::builder("files", "1.0").state(files).tool(tool_fn("copy", copy)).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! [`tool_fn`] and its siblings take functions whose parameters are the context, the arguments and values from the request
//! ([`extract`]) in any order: the application's [`State`](extract::State), the authenticated [`Principal`], an
//! [`Extension`](extract::Extension) that a layer attached, the [`Session`](extract::Session) of a legacy client, or a type of
//! your own. A state that is missing is an error of
//! [`ServerBuilder::build`]. Handlers of [`tool`](tool()) have the same by [`RequestContext`].
//!
//! - Progress and log messages are sent to clients that requested them; otherwise they cost nothing.
//! - A handler whose request is cancelled is dropped at its current `await`. Tasks that it spawned can await
//!   [`RequestContext::cancelled`].
//! - Handlers of a connection share its task, so long computations should yield regularly, or run on a thread of their own.
//! - [`ConnectionHandle::scratch`] keeps values from one request to the next where the connection lasts: on stdio and sockets,
//!   and in the sessions of legacy clients. Modern clients have no sessions over HTTP.
//! - [`ConnectionHandle::on_close`] runs callbacks at the end of the connection.
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
//! # State between calls
//!
//! Modern clients have no sessions. A tool that needs state from an earlier call takes a [`Handle`] as an argument: a text that
//! another tool returned, and that the model passes on. It is opened before the handler runs, and dereferences to its value.
//!
#![cfg_attr(feature = "mrtr", doc = "```")]
#![cfg_attr(not(feature = "mrtr"), doc = "```ignore")]
//! use mcp_server::{Handle, HandleError, HandleValue, Handles, Json, NoArguments, RequestContext, Server, tool};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Basket {
//!     items: Vec<String>,
//! }
//!
//! impl HandleValue for Basket {
//!     const NAME: &'static str = "basket";
//!     const HINT: &'static str = "Call `open_basket` to get one.";
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Opened {
//!     basket: Handle<Basket>,
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     basket: Handle<Basket>,
//!     item: String,
//! }
//!
//! async fn open_basket(ctx: RequestContext, _: NoArguments) -> Result<Json<Opened>, HandleError> {
//!     Ok(Json(Opened { basket: ctx.handles().mint(Basket::default()).await? }))
//! }
//!
//! async fn add_item(_: RequestContext, Add { mut basket, item }: Add) -> Result<String, HandleError> {
//!     basket.update(|basket| basket.items.push(item.clone())).await?;
//!     Ok(format!("{} items", basket.items.len()))
//! }
//!
//! let server = Server::builder("shop", "1.0")
//!     .handles(Handles::<Basket>::in_memory())
//!     .tool(tool("open_basket", open_basket))
//!     .tool(tool("add_item", add_item))
//!     .build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # Middleware
//!
//! [`middleware::from_fn`] puts a function around all requests ([`ServerBuilder::layer`]), or around one tool, prompt,
//! resource or template ([`Tool::layer`]):
//!
//! ```
//! use mcp_server::types::ErrorObject;
//! use mcp_server::{Server, middleware};
//!
//! let read_only = middleware::from_fn(async |ctx, next| match ctx.tool_name() {
//!     Some(_) => Err(ErrorObject::invalid_request("this server is read-only")),
//!     None => next.run(ctx).await,
//! });
//! let server = Server::builder("museum", "1.0").layer(read_only).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! With the feature `tower`, [tower](https://docs.rs/tower) layers are middleware, too. Middleware sees the response of each
//! request; [`RequestContext::on_end`] tells the [`Outcome`] of those that are cancelled, too.
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
//! Items with a predicate ([`Tool::visible`]) exist only for the clients that it admits: in lists, calls, completion,
//! subscriptions and notifications alike. An [`Audience`] restricts notifications to a user, a connection, or whatever a
//! function decides.
//!
//! ```
//! use mcp_server::{Audience, Change, NoArguments, Principal, Server, tool};
//!
//! let alice = Principal::new(None, "alice");
//! let wind_up = tool("wind_up", async |_, _: NoArguments| "ticking");
//! let server = Server::builder("clock", "1.0")
//!     .tool(wind_up.visible(|viewer| viewer.principal().is_some_and(|user| &*user.subject == "alice")))
//!     .resource_subscriptions()
//!     .build()?;
//! // Notifies her clients that subscribed to this resource.
//! server.publish_to(&Audience::principal(alice), &Change::Resource("clock://alarms".into()));
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
//! | `tower` | tower layers as [`middleware`] |
//! | `validate` | validation of the arguments and structured results of [`raw_tool`]s against their JSON Schemas, and of typed arguments against constraints of `schemars` that deserializing does not check |
//! | `anyhow` | handlers that return `anyhow::Error`, in which protocol errors are found |
//! | `blocking` | `blocking_tool` and `blocking_tool_fn`, for functions that block; with tokio |
//! | `mrtr` (default) | elicitation, sampling and roots requests to modern clients (multi round-trip requests), without which they return an error; [`handles`] |
//! | `store-tests` | tests for implementations of [`handles::HandleStore`] |

#![forbid(unsafe_code)]

mod asking;
mod auth;
mod build;
pub mod bus;
mod connection;
mod extensions;
mod handlers;
#[cfg(feature = "mrtr")]
pub mod handles;
pub mod middleware;
mod serve;
mod server;
#[cfg(feature = "mrtr")]
pub mod tasks;
mod uri_template;
mod visibility;

pub use asking::error::{AskError, DeveloperHint, InvalidInput, MissingCapability};
pub use asking::form;
pub use asking::request::ServerRequest;
pub use asking::server_requests::{ElicitContent, Elicited, NotAccepted};
pub use auth::info::{AuthInfo, AuthInfoBuilder};
pub use auth::insufficient_scope::InsufficientScope;
pub use auth::renewal::Renewal;
pub use build::builder::ServerBuilder;
pub use build::error::BuildError;
pub use build::registry::Registry;
pub use build::settings::ListKind;
pub use connection::caller::Caller;
pub use connection::handle::{ConnectionClosed, ConnectionHandle, WeakConnectionHandle};
pub use connection::handshake::Handshake;
pub use connection::port::{ConnectionPort, InboxFull};
pub use connection::scratch::{NoLastingConnection, Scratch};
pub use connection::session::{NoSession, SessionContext};
pub use connection::shared::RouteWaker;
pub use connection::{Connection, NextStep};
pub use extensions::Extensions;
#[cfg(feature = "blocking")]
pub use handlers::blocking::{blocking_tool, blocking_tool_fn};
pub use handlers::completion::{Completer, CompletionInput, IntoCompletion};
pub use handlers::contents::IntoContents;
pub use handlers::error::HandlerError;
pub use handlers::error_text::ErrorText;
pub use handlers::extract;
// Bounds, whose names only the errors of the compiler show.
#[doc(hidden)]
pub use handlers::function::{Arguments, ContextFunction, ReadFunction};
pub use handlers::notification::Notification;
pub use handlers::prompt::{IntoPromptResult, Prompt, prompt, prompt_fn};
pub use handlers::resource::{Resource, blob_resource, resource, resource_fn, text_resource};
pub use handlers::schema::NoArguments;
pub use handlers::subscription::SubscriptionEvent;
pub use handlers::template::{Template, template, template_fn};
pub use handlers::text_values::InvalidText;
pub use handlers::tool::{ArgumentErrors, Tool, raw_tool, tool, tool_fn};
pub use handlers::tool_result::{IntoToolResult, Json, RoundResult};
#[cfg(feature = "mrtr")]
pub use handles::error::HandleError;
#[cfg(feature = "mrtr")]
pub use handles::handle::Handle;
#[cfg(feature = "mrtr")]
pub use handles::kind::Handles;
#[cfg(feature = "mrtr")]
pub use handles::value::HandleValue;
pub use mcp_kernel::observe::{self, Network, Observer};
pub use mcp_kernel::server::{Principal, ProtocolExtension, SecondHandshake};
pub use mcp_kernel::{Change, Limits, Time};
#[cfg(feature = "mrtr")]
pub use mcp_mrtr as mrtr;
pub use mcp_types as types;
pub use mcp_types::{ClientCapability, HeaderParam};
pub use serve::context::RequestContext;
pub use serve::end::Outcome;
pub use serve::endpoint::{BoxFuture, Endpoint, EndpointFuture, Request, ResponseFuture};
pub use serve::param_claims::ParamClaims;
pub use serve::progress::Progress;
pub use serve::response::Response;
pub use serve::target::Target;
pub use server::{Server, ToolNames, WeakServer};
pub use uri_template::{InvalidTemplate, UriTemplate, UriValue, UriVariables};
pub use visibility::audience::Audience;
pub use visibility::viewer::Viewer;
