//! The service: requests of HTTP in, responses out.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method as Verb, Request, Response, StatusCode};
use http_body::Body;
use mcp_server::{BoxFuture, Caller, Connection, Principal, Server};
use mcp_types::jsonrpc::{Incoming, InvalidMessage, Message, parse};
use mcp_types::{Method, Revision};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::admission::{Admission, Kind, Permit};
use super::body::{KEEP_ALIVE, ResponseBody};
use super::exchange::{Exchange, First, News};
use super::lifeline::{AtWork, Drained, Lifeline, Stage};
use super::options::{HttpOptions, SessionMode};
use super::refusal::Refusal;
use super::upload::Upload;
use crate::rules::era::{Offer, Served, check_params, choose, id_of};
use crate::rules::media;
use crate::rules::status::status_of;

/// A server as a service of HTTP, for [axum], hyper, or whatever speaks [tower].
///
/// Clones are the same service: they share its limits, and its end. It answers at whatever path it is put.
///
/// Handlers find the request in their context, with what others put into its extensions:
/// `ctx.extension::<http::request::Parts>()`. A [`Principal`] there is who the client is, and a [`ValidUntil`] how long
/// it may listen.
///
/// [axum]: https://docs.rs/axum
/// [tower]: https://docs.rs/tower
#[derive(Clone)]
pub struct HttpService(Arc<Inner>);

struct Inner {
    server: Server,
    options: HttpOptions,
    admission: Arc<Admission>,
    lifeline: Arc<Lifeline>,
}

/// How long a client may listen for changes, for example until its token expires: put it into the extensions of a
/// request. Then the stream ends properly, and the client comes back with a new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is an instant with a meaning")]
pub struct ValidUntil(pub Instant);

impl HttpService {
    /// Makes a service of a server, for clients on this machine.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self::with_options(server, HttpOptions::default())
    }

    /// Makes a service of a server.
    #[must_use]
    pub fn with_options(server: Server, options: HttpOptions) -> Self {
        let (admission, lifeline) = (Arc::default(), Arc::default());
        Self(Arc::new(Inner { server, options, admission, lifeline }))
    }

    /// Ends the service: new requests are turned away with 503, streams for changes end with their result, and what is
    /// at work may finish within `time`; then it is given up.
    pub async fn drain(&self, time: Duration) -> Drained {
        let drained = self.0.lifeline.drain(time).await;
        tracing::info!(target: "mcp", finished = drained.finished, cut = drained.cut, "the service has ended");
        drained
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("server", &self.0.server).field("options", &self.0.options).finish()
    }
}

impl<B: Body> Service<Request<B>> for HttpService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<B> {
        let (parts, body) = request.into_parts();
        // The end waits for what is counted before it is looked for.
        let at_work = AtWork::new(&self.0.lifeline);
        let checked = self.0.check(&parts);
        let parts = Arc::new(parts);
        let choosing = checked.and_then(|()| self.0.choose_server(&parts));
        let (choosing, refusal) = match choosing {
            Ok(choosing) => (choosing, None),
            Err(refusal) => (None, Some(refusal)),
        };
        let (inner, taken, upload) = (Arc::clone(&self.0), Some((parts, at_work)), Some(Upload::new(body)));
        ResponseFuture { inner, refusal, choosing, chosen: None, taken, upload, exchange: None }
    }
}

pin_project! {
    /// The future of a response; dropping it cancels the request.
    ///
    /// A request goes through its parts one after the other.
    pub struct ResponseFuture<B> {
        inner: Arc<Inner>,
        // What could be said at once.
        refusal: Option<Refusal>,
        // Finds the server, if that is left to the application.
        choosing: Option<Choosing>,
        chosen: Option<Server>,
        taken: Option<(Arc<Parts>, AtWork)>,
        #[pin]
        upload: Option<Upload<B>>,
        exchange: Option<(Exchange, Served)>,
    }
}

