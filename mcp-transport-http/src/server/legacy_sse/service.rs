//! The service: a GET opens a stream, POSTs write to it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode};
use http_body::Body;
use mcp_server::{Caller, Connection, Principal, SecondHandshake, Server};
use mcp_session::SessionId;
use mcp_types::jsonrpc::{Incoming, Message, parse};
use mcp_types::meta::key;
use mcp_types::{Era, ErrorObject, ProtocolVersion, RequestId, Revision};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::session::{FeedError, SseSession};
use super::sessions::{SseSessions, unknown_session};
use super::stream::SseStream;
use crate::rules::era::{is_modern, request_id};
use crate::server::admission::{Permit, PermitKind};
use crate::server::body::{EventSource, ResponseBody};
use crate::server::options::SessionMode;
use crate::server::refusal::Refusal;
use crate::server::service::{
    HttpService, Inner as Http, ServerSelection, ValidUntil, accepted, check_accepts_events, check_is_json,
    event_stream, requests,
};
use crate::server::shutdown::{Stage, WorkGuard};
use crate::server::upload::Upload;

/// The transport of 2024-11-05, for clients that know no other: a GET opens a stream of events, whose first event names
/// the address to which the client POSTs all it has to say; whatever the server says comes on the stream.
///
/// It is made by [`HttpService::legacy_sse`], and off unless somebody does that. It shares the limits of that service, its
/// settings, and its end. Clones are the same service.
///
/// ```
/// use mcp_server::Server;
/// use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
///
/// let server = Server::builder("hello", "1.0").build()?;
/// let service = HttpService::with_options(server, HttpOptions::default().sessions(SessionMode::Stateful));
/// let sse = service.legacy_sse()?; // for `HttpServer::legacy_sse`, or the routes `/sse` and `/message` of an application
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it costs
///
/// A POST is answered before its request is: nothing about HTTP holds a client back. So this does:
///
/// | what | limit | then |
/// |---|---|---|
/// | open streams | [`HttpOptions::max_listen_streams`](crate::HttpOptions::max_listen_streams), also per principal | 503, 429 |
/// | requests at work, until their answer is there | [`HttpOptions::max_in_flight`](crate::HttpOptions::max_in_flight), also per principal | 503, 429 |
/// | requests at work for one stream | the server's `in_flight` and `waiting` | an error on the stream |
/// | the bytes of these, unless it is one | the server's `outbox_bytes` | 503 |
/// | what waits for a client that does not read | the server's `outbox_messages` and `outbox_bytes` | 503 |
///
/// The stream is the session: when it ends, handlers are cancelled, and nobody can come back for what was missed. At the
/// end of the service, and of a [`ValidUntil`] that came with the GET, nothing more is taken and handlers may finish.
///
/// # Who may write
///
/// The name of a session is 256 random bits in the query of an address, where logs and proxies see it. So each POST has to
/// come from the [`Principal`] that opened the stream; without principals, whoever has read the address can write to it.
///
/// # Which requests
///
/// Those of legacy revisions, after a handshake. A modern request is refused with 400 and the versions that a handshake
/// can be for: it needs no session, and what its headers promise to those in between is checked at the other endpoint.
#[derive(Clone)]
pub struct LegacySseService(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    http: Arc<Http>,
    sessions: Arc<SseSessions>,
    message_path: Option<PathAndQuery>,
}

/// Why there can be no [`LegacySseService`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegacySseError {
    /// Legacy clients have no sessions here, and a stream is one.
    NoSessions(SessionMode),
    /// The server has no legacy revision.
    NoLegacyRevision,
}

impl std::fmt::Display for LegacySseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSessions(mode) => write!(
                f,
                "HTTP+SSE has sessions, and the service is set to `SessionMode::{mode:?}`: set it up with \
                 `HttpOptions::sessions(SessionMode::Stateful)`, or leave HTTP+SSE out"
            ),
            Self::NoLegacyRevision => f.write_str(
                "HTTP+SSE (`HttpService::legacy_sse`) is for legacy sessions, and the server has no legacy revision: add \
                 one with `ServerBuilder::revisions`, or leave HTTP+SSE out",
            ),
        }
    }
}

