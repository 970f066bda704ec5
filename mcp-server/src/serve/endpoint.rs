//! The service that middleware wraps: it calls the server's handlers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_types::ErrorObject;
use mcp_types::jsonrpc::PayloadBuf;

#[cfg(feature = "mrtr")]
use crate::asking::round_slot::{PollScope, RoundWaiter};
#[cfg(feature = "mrtr")]
use crate::asking::rounds;
use crate::serve::context::RequestContext;
use crate::serve::dispatch::dispatch;
use crate::serve::response::Response;

/// A request as tower layers see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The context of the request.
    pub ctx: RequestContext,
}

impl Request {
    /// Creates the request of a context, to call a service with it.
    #[must_use]
    pub fn new(ctx: RequestContext) -> Self {
        Self { ctx }
    }

    /// Returns the parameters, undecoded.
    #[must_use]
    pub fn params(&self) -> &PayloadBuf {
        self.ctx.params()
    }
}

/// A boxed future of a [`Response`].
pub type ResponseFuture = BoxFuture<Result<Response, ErrorObject>>;

/// A boxed future that can be sent between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The outcome of a dispatched request: ready at once, or a future of it.
pub(crate) enum Dispatched {
    Ready(Result<Response, ErrorObject>),
    Pending(ResponseFuture),
}

/// What [middleware](crate::middleware) wraps: the handlers of a server or of one tool, prompt or resource, with the
/// middleware that is around them already.
///
/// With the feature `tower` it is a service, which takes a [`Request`] and returns a [`Response`]. Clones are cheap. A server
/// without middleware calls its handlers directly.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// Absent for the handlers of a server.
    pub(crate) call: Option<Arc<dyn Fn(RequestContext) -> ResponseFuture + Send + Sync>>,
}

impl Endpoint {
    pub(crate) fn new(call: impl Fn(RequestContext) -> ResponseFuture + Send + Sync + 'static) -> Self {
        Self { call: Some(Arc::new(call)) }
    }

    pub(crate) fn serve(&self, ctx: RequestContext) -> Dispatched {
        match &self.call {
            None => dispatch(ctx),
            Some(call) => Dispatched::Pending(call(ctx)),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("is_server", &self.call.is_none()).finish()
    }
}

/// The future of the [`Response`] of an [`Endpoint`]. It does nothing until it is polled.
///
/// If the handler requests input from a modern client, it ends here: the future is ready with
/// [`Response::InputRequired`], so that all middleware around it sees the end of the request.
#[must_use = "futures do nothing unless polled"]
pub struct EndpointFuture {
    ctx: RequestContext,
    stage: Stage,
    #[cfg(feature = "mrtr")]
    waiter: RoundWaiter,
}

enum Stage {
    NotStarted(Endpoint),
    Running(ResponseFuture),
    Ended,
}

impl EndpointFuture {
    pub(crate) fn new(endpoint: Endpoint, ctx: RequestContext) -> Self {
        Self {
            ctx,
            stage: Stage::NotStarted(endpoint),
            #[cfg(feature = "mrtr")]
            waiter: RoundWaiter::default(),
        }
    }
}

impl Future for EndpointFuture {
    type Output = Result<Response, ErrorObject>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        #[cfg(feature = "mrtr")]
        let _scope = PollScope::enter(this.ctx.round());
        let mut running = match std::mem::replace(&mut this.stage, Stage::Ended) {
            Stage::NotStarted(endpoint) => match endpoint.serve(this.ctx.clone()) {
                Dispatched::Ready(served) => return Poll::Ready(served),
                Dispatched::Pending(later) => later,
            },
            Stage::Running(running) => running,
            Stage::Ended => return Poll::Pending,
        };
        let served = running.as_mut().poll(cx);
        if served.is_ready() {
            return served;
        }
        #[cfg(feature = "mrtr")]
        if rounds::poll_ending(&this.ctx, &mut this.waiter, cx).is_ready() {
            // Dropped first, so that nothing of the handler runs after its end.
            drop(running);
            return Poll::Ready(rounds::finish(&this.ctx));
        }
        this.stage = Stage::Running(running);
        Poll::Pending
    }
}

#[cfg(feature = "mrtr")]
impl Drop for EndpointFuture {
    fn drop(&mut self) {
        self.ctx.round().leave(&mut self.waiter);
    }
}

impl std::fmt::Debug for EndpointFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointFuture").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}
