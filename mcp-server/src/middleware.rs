//! Middleware: code around the handlers of a server, or of one tool, prompt, resource or template.
//!
//! [`from_fn`] creates middleware from an async function, which gets the context of a request and the rest of the chain:
//!
//! ```
//! use mcp_server::types::ErrorObject;
//! use mcp_server::{NoArguments, Server, middleware, tool};
//!
//! let read_only = middleware::from_fn(async |ctx, next| match ctx.tool_name() {
//!     Some(name) if name.starts_with("delete") => Err(ErrorObject::invalid_request("this server is read-only")),
//!     _ => next.run(ctx).await,
//! });
//! let server = Server::builder("museum", "1.0")
//!     .tool(tool("delete_all", async |_, _: NoArguments| "deleted"))
//!     .layer(read_only)
//!     .build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # What middleware sees
//!
//! [`ServerBuilder::layer`](crate::ServerBuilder::layer) adds middleware around all requests except the handshake and `ping`,
//! and [`Tool::layer`](crate::Tool::layer), [`Prompt::layer`](crate::Prompt::layer),
//! [`Resource::layer`](crate::Resource::layer) and [`Template::layer`](crate::Template::layer) around the requests of one item.
//! What is added last sees a request first.
//!
//! The result of [`Next::run`] is the [`Response`], or the error that the client gets. A handler that requests input from a
//! modern client ends with [`Response::InputRequired`], and the client's retry is another request.
//! [`Response::ByProtocol`] is a placeholder for `server/discover`, `logging/setLevel` and subscriptions: middleware can
//! refuse the request, but not read the result.
//!
//! When a request is cancelled, its middleware is dropped at its current `await`, like the handler. Use
//! [`RequestContext::on_end`] for code that has to run at the end of each request.
//!
//! The future of [`Next::run`] may be spawned as a task, for example to complete what a handler began. It is then no longer
//! dropped with its request, but runs to its end: if the client has cancelled the request, or the middleware has responded
//! without it, its result and the messages that it sends are discarded, [`RequestContext::cancelled`] tells it that the
//! request has ended, and server-to-client requests fail. As long as the middleware awaits it, nothing else is different: the
//! middleware also sees [`Response::InputRequired`].
//!
//! Middleware can send requests to the client, as handlers do. The keys are shared with the handler, and with a modern client
//! middleware runs again from its beginning, too.
//!
//! # State
//!
//! A closure captures its state, and gives a copy to each request:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use mcp_server::{Server, middleware};
//!
//! let calls = Arc::new(AtomicU64::new(0));
//! let count = middleware::from_fn(move |ctx, next| {
//!     let calls = Arc::clone(&calls);
//!     async move {
//!         calls.fetch_add(1, Ordering::Relaxed);
//!         next.run(ctx).await
//!     }
//! });
//! let server = Server::builder("counted", "1.0").layer(count).build()?;
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! # Tower
//!
//! With the feature `tower`, each [tower](https://docs.rs/tower) layer is middleware if its services take a
//! [`Request`](crate::Request) and return a [`Response`]: `TimeoutLayer`, `ConcurrencyLimitLayer`, `RateLimitLayer`, a
//! `ServiceBuilder`, or one of your own. The services need not be `Clone`; requests share one service, and only wait for it
//! to be ready one after the other. [`FromFn`] is a tower layer, too, so that it can be part of a `ServiceBuilder`.
//!
//! The error of a service can be any type that converts to a boxed error. An
//! [`ErrorObject`] in it or among its sources is the error that the client gets. Any other one becomes an internal error
//! (-32603) with its text, such as "request timed out".
//!
//! Layers that are added one by one always are ready: they wait in their futures. To let `LoadShedLayer` see that a limit is
//! reached, add both in one `ServiceBuilder`.

use std::sync::Arc;

use mcp_types::ErrorObject;

use crate::serve::context::RequestContext;
use crate::serve::endpoint::{Endpoint, EndpointFuture};
use crate::serve::response::Response;

/// Code around the handlers of a server, or of one tool, prompt, resource or template: created by [`from_fn`], or any suitable
/// tower layer with the feature `tower`.
///
/// Use it as the return type of functions that create middleware:
///
/// ```
/// use mcp_server::middleware::{self, Middleware};
///
/// fn traced(name: &'static str) -> impl Middleware {
///     middleware::from_fn(move |ctx, next| async move {
///         let response = next.run(ctx).await;
///         println!("{name}: {}", if response.is_ok() { "result" } else { "error" });
///         response
///     })
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not middleware",
    note = "use `middleware::from_fn(async |ctx, next| next.run(ctx).await)`, or, with the feature `tower`, a tower layer whose \
            services take an `mcp_server::Request`, return an `mcp_server::Response`, and are `Send` as well as their futures"
)]
pub trait Middleware {
    /// Puts the middleware around an endpoint.
    fn wrap(&self, inner: Endpoint) -> Endpoint;
}

/// The async functions that can be middleware: `async |ctx, next| ..`. `Fut` is inferred: the future of the function.
///
/// It stands for a bound on `Fn`, so that the errors of the compiler say what to do.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this function cannot be middleware",
    label = "not an async function of a `RequestContext` and `Next` that can be called many times",
    note = "write `async |ctx, next| next.run(ctx).await`, or an \
            `async fn(ctx: RequestContext, next: Next) -> Result<Response, ErrorObject>`",
    note = "it is called many times, so an async closure cannot capture values, and no closure can move them out: clone \
            them for each request, as in `move |ctx, next| {{ let value = value.clone(); async move {{ .. }} }}`"
)]
pub trait MiddlewareFunction<Fut>: Fn(RequestContext, Next) -> Fut + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<F, Fut> MiddlewareFunction<Fut> for F
where
    F: Fn(RequestContext, Next) -> Fut + Send + Sync + 'static,
    Fut: Future,
{
}

/// Creates middleware from an async function, which calls [`Next::run`] to let a request pass.
///
/// See the [module](self) for examples.
pub fn from_fn<F, Fut>(function: F) -> FromFn<F>
where
    F: MiddlewareFunction<Fut>,
    Fut: Future<Output = Result<Response, ErrorObject>> + Send + 'static,
{
    FromFn(Arc::new(function))
}

/// Middleware from a function; created by [`from_fn`].
#[must_use = "middleware that is not added to a server or a tool does nothing"]
pub struct FromFn<F>(Arc<F>);

impl<F> FromFn<F> {
    pub(crate) fn around<Fut>(&self, inner: Endpoint) -> Endpoint
    where
        F: Fn(RequestContext, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response, ErrorObject>> + Send + 'static,
    {
        let function = Arc::clone(&self.0);
        Endpoint::new(move |ctx| Box::pin(function(ctx, Next(inner.clone()))))
    }
}

// With the feature, it is middleware because it is a tower layer.
#[cfg(not(feature = "tower"))]
impl<F, Fut> Middleware for FromFn<F>
where
    F: Fn(RequestContext, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response, ErrorObject>> + Send + 'static,
{
    fn wrap(&self, inner: Endpoint) -> Endpoint {
        self.around(inner)
    }
}

impl<F> Clone for FromFn<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> std::fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

/// The rest of the chain: further middleware, and the handler.
#[derive(Clone, Debug)]
#[must_use = "call `run`, or return a response"]
pub struct Next(Endpoint);

impl Next {
    /// Calls the rest of the chain. The future does nothing until it is polled.
    pub fn run(self, ctx: RequestContext) -> EndpointFuture {
        EndpointFuture::new(self.0, ctx)
    }
}