impl std::error::Error for LegacySseError {}

/// Where messages go, if the stream is at `/sse`.
const MESSAGE: &str = "message";

impl LegacySseService {
    pub(crate) fn new(service: &HttpService) -> Result<Self, LegacySseError> {
        let http = Arc::clone(&service.0);
        if http.options.sessions != SessionMode::Stateful {
            return Err(LegacySseError::NoSessions(http.options.sessions));
        }
        // An application that chooses the server for each stream may choose another one.
        let has_legacy = legacy(&http.server).next().is_some();
        if !has_legacy && http.options.select_server.is_none() {
            return Err(LegacySseError::NoLegacyRevision);
        }
        Ok(Self(Arc::new(Inner { http, sessions: Arc::default(), message_path: None })))
    }

    /// Where clients send their messages. Unless told that is `message` beside the path of the stream, as the service
    /// sees it: `/sse` has `/message`. Where something in front of the service takes a part of the path away, the whole
    /// path has to be told.
    #[must_use]
    pub fn message_path(self, path: PathAndQuery) -> Self {
        Self(Arc::new(Inner { message_path: Some(path), ..Inner::clone(&self.0) }))
    }

    /// How many streams are open.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.0.sessions.count()
    }

    /// The service that shares everything with this one.
    #[cfg(feature = "serve")]
    pub(crate) fn http(&self) -> HttpService {
        HttpService(Arc::clone(&self.0.http))
    }

    /// Where messages go if the stream is at a path.
    pub(crate) fn message_path_beside(&self, path: &str) -> String {
        if let Some(path) = &self.0.message_path {
            return path.path().to_owned();
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Two slashes would name another host, and for some clients a backslash is one of them.
        let folder = folder.trim_start_matches(['/', '\\']);
        let between = if folder.is_empty() { "" } else { "/" };
        format!("/{folder}{between}{MESSAGE}")
    }
}

impl std::fmt::Debug for LegacySseService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LegacySseService")
            .field("server", &self.0.http.server)
            .field("message_path", &self.0.message_path)
            .field("streams", &self.streams())
            .finish_non_exhaustive()
    }
}

impl<B: Body> Service<Request<B>> for LegacySseService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = LegacySseFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> LegacySseFuture<B> {
        let (parts, body) = request.into_parts();
        // The end waits for what is counted before it is looked for.
        let work_guard = WorkGuard::new(&self.0.http.shutdown);
        let (step, upload) = match self.begin(parts, work_guard) {
            Ok(Step::Write(session, parts, work_guard)) => {
                (Some(Step::Write(session, parts, work_guard)), Some(Upload::new(body)))
            }
            Ok(step) => (Some(step), None),
            Err(refusal) => (Some(Step::Refuse(refusal)), None),
        };
        LegacySseFuture { service: self.clone(), step, upload }
    }
}

impl LegacySseService {
    /// What can be said without reading a body.
    fn begin(&self, parts: Parts, work_guard: WorkGuard) -> Result<Step, Refusal> {
        let Inner { http, sessions, .. } = &*self.0;
        http.check_host_and_origin(&parts)?;
        match parts.method {
            Verb::GET => {
                http.check_serving()?;
                check_accepts_events(&parts)?;
                let permit =
                    http.admission.admit(PermitKind::ListenStream, 1, parts.extensions.get(), &http.options)?;
                let parts = Arc::new(parts);
                let selection = http.select_server(&parts)?;
                Ok(Step::Open(Opening { selection, parts, work_guard, permit }))
            }
            Verb::POST => {
                http.check_serving()?;
                check_is_json(&parts)?;
                let session =
                    sessions.find(parts.uri.query(), parts.extensions.get(), &http.options.session_options)?;
                Ok(Step::Write(session, Arc::new(parts), work_guard))
            }
            _ => Err(method_not_allowed("GET, POST")),
        }
    }