/// The application at work on the question which server it is.
struct Choosing {
    server: BoxFuture<Result<Server, Refusal>>,
    _permit: Permit,
}

impl<B: Body> Future for ResponseFuture<B> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_response(cx)
            .map(|served| Ok(served.unwrap_or_else(|refusal| refusal.into_response(None, Revision::LATEST))))
    }
}

impl<B: Body> ResponseFuture<B> {
    fn poll_response(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, Refusal>> {
        let mut this = self.project();
        if let Some(refusal) = this.refusal.take() {
            return Poll::Ready(Err(refusal));
        }
        if let Some(choosing) = this.choosing {
            *this.chosen = Some(ready!(choosing.server.as_mut().poll(cx))?);
            *this.choosing = None;
        }
        if let Some(upload) = this.upload.as_mut().as_pin_mut() {
            let body = ready!(upload.poll(cx, &this.inner.options, &this.inner.admission))?;
            this.upload.set(None);
            let server = this.chosen.as_ref().unwrap_or(&this.inner.server);
            let incoming = parse(&body, &server.config().limits.message);
            // Whoever polls a future that is done waits for nothing.
            let Some((parts, at_work)) = this.taken.take() else { return Poll::Pending };
            match this.inner.start(server, parts, incoming, at_work) {
                Started::Exchange(exchange, served) => *this.exchange = Some((exchange, served)),
                Started::Response(response) => return Poll::Ready(Ok(response)),
            }
        }
        let mut events = Vec::new();
        let Some((exchange, _)) = this.exchange else { return Poll::Pending };
        let first = ready!(exchange.poll_first(cx, &mut events));
        let Some((exchange, served)) = this.exchange.take() else { return Poll::Pending };
        Poll::Ready(Ok(respond(first, events, exchange, served)))
    }
}

impl<B> std::fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl Inner {
    /// What can be said without reading the body.
    fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let forbidden = |fault: crate::rules::hosts::Forbidden| {
            tracing::debug!(target: "mcp", %fault, "refused");
            Refusal::new(StatusCode::FORBIDDEN, fault.to_string())
        };
        self.options.allowed.check(&parts.uri, &parts.headers).map_err(forbidden)?;
        if parts.method != Verb::POST {
            return Err(Refusal::method_not_allowed());
        }
        if self.lifeline.stage() != Stage::Serving {
            return Err(self.ending());
        }
        if !media::is_json(&parts.headers) {
            let text = "`Content-Type` must be `application/json`, once and without `Content-Encoding`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        if !media::accepts_both(&parts.headers) {
            let text = "`Accept` must allow both `application/json` and `text/event-stream`";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, text));
        }
        Ok(())
    }

    /// Has the application choose the server, if it wants to; that counts as work.
    fn choose_server(&self, parts: &Arc<Parts>) -> Result<Option<Choosing>, Refusal> {
        let Some(configure) = &self.options.configure else { return Ok(None) };
        let permit = self.admission.admit(Kind::Request, 1, parts.extensions.get(), &self.options)?;
        Ok(Some(Choosing { server: configure(Arc::clone(parts)), _permit: permit }))
    }

    fn ending(&self) -> Refusal {
        let text = "the server is about to end: try again later";
        Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.options.retry_after)
    }

    /// Has the kernel take a message, unless something about HTTP is wrong with it.
    fn start(
        &self,
        server: &Server,
        parts: Arc<Parts>,
        incoming: Result<Incoming<'_>, InvalidMessage>,
        at_work: AtWork,
    ) -> Started {
        let offer = Offer::new(&server.config().revisions, self.options.sessions != SessionMode::Off);
        let checked = choose(&offer, &parts.headers, &incoming).and_then(|served| {
            match &incoming {
                Ok(Incoming::Single(Message::Request(request))) if served == Served::Modern => {
                    check_params(&offer, &parts.headers, request, |tool| server.header_params(tool))?;
                }
                Ok(_) | Err(_) => {}
            }
            Ok(served)
        });
        let served = match checked {
            Ok(served) => served,
            Err(error) => {
                let refusal = Refusal::with_error(StatusCode::BAD_REQUEST, error);
                let id = incoming.as_ref().ok().and_then(id_of);
                return Started::Response(refusal.into_response(id, Revision::LATEST));
            }
        };
        let incoming = match incoming {
            Ok(incoming) => incoming,
            Err(invalid) => {
                tracing::debug!(target: "mcp", what = %invalid, "the client broke a rule");
                let refusal = Refusal::with_error(StatusCode::BAD_REQUEST, invalid.to_error_object());
                return Started::Response(refusal.into_response(invalid.id(), served.revision()));
            }
        };
        // What began before the end did may still finish, unless the time for that is over.
        if at_work.stage() == Stage::Cut {
            return Started::Response(self.ending().into_response(id_of(&incoming), served.revision()));
        }
        let principal = parts.extensions.get::<Principal>();
        let kind = if served == Served::Modern && is_listen(&incoming) { Kind::Listener } else { Kind::Request };
        let permit = match self.admission.admit(kind, requests(&incoming), principal, &self.options) {
            Ok(permit) => permit,
            Err(refusal) => return Started::Response(refusal.into_response(id_of(&incoming), served.revision())),
        };
        let mut connection = match served {
            Served::Modern => Connection::from_envelope(server),
            Served::Legacy(revision) => Connection::from_version(server, revision),
        };
        let mut caller = Caller::default();
        caller.principal = principal.cloned();
        let expiry = parts.extensions.get::<ValidUntil>().copied();
        caller.extensions.insert_shared(parts);
        #[expect(clippy::disallowed_methods, reason = "this is the driver, who reads the clock for the others")]
        let now = Instant::now();
        let Some(key) = connection.feed_parsed(now, incoming, &caller) else { return Started::Response(accepted()) };
        let mut exchange = Exchange::new(connection, key, permit, at_work, self.options.keep_alive);
        if let Some(ValidUntil(at)) = expiry.filter(|_| kind == Kind::Listener) {
            exchange.expire_at(at);
        }
        Started::Exchange(exchange, served)
    }
}

