//! Tower: the endpoint as a service, and layers as middleware.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_types::ErrorObject;
use tower_layer::Layer;
use tower_service::Service;

use crate::handlers::error::{BoxError, HandlerError};
use crate::handlers::error_text;
use crate::middleware::{FromFn, Middleware, Next};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::{Endpoint, EndpointFuture, Request};
use crate::serve::response::Response;
use crate::serve::shared_service::SharedService;

impl Endpoint {
    /// Creates an endpoint from a tower service.
    pub fn from_service<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Send + 'static,
    {
        // It needs no turns.
        if let Some(endpoint) = (&service as &dyn Any).downcast_ref::<Self>() {
            return endpoint.clone();
        }
        let shared = Arc::new(SharedService::new(service));
        Self::new(move |ctx| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let failed = |error: S::Error| error_text::of_handler(&ctx, &HandlerError::new(error.into()));
                let response = shared.call(Request::new(ctx.clone())).await.map_err(failed)?;
                response.await.map_err(failed)
            })
        })
    }
}

impl Service<Request> for Endpoint {
    type Response = Response;
    type Error = ErrorObject;
    type Future = EndpointFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> EndpointFuture {
        EndpointFuture::new(self.clone(), request.ctx)
    }
}

impl<L> Middleware for L
where
    L: Layer<Endpoint>,
    L::Service: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Send + 'static,
{
    fn wrap(&self, inner: Endpoint) -> Endpoint {
        Endpoint::from_service(self.layer(inner))
    }
}

/// For a `ServiceBuilder` with other layers.
impl<S, F, Fut> Layer<S> for FromFn<F>
where
    S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Send + 'static,
    F: Fn(RequestContext, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response, ErrorObject>> + Send + 'static,
{
    type Service = Endpoint;

    fn layer(&self, inner: S) -> Endpoint {
        self.around(Endpoint::from_service(inner))
    }
}