    /// Opens a stream.
    fn open(&self, opening: Opening, selected: Option<&Server>) -> Result<Response<ResponseBody>, Refusal> {
        let Inner { http, sessions, .. } = &*self.0;
        let Opening { parts, work_guard, permit, .. } = opening;
        if work_guard.stage() == Stage::Aborting {
            return Err(http.ending());
        }
        let no_randomness = |error: mcp_session::NoRandomness| {
            tracing::error!(target: "mcp", %error, "there can be no session");
            http.busy("there can be no sessions now: try again later")
        };
        let id = SessionId::random().map_err(no_randomness)?;
        let server = selected.unwrap_or(&http.server);
        if legacy(server).next().is_none() {
            let error = LegacySseError::NoLegacyRevision;
            tracing::error!(target: "mcp", %error, "`HttpOptions::select_server` chose a server that cannot be served");
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
        }
        let connection = Connection::long_lived(server).second_handshake(SecondHandshake::Repeat);
        let session = Arc::new(SseSession::new(id, parts.extensions.get().cloned(), &connection));
        let mut stream =
            SseStream::new((session, connection), sessions, http.options.keep_alive_interval, work_guard, permit);
        if let Some(ValidUntil(at)) = parts.extensions.get() {
            stream.expire_at(*at);
        }
        let path = self.message_path_beside(parts.uri.path());
        let first = format!("event: endpoint\ndata: {path}?sessionId={id}\n\n");
        Ok(event_stream(ResponseBody::events(EventSource::Sse(Box::new(stream)), first.into_bytes())))
    }

    /// Hands a message to the stream on which it is answered.
    fn write(&self, session: &SseSession, parts: Arc<Parts>, body: &Bytes) -> Response<ResponseBody> {
        let server = session.server();
        let refuse = |refusal: Refusal, id: Option<&RequestId>| {
            refusal.into_response(id, legacy(server).max().unwrap_or(Revision::LATEST))
        };
        let incoming = match parse(body, &server.config().limits.message) {
            Ok(incoming) => incoming,
            Err(invalid) => {
                tracing::debug!(target: "mcp", what = %invalid, "the client broke a rule");
                let refusal = Refusal::with_error(StatusCode::BAD_REQUEST, invalid.to_error_object());
                return refuse(refusal, invalid.id());
            }
        };
        let id = request_id(&incoming).cloned();
        match self.take(session, parts, incoming, body.len()) {
            Ok(()) => accepted(),
            Err(refusal) => refuse(refusal, id.as_ref()),
        }
    }

    fn take(
        &self,
        session: &SseSession,
        parts: Arc<Parts>,
        incoming: Incoming<'_>,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let Inner { http, .. } = &*self.0;
        if let Some(error) = modern(session.server(), &incoming) {
            return Err(Refusal::with_error(StatusCode::BAD_REQUEST, error));
        }
        let mut caller = Caller::default();
        caller.principal = parts.extensions.get::<Principal>().cloned();
        // What is no request takes no room: it may be what makes some.
        let permit =
            http.admission.admit(PermitKind::Request, requests(&incoming), caller.principal.as_ref(), &http.options)?;
        caller.extensions.insert_shared(parts);
        session.feed(incoming, bytes, &caller, permit).map_err(|error| match error {
            FeedError::Ended => unknown_session(),
            FeedError::Full => {
                http.busy("as much waits on your stream as the server can keep: read it, and try again later")
            }
        })
    }
}

/// A verb that is not for this address.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Refusal {
    let text = "the stream is for GET, and its messages are for POST";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text).header(ALLOW, HeaderValue::from_static(allowed))
}

fn legacy(server: &Server) -> impl Iterator<Item = Revision> {
    server.config().revisions.iter().copied().filter(|revision| revision.era() == Era::Legacy)
}

