//! The service that middleware wraps: it calls the server's handlers.

use std::pin::Pin;
use std::sync::Arc;

use mcp_types::ErrorObject;
use mcp_types::jsonrpc::PayloadBuf;

use crate::serve::context::RequestContext;
use crate::serve::dispatch::dispatch;
use crate::serve::response::Response;

/// A request as middleware sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The context of the request.
    pub ctx: RequestContext,
}

impl Request {
    pub(crate) fn new(ctx: RequestContext) -> Self {
        Self { ctx }
    }

    /// Returns the parameters, undecoded.
    #[must_use]
    pub fn params(&self) -> &PayloadBuf {
        self.ctx.params()
    }
}

/// The future of a [`Response`].
pub type ResponseFuture = BoxFuture<Result<Response, ErrorObject>>;

/// A boxed future that can be sent between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The outcome of a dispatched request: ready at once, or a future of it.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum Dispatched {
    Ready(Result<Response, ErrorObject>),
    Pending(ResponseFuture),
}

/// The innermost service of a server, which layers wrap: it takes a [`Request`] and returns a [`Response`].
///
/// See [`ServerBuilder::layer`](crate::ServerBuilder). A server without layers calls its handlers directly.
#[derive(Clone, Default)]
pub struct Endpoint {
    pub(crate) layered: Option<Arc<dyn Fn(Request) -> ResponseFuture + Send + Sync>>,
}

impl Endpoint {
    pub(crate) fn serve(&self, request: Request) -> Dispatched {
        match &self.layered {
            None => dispatch(request),
            Some(layered) => Dispatched::Pending(layered(request)),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("layered", &self.layered.is_some()).finish()
    }
}