/// What became of a message.
enum Started {
    Exchange(Exchange, Served),
    Response(Response<ResponseBody>),
}

fn is_listen(incoming: &Incoming<'_>) -> bool {
    matches!(incoming, Incoming::Single(Message::Request(request)) if request.method == Method::SUBSCRIPTIONS_LISTEN)
}

/// How many requests a message is, or holds.
fn requests(incoming: &Incoming<'_>) -> usize {
    match incoming {
        Incoming::Single(_) => 1,
        Incoming::Batch(messages) => {
            messages.iter().filter(|message| matches!(message, Ok(Message::Request(_)))).count().max(1)
        }
    }
}

/// Makes a response of what happens first. What is said before the answer makes the response a stream, and so does a
/// long silence: until then the status is open (H-29).
fn respond(first: First, events: Vec<u8>, exchange: Exchange, served: Served) -> Response<ResponseBody> {
    match first {
        First::Answer(answer) => {
            let mut response = Response::new(ResponseBody::full(answer.message));
            *response.status_mut() = match exchange.is_cut() {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => status_of(served.era(), answer.failure),
            };
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media::JSON));
            response
        }
        First::News(News::Over) => accepted(),
        First::News(News::Events) if exchange.is_over() => event_stream(ResponseBody::full(events)),
        First::News(News::Events) => event_stream(ResponseBody::events(exchange, events)),
        First::News(News::Silence) => event_stream(ResponseBody::events(exchange, KEEP_ALIVE.to_vec())),
    }
}

/// H-11: what asks for nothing gets nothing.
fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn event_stream(body: ResponseBody) -> Response<ResponseBody> {
    /// Proxies that buffer would hold events back (H-20).
    const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
