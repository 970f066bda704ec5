//! Layers around all services of a server.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use mcp_server::BoxFuture;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::discard::RequestBody;
use super::routes::{Routed, Routes};
use super::server::HttpServer;
use crate::server::body::ResponseBody;

/// All services of an [`HttpServer`], by path, which layers are put around
/// ([`HttpServer::layer`](crate::HttpServer::layer)).
#[derive(Clone)]
pub struct RoutedService(pub(super) Arc<Routes>);

/// A service with its layers.
pub(super) type LayeredService =
    Arc<dyn Fn(Request<RequestBody>) -> BoxFuture<Result<Response<ResponseBody>, Infallible>> + Send + Sync>;

/// Puts a layer around services.
pub(super) type AddLayer = Box<dyn FnOnce(RoutedService) -> LayeredService + Send>;

impl HttpServer {
    /// Puts a [tower](https://docs.rs/tower) layer around the services of all paths, such as one that authenticates. A further
    /// layer goes around those before it.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<RoutedService> + Send + 'static,
        L::Service: Service<Request<RequestBody>, Response = Response<ResponseBody>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as Service<Request<RequestBody>>>::Future: Send,
    {
        self.layers.push(Box::new(move |services| {
            let service = layer.layer(services);
            Arc::new(move |request| -> BoxFuture<_> {
                let mut service = service.clone();
                // Most services are always ready; then the request is not moved into another future.
                match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(Ok(())) => Box::pin(service.call(request)),
                    Poll::Ready(Err(error)) => match error {},
                    Poll::Pending => Box::pin(async move {
                        poll_fn(|cx| service.poll_ready(cx)).await?;
                        service.call(request).await
                    }),
                }
            })
        }));
        self
    }
}

impl Service<Request<RequestBody>> for RoutedService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = RoutedServiceFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> RoutedServiceFuture {
        let (parts, body) = request.into_parts();
        RoutedServiceFuture { routed: self.0.route(parts, body) }
    }
}

impl fmt::Debug for RoutedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedService").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a [`RoutedService`] response.
    pub struct RoutedServiceFuture {
        #[pin]
        routed: Routed,
    }
}

impl Future for RoutedServiceFuture {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().routed.poll(cx)
    }
}

impl fmt::Debug for RoutedServiceFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedServiceFuture").finish_non_exhaustive()
    }
}
