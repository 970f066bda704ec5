//! The tower service for Streamable HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode};
use http_body::Body;
use mcp_server::{BoxFuture, Caller, Connection, Principal, Server};
use mcp_session::SessionMetrics;
use mcp_types::jsonrpc::{EncodedMessage, Incoming, InvalidMessage, Message, parse};
use mcp_types::{Method, Revision};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::admission::{Admission, Permit, PermitKind};
use super::body::{EventSource, KEEP_ALIVE, ResponseBody};
use super::exchange::{Exchange, ResponseStart, StreamPoll};
use super::legacy_sse::{LegacySseError, LegacySseService};
use super::options::{HttpOptions, SessionMode};
use super::pacer::Pacer;
use super::refusal::Refusal;
use super::shutdown::{Drained, Shutdown, Stage, WorkGuard};
use super::start_error::StartError;
use super::stateful::{SessionLookup, Sessions, Taken};
use super::upload::Upload;
use crate::clock::now;
use crate::rules::era::{SelectedEra, SupportedRevisions, check_param_headers, request_id, select_era};
use crate::rules::header_names::BUFFERING;
use crate::rules::media;
use crate::rules::status::status_of;

/// A [tower] service that serves a [`Server`] over Streamable HTTP, for [axum], hyper and other tower-based servers.
///
/// Clones share limits, sessions and shutdown. The service ignores the path: mount it at any route.
///
/// Handlers get the HTTP request with `ctx.extension::<http::request::Parts>()`, including the extensions that middleware
/// inserted. The service itself reads a [`Principal`] (the authenticated user) and a [`ValidUntil`] (when listen streams
/// have to end).
///
/// [axum]: https://docs.rs/axum
/// [tower]: https://docs.rs/tower
#[derive(Clone)]
pub struct HttpService(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) server: Server,
    pub(crate) options: HttpOptions,
    pub(crate) admission: Arc<Admission>,
    pub(crate) shutdown: Arc<Shutdown>,
    sessions: Option<Arc<Sessions>>,
    /// Whether the tasks that end expired and deleted sessions were spawned.
    has_sweeper: AtomicBool,
}

/// When a listen stream has to end, for example because the client's token expires.
///
/// Insert it into the request's extensions. The stream is then closed with its result, and the client can open it again
/// with a new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is an instant with a meaning")]
pub struct ValidUntil(pub Instant);

impl HttpService {
    /// Creates a service with the default options: for clients on this machine, without sessions.
    ///
    /// # Panics
    ///
    /// Panics if the server [requires sessions](mcp_server::ServerBuilder::requires_sessions). Use
    /// [`try_with_options`](Self::try_with_options) to choose options and get an error instead.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self::with_options(server, HttpOptions::default())
    }

    /// Creates a service with options.
    ///
    /// # Panics
    ///
    /// Panics where [`try_with_options`](Self::try_with_options) returns an error.
    #[must_use]
    pub fn with_options(server: Server, options: HttpOptions) -> Self {
        match Self::try_with_options(server, options) {
            Ok(service) => service,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a service with options, or returns an error if the server cannot be served with them.
    ///
    /// ```
    /// use mcp_server::Server;
    /// use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
    ///
    /// let server = Server::builder("shop", "1.0").requires_sessions().build()?;
    /// let error = HttpService::try_with_options(server.clone(), HttpOptions::default()).unwrap_err();
    /// assert!(error.to_string().contains("`HttpOptions::sessions` is `SessionMode::Stateless`"));
    /// let service = HttpService::try_with_options(server, HttpOptions::default().sessions(SessionMode::Stateful))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the server [requires sessions](mcp_server::ServerBuilder::requires_sessions) and
    /// [`HttpOptions::sessions`] gives it none, or if sessions are enabled and the operating system's random source fails.
    pub fn try_with_options(server: Server, options: HttpOptions) -> Result<Self, StartError> {
        StartError::check(&server, &options)?;
        let (admission, shutdown) = (Arc::default(), Arc::default());
        let has_sessions = options.sessions == SessionMode::Stateful;
        let sessions = if has_sessions { Some(Arc::new(Sessions::new(&options)?)) } else { None };
        let has_sweeper = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { server, options, admission, shutdown, sessions, has_sweeper })))
    }

    /// Returns the session metrics, or `None` if sessions are not enabled.
    #[must_use]
    pub fn sessions(&self) -> Option<SessionMetrics> {
        self.0.sessions.as_ref().map(|sessions| sessions.metrics())
    }

    /// Creates a service for HTTP+SSE, the transport of 2024-11-05, for clients that support no other. It shares the
    /// limits and the shutdown of this service. See [`LegacySseService`] for its costs.
    ///
    /// # Errors
    ///
    /// Returns an error if sessions are not enabled, or if the server has no legacy revision.
    pub fn legacy_sse(&self) -> Result<LegacySseService, LegacySseError> {
        LegacySseService::new(self)
    }

    /// Shuts the service down gracefully: new requests get 503, listen streams end with their result, and requests in
    /// flight may finish within `timeout`. The rest are aborted.
    pub async fn drain(&self, timeout: Duration) -> Drained {
        let drained = self.0.shutdown.drain(timeout).await;
        if let Some(sessions) = &self.0.sessions {
            sessions.shutdown().await;
        }
        tracing::info!(target: "mcp", finished = drained.finished, aborted = drained.aborted, "service drained");
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
        // Counted before the stage is checked, so that a drain that begins in between waits for it.
        let work_guard = WorkGuard::new(&self.0.shutdown);
        let checked = self.0.check(&parts);
        let parts = Arc::new(parts);
        if self.0.sessions.is_some() && !self.0.has_sweeper.swap(true, Ordering::Relaxed) {
            // A service may be created outside of a runtime, so the tasks start with the first request.
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
            tokio::spawn(poll_record_store(Arc::downgrade(&self.0)));
        }
        let begun = checked.and_then(|()| {
            let selection = self.0.select_server_unless_in_session(&parts)?;
            // A DELETE continues without its client, and restores the session itself.
            let restoring = if parts.method == Verb::DELETE { None } else { self.0.restore(&parts)? };
            Ok((selection, restoring))
        });
        let (selection, restoring, refusal) = match begun {
            Ok((selection, restoring)) => (selection, restoring, None),
            Err(refusal) => (None, None, Some(refusal)),
        };
        let (inner, taken, upload) = (Arc::clone(&self.0), Some((parts, work_guard)), Some(Upload::new(body)));
        ResponseFuture {
            inner,
            refusal,
            selection,
            selected: None,
            restoring,
            later: None,
            taken,
            upload,
            source: None,
        }
    }
}

