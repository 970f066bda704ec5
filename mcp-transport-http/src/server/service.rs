//! The tower service for Streamable HTTP.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, StatusCode};
use http_body::Body;
use mcp_server::{BoxFuture, Connection, Network, Server};
use mcp_session::SessionMetrics;
use mcp_types::jsonrpc::{EncodedMessage, Incoming, Message, parse};
use mcp_types::{Era, Method, Revision};
use tower_service::Service;

use super::admission::{Admission, Permit, PermitKind};
use super::body::{EventSource, ResponseBody};
use super::exchange::Exchange;
use super::head::RequestHead;
use super::legacy_sse::{LegacySseError, LegacySseService};
use super::options::{HttpOptions, SessionMode};
use super::pacer::Pacer;
use super::refusal::Refusal;
use super::response_future::{ResponseFuture, ResponseStage};
use super::shutdown::{Drained, Shutdown, Stage, WorkGuard};
use super::start_error::StartError;
use super::stateful::Sessions;
use crate::clock::now;
use crate::event_stream::encode::KEEP_ALIVE;
use crate::rules::claims::{HeaderClaims, param_claims};
use crate::rules::header_names::{EVENT_STREAM, JSON};
use crate::rules::media;
use crate::rules::request_headers::RequestHeaders;
use crate::rules::revision::{SupportedRevisions, request_id, select_revision};

/// A [tower] service that serves a [`Server`] over Streamable HTTP, for [axum], hyper and other tower-based servers.
///
/// Clones share limits, sessions and shutdown. The service ignores the path: mount it at any route.
///
/// Handlers get the HTTP request with `ctx.extension::<http::request::Parts>()`, including the extensions that middleware
/// inserted. The service itself reads a [`Principal`](mcp_server::Principal) (the authenticated user) and a
/// [`ValidUntil`] (when listen streams have to end), or an `Arc<AuthInfo>`, from which both follow
/// ([`AuthInfo`](mcp_server::AuthInfo)).
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
    pub(super) sessions: Option<Arc<Sessions>>,
    /// Whether the tasks that end expired and deleted sessions were spawned.
    has_sweeper: AtomicBool,
}

/// The outcome of `HttpOptions::select_server`, if it was called.
pub(crate) type SelectedServer = Result<Option<Server>, Refusal>;

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
        StartError::check(&server, options.sessions)?;
        let (admission, shutdown) = (Arc::default(), Arc::default());
        let has_sessions = options.sessions == SessionMode::Stateful;
        let sessions = if has_sessions { Some(Arc::new(Sessions::new(&options)?)) } else { None };
        let has_sweeper = AtomicBool::new(false);
        let inner = Arc::new(Inner { server, options, admission, shutdown, sessions, has_sweeper });
        if let (Some(observer), Some(sessions)) = (inner.server.observer(), &inner.sessions) {
            sessions.watch(&**observer);
        }
        Ok(Self(inner))
    }

    /// Returns the session metrics, or `None` if sessions are not enabled.
    #[must_use]
    pub fn session_metrics(&self) -> Option<SessionMetrics> {
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
        self.respond(parts, body)
    }
}

impl HttpService {
    pub(crate) fn respond<B: Body>(&self, parts: Parts, body: B) -> ResponseFuture<B> {
        // Counted before the stage is checked, so that a drain that begins in between waits for it.
        let work_guard = WorkGuard::new(&self.0.shutdown);
        if self.0.sessions.is_some() && !self.0.has_sweeper.swap(true, Ordering::Relaxed) {
            // A service may be created outside of a runtime, so the tasks start with the first request.
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
            tokio::spawn(poll_record_store(Arc::downgrade(&self.0)));
        }
        ResponseFuture::new(Arc::clone(&self.0), parts, body, work_guard)
    }
}

impl Inner {
    pub(crate) fn has_sessions(&self) -> bool {
        self.sessions.is_some()
    }

    /// Checks the head of a request.
    pub(crate) fn check(&self, parts: &Parts, headers: &RequestHeaders<'_>) -> Result<(), Refusal> {
        self.check_host_and_origin(parts, headers)?;
        let needs_sessions = matches!(parts.method, Verb::GET | Verb::DELETE);
        if parts.method != Verb::POST && !(needs_sessions && self.has_sessions()) {
            return Err(Refusal::method_not_allowed(self.has_sessions()));
        }
        self.check_serving()?;
        match parts.method {
            Verb::DELETE => Ok(()),
            Verb::GET => check_accepts_events(headers),
            _ => {
                check_is_json(headers)?;
                check_accepts_both(headers)
            }
        }
    }

    /// Turns a refusal into a response, and limits how many refusals are unsent.
    pub(crate) fn finish(&self, served: Result<Response<ResponseBody>, Refusal>) -> Response<ResponseBody> {
        let mut response = served.unwrap_or_else(|refusal| {
            self.observe_refusal(refusal.status());
            refusal.into_response()
        });
        self.count_unsent(&mut response);
        response
    }