/// Refuses a modern request with what a handshake can be for.
fn modern(server: &Server, incoming: &Incoming<'_>) -> Option<ErrorObject> {
    let Incoming::Single(Message::Request(request)) = incoming else { return None };
    let version = request.params.as_ref().filter(|_| is_modern(request))?.meta(key::PROTOCOL_VERSION)?;
    let Ok(version) = serde_json::from_str::<String>(version.get()) else {
        return Some(ErrorObject::invalid_params(format!("`_meta`: `{}` is no text", key::PROTOCOL_VERSION)));
    };
    let mut offered: Vec<Revision> = legacy(server).collect();
    offered.sort_unstable_by(|a, b| b.cmp(a));
    let offered = offered.into_iter().map(ProtocolVersion::from).collect();
    Some(ErrorObject::unsupported_protocol_version(ProtocolVersion::from(version), offered))
}

pin_project! {
    /// The future of a response of a [`LegacySseService`].
    pub struct LegacySseFuture<B> {
        service: LegacySseService,
        step: Option<Step>,
        #[pin]
        upload: Option<Upload<B>>,
    }
}

/// What is to be done.
enum Step {
    Refuse(Refusal),
    Open(Opening),
    Write(Arc<SseSession>, Arc<Parts>, WorkGuard),
}

/// A stream that is not there yet.
struct Opening {
    /// Finds the server, if that is left to the application.
    selection: Option<ServerSelection>,
    parts: Arc<Parts>,
    work_guard: WorkGuard,
    permit: Permit,
}

impl<B: Body> LegacySseFuture<B> {
    fn poll_response(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, Refusal>> {
        let mut this = self.project();
        let selected = match this.step {
            Some(Step::Open(Opening { selection: Some(selection), .. })) => {
                Some(ready!(selection.poll(cx, &this.service.0.http.options))?)
            }
            Some(_) | None => None,
        };
        let body = match this.upload.as_mut().as_pin_mut() {
            Some(upload) => {
                let http = &this.service.0.http;
                ready!(upload.poll(cx, &http.options, &http.admission))?
            }
            None => Bytes::new(),
        };
        this.upload.set(None);
        // Whoever polls a future that is done waits for nothing.
        let Some(step) = this.step.take() else { return Poll::Pending };
        Poll::Ready(match step {
            Step::Refuse(refusal) => Err(refusal),
            Step::Open(opening) => this.service.open(opening, selected.as_ref()),
            Step::Write(session, parts, _at_work) => Ok(this.service.write(&session, parts, &body)),
        })
    }
}

impl<B: Body> Future for LegacySseFuture<B> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let served = ready!(self.as_mut().poll_response(cx));
        Poll::Ready(Ok(self.service.0.http.finish(served)))
    }
}

impl<B> std::fmt::Debug for LegacySseFuture<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LegacySseFuture").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpOptions;

    /// Messages go beside the stream, never to another host, or to where they are told to go.
    // covers: S4.111
    #[test]
    fn messages_go_beside_the_stream() {
        let server = Server::builder("demo", "1.0").build().unwrap();
        let options = HttpOptions::default().sessions(SessionMode::Stateful);
        let sse = HttpService::with_options(server, options).legacy_sse().unwrap();
        for (stream, messages) in [
            ("/sse", "/message"),
            ("/", "/message"),
            ("", "/message"),
            ("/old/sse", "/old/message"),
            ("/old/sse/", "/old/sse/message"),
            ("//evil.example.com/sse", "/evil.example.com/message"),
            ("/\\evil.example.com/sse", "/evil.example.com/message"),
            ("//sse", "/message"),
        ] {
            assert_eq!(sse.message_path_beside(stream), messages, "{stream}");
        }
        let told = sse.message_path(PathAndQuery::from_static("/api/message?more=1"));
        assert_eq!(told.message_path_beside("/sse"), "/api/message");
    }
}