pin_project! {
    /// The future of an [`HttpService`] response. Dropping it cancels the request.
    pub struct ResponseFuture<B> {
        inner: Arc<Inner>,
        // A refusal that was known from the head of the request.
        refusal: Option<Refusal>,
        // Selects the server, if `HttpOptions::select_server` is set.
        selection: Option<ServerSelection>,
        selected: Option<Server>,
        // Restores the session from the session store.
        restoring: Option<BoxFuture<Result<(), Refusal>>>,
        // Responds once the session record is saved.
        later: Option<BoxFuture<Result<Response<ResponseBody>, Refusal>>>,
        taken: Option<(Arc<Parts>, WorkGuard)>,
        #[pin]
        upload: Option<Upload<B>>,
        source: Option<(EventSource, SelectedEra)>,
    }
}

/// A running call of `HttpOptions::select_server`, which counts as a request in flight.
pub(crate) struct ServerSelection {
    server: BoxFuture<Result<Server, Refusal>>,
    _permit: Permit,
}

impl ServerSelection {
    /// Waits for the server, and checks it against the options.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, options: &HttpOptions) -> Poll<Result<Server, Refusal>> {
        let server = ready!(self.server.as_mut().poll(cx))?;
        StartError::check(&server, options).map_err(StartError::into_refusal)?;
        Poll::Ready(Ok(server))
    }
}

impl<B: Body> Future for ResponseFuture<B> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let served = ready!(self.as_mut().poll_response(cx));
        Poll::Ready(Ok(self.inner.finish(served)))
    }
}