    /// Counts a response without a permit until it is sent.
    pub(crate) fn count_unsent(&self, response: &mut Response<ResponseBody>) {
        self.admission.count_refusal(response, &self.options);
    }

    /// Checks the `Host` and `Origin` headers.
    pub(crate) fn check_host_and_origin(&self, parts: &Parts, headers: &RequestHeaders<'_>) -> Result<(), Refusal> {
        let forbidden = |fault: crate::rules::hosts::Forbidden| {
            tracing::debug!(target: "mcp", %fault, "request refused: host or origin not allowed");
            Refusal::new(StatusCode::FORBIDDEN, fault.to_string())
        };
        self.options.allowed.check(&parts.uri, headers).map_err(forbidden)
    }

    /// Refuses new requests during shutdown.
    pub(crate) fn check_serving(&self) -> Result<(), Refusal> {
        if self.shutdown.stage() == Stage::Serving { Ok(()) } else { Err(self.ending()) }
    }

    /// Returns what a request has to wait for before it can start: `HttpOptions::select_server`, whose server this returns,
    /// and the session store.
    pub(crate) fn prepare(&self, head: &RequestHead) -> Result<Option<BoxFuture<SelectedServer>>, Refusal> {
        // S4.64: the server of a session was selected when it started.
        let is_in_session = self.has_sessions() && head.requires_session();
        let selection = if is_in_session { None } else { self.select_server(head)? };
        // A DELETE does not resume the session, and continues without its client.
        let restoring = if head.parts.method == Verb::DELETE { None } else { self.restore(head)? };
        let Some(restoring) = restoring else { return Ok(selection) };
        Ok(Some(Box::pin(async move {
            let selected = match selection {
                Some(selection) => selection.await?,
                None => None,
            };
            restoring.await?;
            Ok(selected)
        })))
    }

    /// Restores the session of a request from the session store, if there is one.
    ///
    /// Any client can send a session id, so lookups are limited. They are counted apart from requests, as requests in
    /// flight may wait for a message whose session has to be looked up first.
    fn restore(&self, head: &RequestHead) -> Result<Option<BoxFuture<Result<(), Refusal>>>, Refusal> {
        let Some(sessions) = &self.sessions else { return Ok(None) };
        let admit = || self.admit(PermitKind::Lookup, 1, head);
        sessions.restore(&self.server, self.options.select_server.clone(), head, admit)
    }

    /// Calls `HttpOptions::select_server`, if it is set. The call counts as a request in flight.
    pub(crate) fn select_server(&self, head: &RequestHead) -> Result<Option<BoxFuture<SelectedServer>>, Refusal> {
        let Some(select_server) = &self.options.select_server else { return Ok(None) };
        let permit = self.admit(PermitKind::Request, 1, head)?;
        let (server, sessions) = (select_server(Arc::clone(&head.parts)), self.options.sessions);
        Ok(Some(Box::pin(async move {
            let _permit = permit;
            let server = server.await?;
            StartError::check(&server, sessions).map_err(StartError::into_refusal)?;
            Ok(Some(server))
        })))
    }

    /// Acquires a permit for `count` requests.
    pub(crate) fn admit(&self, kind: PermitKind, count: usize, head: &RequestHead) -> Result<Permit, Refusal> {
        self.admission.admit(kind, count, head.principal.as_ref(), &self.options)
    }

    pub(crate) fn ending(&self) -> Refusal {
        Refusal::shutting_down(self.options.retry_after)
    }

