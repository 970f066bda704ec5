//! What serves requests: the server's own handlers, and what was put around them.

use std::pin::Pin;
use std::sync::Arc;

use mcp_types::ErrorObject;
use mcp_types::jsonrpc::PayloadBuf;

use crate::serve::context::RequestContext;
use crate::serve::dispatch::dispatch;
use crate::serve::response::Response;

/// A request on its way to its handler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What holds for the request, and the way to its client.
    pub ctx: RequestContext,
}

impl Request {
    pub(crate) fn new(ctx: RequestContext) -> Self {
        Self { ctx }
    }

    /// The parameters, as they came.
    #[must_use]
    pub fn params(&self) -> &PayloadBuf {
        self.ctx.params()
    }
}

/// The future of an answer.
pub type ResponseFuture = BoxFuture<Result<Response, ErrorObject>>;

/// A future of something, wherever it runs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handler's outcome: there already, or to be waited for.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum Dispatched {
    Ready(Result<Response, ErrorObject>),
    Pending(ResponseFuture),
}

/// The service that layers are put around: it takes a [`Request`] and gives an [`Response`].
///
/// Without layers, requests go to their handlers without passing through this.
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