impl<B: Body> ResponseFuture<B> {
    fn poll_response(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, Refusal>> {
        let mut this = self.project();
        if let Some(refusal) = this.refusal.take() {
            return Poll::Ready(Err(refusal));
        }
        if let Some(selection) = this.selection {
            *this.selected = Some(ready!(selection.poll(cx, &this.inner.options))?);
            *this.selection = None;
        }
        if let Some(restoring) = this.restoring {
            ready!(restoring.as_mut().poll(cx))?;
            *this.restoring = None;
        }
        if this.taken.as_ref().is_some_and(|(parts, _)| parts.method != Verb::POST)
            && let Some((parts, work_guard)) = this.taken.take()
        {
            // Bodies of other methods are not read.
            this.upload.set(None);
            match this.inner.start_without_body(&parts, work_guard)? {
                Started::Later(later) => *this.later = Some(later),
                Started::Events(source, served) => *this.source = Some((source, served)),
                Started::Response(response) => return Poll::Ready(Ok(response)),
            }
        }
        if let Some(upload) = this.upload.as_mut().as_pin_mut() {
            let body = ready!(upload.poll(cx, &this.inner.options, &this.inner.admission))?;
            this.upload.set(None);
            let server = this.selected.as_ref().unwrap_or(&this.inner.server);
            // The future was polled after it was ready.
            let Some((parts, work_guard)) = this.taken.take() else { return Poll::Pending };
            let session = this.inner.sessions.as_ref().and_then(|sessions| sessions.enter(&parts));
            let limits = match &session {
                Some(Ok(session)) => session.message_limits(),
                Some(Err(_)) | None => server.config().limits.message,
            };
            match this.inner.start(server, parts, parse(&body, &limits), work_guard, session) {
                Started::Events(source, served) => *this.source = Some((source, served)),
                Started::Later(later) => *this.later = Some(later),
                Started::Response(response) => return Poll::Ready(Ok(response)),
            }
        }
        if let Some(later) = this.later {
            return later.as_mut().poll(cx);
        }
        let mut events = Vec::new();
        let Some((source, _)) = this.source else { return Poll::Pending };
        let first = ready!(source.poll_first(cx, &mut events));
        let Some((source, served)) = this.source.take() else { return Poll::Pending };
        Poll::Ready(Ok(respond(first, events, source, served)))
    }
}

impl<B> std::fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl Inner {
    /// Checks the head of a request.
    fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        self.check_host_and_origin(parts)?;
        let has_sessions = self.sessions.is_some() && matches!(parts.method, Verb::GET | Verb::DELETE);
        if parts.method != Verb::POST && !has_sessions {
            return Err(Refusal::method_not_allowed(self.sessions.is_some()));
        }
        self.check_serving()?;
        if has_sessions {
            return if parts.method == Verb::DELETE { Ok(()) } else { check_accepts_events(parts) };
        }
        check_is_json(parts)?;
        if !media::accepts_both(&parts.headers) {
            let text = "`Accept` must allow both `application/json` and `text/event-stream`";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, text));
        }
        Ok(())
    }

    /// Turns a refusal into a response, and limits how many refusals are unsent.
    pub(crate) fn finish(&self, served: Result<Response<ResponseBody>, Refusal>) -> Response<ResponseBody> {
        let mut response = served.unwrap_or_else(|refusal| refusal.into_response(None, Revision::LATEST));
        self.admission.hold_refusal(&mut response, &self.options);
        response
    }

    /// Checks the `Host` and `Origin` headers.
    pub(crate) fn check_host_and_origin(&self, parts: &Parts) -> Result<(), Refusal> {
        let forbidden = |fault: crate::rules::hosts::Forbidden| {
            tracing::debug!(target: "mcp", %fault, "request refused: host or origin not allowed");
            Refusal::new(StatusCode::FORBIDDEN, fault.to_string())
        };
        self.options.allowed.check(&parts.uri, &parts.headers).map_err(forbidden)
    }

    /// Refuses new requests during shutdown.
    pub(crate) fn check_serving(&self) -> Result<(), Refusal> {
        if self.shutdown.stage() == Stage::Serving { Ok(()) } else { Err(self.ending()) }
    }

    /// Calls `HttpOptions::select_server`, unless the request belongs to a session.
    fn select_server_unless_in_session(&self, parts: &Arc<Parts>) -> Result<Option<ServerSelection>, Refusal> {
        if self.sessions.is_some() && Sessions::requires_session(parts) {
            // S4.64: the server was selected when the session started.
            return Ok(None);
        }
        self.select_server(parts)
    }

    /// Restores the session of a request from the session store, if there is one.
    ///
    /// Any client can send a session id, so lookups are limited. They are counted apart from requests, as requests in
    /// flight may wait for a message whose session has to be looked up first.
    fn restore(&self, parts: &Arc<Parts>) -> Result<Option<BoxFuture<Result<(), Refusal>>>, Refusal> {
        let admit = || self.admission.admit(PermitKind::Lookup, 1, parts.extensions.get(), &self.options);
        let Some(sessions) = &self.sessions else { return Ok(None) };
        sessions.restore(&self.server, self.options.select_server.clone(), parts, admit)
    }

    /// Calls `HttpOptions::select_server`, if it is set. The call counts as a request in flight.
    pub(crate) fn select_server(&self, parts: &Arc<Parts>) -> Result<Option<ServerSelection>, Refusal> {
        let Some(select_server) = &self.options.select_server else { return Ok(None) };
        let permit = self.admission.admit(PermitKind::Request, 1, parts.extensions.get(), &self.options)?;
        Ok(Some(ServerSelection { server: select_server(Arc::clone(parts)), _permit: permit }))
    }

    pub(crate) fn ending(&self) -> Refusal {
        self.busy("the server is shutting down: try again later")
    }

    /// Refuses a request with 503 and `Retry-After`.
    pub(crate) fn busy(&self, text: &'static str) -> Refusal {
        Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.options.retry_after)
    }

    /// Checks a message against its headers, and hands it to the kernel.
    fn start(
        &self,
        server: &Server,
        parts: Arc<Parts>,
        incoming: Result<Incoming<'_>, InvalidMessage>,
        work_guard: WorkGuard,
        session: Option<SessionLookup>,
    ) -> Started {
        // In a session the revision is the negotiated one, whichever revisions the selected server has.
        let revisions: &[Revision] = if session.is_some() { &Revision::ALL } else { &server.config().revisions };
        let supported = SupportedRevisions::new(revisions, self.options.sessions != SessionMode::Off)
            .sessions(self.sessions.is_some());
        let checked = select_era(&supported, &parts.headers, &incoming).and_then(|served| {
            match &incoming {
                Ok(Incoming::Single(Message::Request(request))) if served == SelectedEra::Modern => {
                    check_param_headers(&supported, &parts.headers, request, |tool| server.header_params(tool))?;
                }
                Ok(_) | Err(_) => {}
            }
            Ok(served)
        });
        let served = match checked {
            Ok(served) => served,
            Err(error) => {
                let refusal = Refusal::with_error(StatusCode::BAD_REQUEST, error);
                let id = incoming.as_ref().ok().and_then(request_id);
                return Started::Response(refusal.into_response(id, Revision::LATEST));
            }
        };
        let incoming = match incoming {
            Ok(incoming) => incoming,
            Err(invalid) => {
                tracing::debug!(target: "mcp", error = %invalid, "invalid message");
                let refusal = Refusal::with_error(StatusCode::BAD_REQUEST, invalid.to_error_object());
                return Started::Response(refusal.into_response(invalid.id(), served.revision()));
            }
        };
        // A request that began before the shutdown may still run while the service drains.
        if work_guard.stage() == Stage::Aborting {
            return Started::Response(self.ending().into_response(request_id(&incoming), served.revision()));
        }
        let principal = parts.extensions.get::<Principal>();
        let kind = if served == SelectedEra::Modern && is_listen(&incoming) {
            PermitKind::ListenStream
        } else {
            PermitKind::Request
        };
        let permit = match self.admission.admit(kind, requests(&incoming), principal, &self.options) {
            Ok(permit) => permit,
            Err(refusal) => return Started::Response(refusal.into_response(request_id(&incoming), served.revision())),
        };
        let mut connection = match (served, &self.sessions) {
            (SelectedEra::Modern, _) => Connection::modern_request(server),
            (SelectedEra::Legacy(revision), None) => Connection::legacy_request(server, revision),
            (SelectedEra::Legacy(_), Some(sessions)) => {
                let id = request_id(&incoming).cloned();
                let admit = || self.admission.admit(PermitKind::Lookup, 1, principal, &self.options);
                let (parts, held) = (Arc::clone(&parts), (work_guard, permit));
                let taken = sessions.post(server, session, parts, incoming, held, admit).map(Started::from);
                return taken.unwrap_or_else(|refusal| {
                    Started::Response(refusal.into_response(id.as_ref(), served.revision()))
                });
            }
        };
        let mut caller = Caller::default();
        caller.principal = principal.cloned();
        let expiry = parts.extensions.get::<ValidUntil>().copied();
        caller.extensions.insert_shared(parts);
        let Some(key) = connection.feed_parsed(now(), incoming, &caller) else { return Started::Response(accepted()) };
        let mut pacer = Pacer::new(work_guard, self.options.keep_alive_interval);
        if let Some(ValidUntil(at)) = expiry.filter(|_| kind == PermitKind::ListenStream) {
            pacer.expire_at(at);
        }
        Started::Events(EventSource::Alone(Exchange::new(connection, key, permit, pacer)), served)
    }

    /// Serves GET and DELETE, which only clients with sessions send.
    fn start_without_body(&self, parts: &Arc<Parts>, work_guard: WorkGuard) -> Result<Started, Refusal> {
        let Some(sessions) = &self.sessions else { return Err(Refusal::method_not_allowed(false)) };
        if parts.method == Verb::DELETE {
            return sessions.delete(parts, self.restore(parts)?, work_guard).map(Started::from);
        }
        let admit = || self.admission.admit(PermitKind::ListenStream, 1, parts.extensions.get(), &self.options);
        let (mut reader, mut first) = sessions.get(parts, work_guard, admit)?;
        if let Some(ValidUntil(at)) = parts.extensions.get() {
            reader.expire_at(*at);
        }
        if first.is_empty() {
            // Sends the response head at once.
            first.extend_from_slice(KEEP_ALIVE);
        }
        Ok(Started::Response(event_stream(ResponseBody::events(EventSource::Session(Box::new(reader)), first))))
    }
}