    /// Refuses a request with 503 and `Retry-After`.
    pub(crate) fn busy(&self, text: &'static str) -> Refusal {
        Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.options.retry_after)
    }

    /// Starts a POST: parses its message, selects the era, and hands it to the kernel.
    pub(crate) fn start(
        &self,
        selected: Option<&Server>,
        head: RequestHead,
        body: &[u8],
        work_guard: WorkGuard,
    ) -> Result<ResponseStage, Refusal> {
        let server = selected.unwrap_or(&self.server);
        let session = self.sessions.as_ref().and_then(|sessions| sessions.enter(&head));
        let limits = match &session {
            Some(Ok(session)) => session.message_limits(),
            Some(Err(_)) | None => server.config().limits.message,
        };
        let incoming = parse(body, &limits);
        // In a session the revision is the negotiated one, whichever revisions the selected server has.
        let revisions: &[Revision] = if session.is_some() { &Revision::ALL } else { &server.config().revisions };
        let serves_legacy = self.options.sessions != SessionMode::Off;
        let supported = SupportedRevisions::new(revisions, serves_legacy, self.has_sessions());
        let revision = select_revision(&supported, &head.version, &incoming).map_err(|error| {
            let id = incoming.as_ref().ok().and_then(request_id).cloned();
            Refusal::with_error(StatusCode::BAD_REQUEST, error).of(id, Revision::LATEST)
        })?;
        let incoming = incoming.map_err(|invalid| Refusal::invalid_message(&invalid, revision))?;
        let id = request_id(&incoming);
        let refuse = |refusal: Refusal| refusal.of(id.cloned(), revision);
        // A request that began before the shutdown may still run while the service drains.
        if work_guard.stage() == Stage::Aborting {
            return Err(refuse(self.ending()));
        }
        let is_listen = revision.era() == Era::Modern && is_listen(&incoming);
        let kind = if is_listen { PermitKind::ListenStream } else { PermitKind::Request };
        let permit = self.admit(kind, requests(&incoming), &head).map_err(refuse)?;
        let mut connection = match (revision.era(), &self.sessions) {
            (Era::Modern, _) => Connection::modern_request(server).network(Network::Http),
            (Era::Legacy, None) => Connection::legacy_request(server, revision).network(Network::Http),
            (Era::Legacy, Some(sessions)) => {
                let id = id.cloned();
                let admit = |head: &RequestHead| self.admit(PermitKind::Lookup, 1, head);
                let started = sessions.post(server, session, head, incoming, (work_guard, permit), admit);
                return started.map_err(|refusal| refusal.of(id, revision));
            }
        };
        let mut pacer = Pacer::new(work_guard, self.options.keep_alive_interval);
        if is_listen && let Some(end) = head.stream_end() {
            pacer.expire(end);
        }
        let claims = HeaderClaims { headers: &head.parts.headers, version: &head.version, server };
        let mut caller = head.caller();
        if server.defers_header_params() {
            caller.extensions.insert(param_claims(Arc::clone(&head.parts)));
        }
        let now = now();
        let Some(key) = connection.feed_parsed(now, incoming, &caller, Some(&claims)) else {
            return Ok(ResponseStage::ready(accepted()));
        };
        let exchange = Exchange::new(connection, (key, now), permit, pacer, head.parts);
        Ok(ResponseStage::Running(EventSource::Alone(exchange), revision.era()))
    }

    /// Starts a GET or DELETE, which only clients with sessions send.
    pub(crate) fn start_without_body(
        &self,
        head: RequestHead,
        work_guard: WorkGuard,
    ) -> Result<ResponseStage, Refusal> {
        let Some(sessions) = &self.sessions else { return Err(Refusal::method_not_allowed(false)) };
        if head.parts.method == Verb::DELETE {
            return sessions.delete(head, work_guard, |head| self.admit(PermitKind::Lookup, 1, head));
        }
        let (mut reader, mut first) =
            sessions.get(&head, work_guard, || self.admit(PermitKind::ListenStream, 1, &head))?;
        if let Some(end) = head.stream_end() {
            reader.pacer.expire(end);
        }
        if first.is_empty() {
            // Sends the response head at once.
            first.extend_from_slice(KEEP_ALIVE);
        }
        let (source, observer) = (EventSource::Session(Box::new(reader)), self.server.observer());
        Ok(ResponseStage::ready(event_stream(ResponseBody::events(source, first, observer))))
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
pub(crate) fn check_accepts_events(headers: &RequestHeaders<'_>) -> Result<(), Refusal> {
    if media::accepts(headers.all, EVENT_STREAM) {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "`Accept` must allow `text/event-stream`"))
}

/// Checks that the client accepts JSON as well as an event stream.
fn check_accepts_both(headers: &RequestHeaders<'_>) -> Result<(), Refusal> {
    if media::accepts_both(headers) {
        return Ok(());
    }
    let text = "`Accept` must allow both `application/json` and `text/event-stream`";
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, text))
}

/// Checks that the body is declared as JSON.
pub(crate) fn check_is_json(headers: &RequestHeaders<'_>) -> Result<(), Refusal> {
    if media::is_json(headers) {
        return Ok(());
    }
    let text = "`Content-Type` must be `application/json`, once and without `Content-Encoding`";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
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

/// Responds with one message, which holds the permit of its request until it is sent.
pub(crate) fn json(status: StatusCode, message: EncodedMessage, permit: Option<Permit>) -> Response<ResponseBody> {
    json_with_headers(status, message, permit, HeaderMap::new())
}

/// As [`json`], with further headers.
pub(crate) fn json_with_headers(
    status: StatusCode,
    message: EncodedMessage,
    permit: Option<Permit>,
    mut headers: HeaderMap,
) -> Response<ResponseBody> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    let mut response = Response::new(ResponseBody::full(message.into_bytes(), permit));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
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
    event_stream_with_headers(body, HeaderMap::new())
}

/// As [`event_stream`], with further headers.
pub(crate) fn event_stream_with_headers(body: ResponseBody, mut headers: HeaderMap) -> Response<ResponseBody> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Tells nginx not to buffer the response.
    headers.insert(const { HeaderName::from_static("x-accel-buffering") }, HeaderValue::from_static("no"));
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}
