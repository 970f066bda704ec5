//! Routes the requests of a connection to the services.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Method as Verb, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcp_server::BoxFuture;
use pin_project_lite::pin_project;
use tower_service::Service as _;

use super::discard::{Discards, RequestBody};
use super::layered::{AddLayer, LayeredService, RoutedService};
use crate::server::body::ResponseBody;
use crate::server::legacy_sse::{LegacySseService, method_not_allowed};
use crate::server::refusal::Refusal;
use crate::server::response_future::ResponseFuture;
use crate::server::service::HttpService;
use crate::server::unsent::{OpenRequest, UnsentFrames};

/// The path of HTTP+SSE streams.
const SSE_PATH: &str = "/sse";

/// The services by path.
pub(crate) struct Routes {
    path: String,
    service: HttpService,
    /// HTTP+SSE, and the path of its messages.
    sse: Option<(String, LegacySseService)>,
    /// The same services with a layer around them.
    layered: Option<LayeredService>,
    discards: Discards,
}

impl Routes {
    pub(crate) fn new(path: String, service: HttpService, sse: Option<LegacySseService>) -> Self {
        let sse = sse.map(|sse| (sse.message_path_beside(SSE_PATH), sse));
        Self { path, service, sse, layered: None, discards: Discards::default() }
    }

    pub(super) fn service(&self) -> &HttpService {
        &self.service
    }

    /// Puts a layer around the services.
    pub(super) fn layer(self, add: AddLayer) -> Self {
        let (service, discards) = (self.service.clone(), self.discards.clone());
        let layered = add(RoutedService(Arc::new(self)));
        Self { path: String::new(), service, sse: None, layered: Some(layered), discards }
    }

    fn call(&self, request: Request<Incoming>) -> Routed {
        let (parts, body) = request.into_parts();
        let body = self.discards.wrap(&parts.headers, body);
        self.route(parts, body)
    }

    /// Routes a request, in parts, because nearly all of them are used so and a request is large to move.
    pub(super) fn route(&self, parts: Parts, body: RequestBody) -> Routed {
        if let Some(layered) = &self.layered {
            let response = layered(Request::from_parts(parts, body));
            return Routed::Layered { response, service: self.service.clone() };
        }
        if parts.uri.path() == self.path {
            return Routed::Service { response: self.service.respond(parts, body) };
        }
        match self.call_sse(Request::from_parts(parts, body)) {
            Ok(response) => Routed::Boxed { response },
            Err(refusal) => Routed::Refused { response: Some(self.service.0.finish(Err(refusal))) },
        }
    }

    fn call_sse(
        &self,
        request: Request<RequestBody>,
    ) -> Result<BoxFuture<Result<Response<ResponseBody>, Infallible>>, Refusal> {
        let not_found = || Refusal::new(StatusCode::NOT_FOUND, "not found: there is no MCP endpoint at this path");
        let (messages, sse) = self.sse.as_ref().ok_or_else(not_found)?;
        let (verb, allowed) = match request.uri().path() {
            SSE_PATH => (Verb::GET, "GET"),
            path if path == messages => (Verb::POST, "POST"),
            _ => return Err(not_found()),
        };
        if *request.method() != verb {
            // Tells clients that try Streamable HTTP first that this endpoint is HTTP+SSE.
            return Err(method_not_allowed(allowed));
        }
        Ok(sse.clone().call(request))
    }
}

/// The service of one connection.
pub(crate) struct ConnectionService {
    pub(crate) routes: Arc<Routes>,
    /// The counter of an HTTP/1 connection.
    pub(crate) connection: Option<Arc<UnsentFrames>>,
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = RoutedFuture;

    fn call(&self, request: Request<Incoming>) -> RoutedFuture {
        RoutedFuture { request: self.connection.as_ref().map(OpenRequest::new), routed: self.routes.call(request) }
    }
}

pin_project! {
    /// The future of the response to a request of a connection.
    pub(crate) struct RoutedFuture {
        request: Option<OpenRequest>,
        #[pin]
        routed: Routed,
    }
}

pin_project! {
    /// The service that a request is routed to.
    #[project = RoutedProjection]
    pub(super) enum Routed {
        // Nearly all requests are of this kind, and are not boxed for the sake of others.
        Service { #[pin] response: ResponseFuture<RequestBody> },
        Boxed { response: BoxFuture<Result<Response<ResponseBody>, Infallible>> },
        Layered { response: BoxFuture<Result<Response<ResponseBody>, Infallible>>, service: HttpService },
        Refused { response: Option<Response<ResponseBody>> },
    }
}

impl Routed {
    pub(super) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, Infallible>> {
        match self.project() {
            RoutedProjection::Service { response } => response.poll(cx),
            RoutedProjection::Boxed { response } => response.as_mut().poll(cx),
            RoutedProjection::Layered { response, service } => {
                let mut polled = response.as_mut().poll(cx);
                // Responses of layers are counted until they are sent, as refusals of the service are.
                if let Poll::Ready(Ok(response)) = &mut polled {
                    service.0.count_unsent(response);
                }
                polled
            }
            // Without a response the future was polled after it was ready.
            RoutedProjection::Refused { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
        }
    }
}

impl Future for RoutedFuture {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut polled = this.routed.poll(cx);
        // In place, as the response is large.
        if let Poll::Ready(Ok(response)) = &mut polled {
            response.body_mut().set_request(this.request.take());
        }
        polled
    }
}