/// Ends expired sessions, as long as the service exists.
// S4.36
async fn sweep(inner: Weak<Inner>) {
    while let Some(next) = inner.upgrade().and_then(|inner| Some(inner.sessions.as_ref()?.next_sweep())) {
        tokio::time::sleep_until(next).await;
        if let Some(inner) = inner.upgrade()
            && let Some(sessions) = &inner.sessions
        {
            sessions.sweep();
        }
    }
}

/// Ends sessions that another process has deleted, as long as the service exists and has a session store.
async fn poll_record_store(inner: Weak<Inner>) {
    while let Some(next) = inner.upgrade().and_then(|inner| inner.sessions.as_ref()?.next_record_check()) {
        tokio::time::sleep_until(next).await;
        let sessions = inner.upgrade().and_then(|inner| inner.sessions.clone());
        if let Some(sessions) = sessions {
            sessions.end_deleted_elsewhere().await;
        }
    }
}

/// Checks that the client accepts an event stream.
pub(crate) fn check_accepts_events(parts: &Parts) -> Result<(), Refusal> {
    if media::accepts(&parts.headers, media::EVENT_STREAM) {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "`Accept` must allow `text/event-stream`"))
}

/// Checks that the body is declared as JSON.
pub(crate) fn check_is_json(parts: &Parts) -> Result<(), Refusal> {
    if media::is_json(&parts.headers) {
        return Ok(());
    }
    let text = "`Content-Type` must be `application/json`, once and without `Content-Encoding`";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
}

