//! The endpoint as a tower service, and layers around it.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_types::ErrorObject;
use tower_layer::Layer;
use tower_service::Service;

use crate::serve::endpoint::{Dispatched, Endpoint, Request, ResponseFuture};
use crate::serve::response::Response;

impl Endpoint {
    /// Wraps the endpoint, with the layers that it has already, into another one.
    pub(crate) fn wrap<L>(self, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Request, Response = Response, Error: Into<ErrorObject>> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let service = layer.layer(self);
        let call = move |request| {
            let mut service = service.clone();
            let served: ResponseFuture = Box::pin(async move {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                service.call(request).await.map_err(Into::into)
            });
            served
        };
        Self { layered: Some(Arc::new(call)) }
    }
}

impl Service<Request> for Endpoint {
    type Response = Response;
    type Error = ErrorObject;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        match self.serve(request) {
            Dispatched::Ready(answer) => Box::pin(ready(answer)),
            Dispatched::Pending(answer) => answer,
        }
    }
}