/// How a request was started.
enum Started {
    Events(EventSource, SelectedEra),
    Later(BoxFuture<Result<Response<ResponseBody>, Refusal>>),
    Response(Response<ResponseBody>),
}

impl From<Taken> for Started {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Stream(reader, revision) => {
                Self::Events(EventSource::Session(Box::new(reader)), SelectedEra::Legacy(revision))
            }
            Taken::Response(response) => Self::Response(response),
            Taken::Later(later) => Self::Later(later),
        }
    }
}

fn is_listen(incoming: &Incoming<'_>) -> bool {
    matches!(incoming, Incoming::Single(Message::Request(request)) if request.method == Method::SUBSCRIPTIONS_LISTEN)
}

/// Counts the requests in a message or batch. Notifications and responses need no permit, as requests in flight may wait
/// for them.
pub(crate) fn requests(incoming: &Incoming<'_>) -> usize {
    match incoming {
        Incoming::Single(message) => usize::from(matches!(message, Message::Request(_))),
        Incoming::Batch(messages) => {
            messages.iter().filter(|message| matches!(message, Ok(Message::Request(_)))).count()
        }
    }
}

/// Builds the HTTP response from what happened first. A message before the response makes it an event stream, and so does
/// a keep-alive interval without one; until then the status is open.
// H-29
fn respond(
    first: ResponseStart,
    events: Vec<u8>,
    mut source: EventSource,
    served: SelectedEra,
) -> Response<ResponseBody> {
    match first {
        ResponseStart::Message(answer) => {
            let status = match source.is_aborted() {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => status_of(served.era(), answer.failure),
            };
            json(status, answer.message, source.take_permit())
        }
        ResponseStart::Refused(refusal) => refusal.into_response(None, served.revision()),
        ResponseStart::Stream(StreamPoll::End) => accepted(),
        ResponseStart::Stream(StreamPoll::Events) if source.is_over() => {
            event_stream(ResponseBody::full(events, source.take_permit()))
        }
        ResponseStart::Stream(StreamPoll::Events) => event_stream(ResponseBody::events(source, events)),
        ResponseStart::Stream(StreamPoll::Idle) => event_stream(ResponseBody::events(source, KEEP_ALIVE.to_vec())),
    }
}

/// Responds with one message, which holds the permit of its request until it is sent.
pub(crate) fn json(status: StatusCode, message: EncodedMessage, permit: Option<Permit>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(message.into_bytes(), permit));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media::JSON));
    response
}

/// The response to notifications and responses.
// H-11
pub(crate) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(crate) fn event_stream(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
