//! The tower service for HTTP+SSE: GET opens a stream, POST sends a message.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::ALLOW;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode};
use http_body::Body;
use mcp_kernel::server::is_modern;
use mcp_server::{BoxFuture, Connection, Network, SecondHandshake, Server};
use mcp_session::SessionId;
use mcp_types::jsonrpc::{Incoming, Message, parse};
use mcp_types::meta::key;
use mcp_types::{Era, ErrorObject, ProtocolVersion, Revision};
use tower_service::Service;

use super::session::{FeedError, SseSession};
use super::sessions::{SseSessions, unknown_session};
use super::stream::SseStream;
use crate::event_stream::encode::write_named_event;
use crate::rules::revision::request_id;
use crate::server::admission::{Permit, PermitKind};
use crate::server::body::{EventSource, ResponseBody};
use crate::server::head::RequestHead;
use crate::server::options::SessionMode;
use crate::server::pacer::Pacer;
use crate::server::refusal::Refusal;
use crate::server::service::{
    HttpService, Inner as Http, SelectedServer, accepted, check_accepts_events, check_is_json, event_stream, requests,
};
use crate::server::shutdown::{Stage, WorkGuard};
use crate::server::upload::Upload;

/// A tower service for HTTP+SSE, the transport of 2024-11-05, for clients that support no other.
///
/// GET opens an event stream, whose first event names the endpoint to which the client POSTs its messages. All messages of
/// the server are sent on the stream.
///
/// Create it with [`HttpService::legacy_sse`]. It shares the options, limits and shutdown of that service, and so do its
/// clones.
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
/// # Limits
///
/// A POST is accepted before its request finishes, so HTTP itself does not slow clients down. These limits do:
///
/// | resource | limit | beyond it |
/// |---|---|---|
/// | open streams | [`HttpOptions::max_listen_streams`](crate::HttpOptions::max_listen_streams), also per principal | 503, 429 |
/// | requests in flight | [`HttpOptions::max_in_flight`](crate::HttpOptions::max_in_flight), also per principal | 503, 429 |
/// | requests of one stream | the server's `in_flight` and `waiting` | an error on the stream |
/// | bytes of these requests, if there are several | the server's `max_outbox_bytes` | 503 |
/// | messages queued for a client that does not read | the server's `max_outbox_messages` and `max_outbox_bytes` | 503 |
/// | messages for a stream whose handler blocks its thread | the same | 503 |
///
/// The stream is the session: when it closes, handlers are cancelled, and it cannot be resumed. During a shutdown, and
/// after a [`ValidUntil`](crate::ValidUntil) of the GET, new messages are refused and handlers may finish.
///
/// # Security
///
/// The session id is 256 random bits in the query of a URL, where logs and proxies can see it. Each POST must therefore
/// have the [`Principal`](mcp_server::Principal) that opened the stream. Without principals, anyone who knows the URL can
/// send messages.
///
/// # Supported requests
///
/// Requests of legacy revisions, after the response to `initialize`: while `ServerBuilder::on_initialize` decides about it,
/// other messages get 409. A modern request gets 400 and the supported legacy versions; send it
/// to the Streamable HTTP endpoint, which checks its headers.
#[derive(Clone)]
pub struct LegacySseService(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    http: Arc<Http>,
    sessions: Arc<SseSessions>,
    message_path: Option<PathAndQuery>,
}

/// The error of creating a [`LegacySseService`].
///
/// [`Debug`](std::fmt::Debug) formats the message, too, because that is what a `main` that returns the error prints.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacySseError {
    /// Sessions are not enabled, and an HTTP+SSE stream is a session.
    #[error(
        "HTTP+SSE needs sessions, and `HttpOptions::sessions` is `SessionMode::{0:?}`: set it to \
         `SessionMode::Stateful`, or do not enable HTTP+SSE"
    )]
    NoSessions(SessionMode),
    /// The server has no legacy revision.
    #[error(
        "HTTP+SSE (`HttpService::legacy_sse`) is for legacy clients, and the server has no legacy revision: add one \
         with `ServerBuilder::revisions`, or do not enable HTTP+SSE"
    )]
    NoLegacyRevision,
}

impl std::fmt::Debug for LegacySseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The last segment of the default message path.
const MESSAGE: &str = "message";

impl LegacySseService {
    pub(crate) fn new(service: &HttpService) -> Result<Self, LegacySseError> {
        let http = Arc::clone(&service.0);
        if http.options.sessions != SessionMode::Stateful {
            return Err(LegacySseError::NoSessions(http.options.sessions));
        }
        // `HttpOptions::select_server` may return a server with a legacy revision.
        let has_legacy = legacy(&http.server).next().is_some();
        if !has_legacy && http.options.select_server.is_none() {
            return Err(LegacySseError::NoLegacyRevision);
        }
        Ok(Self(Arc::new(Inner { http, sessions: Arc::default(), message_path: None })))
    }

    /// Sets the path to which clients POST their messages. Defaults to `message` next to the path of the stream: `/sse`
    /// has `/message`. Set the full path if a router strips a prefix before the service sees it.
    #[must_use]
    pub fn message_path(self, path: PathAndQuery) -> Self {
        Self(Arc::new(Inner { message_path: Some(path), ..Inner::clone(&self.0) }))
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.0.sessions.count()
    }

    /// Returns the service that this one was created from.
    #[cfg(feature = "serve")]
    pub(crate) fn http(&self) -> HttpService {
        HttpService(Arc::clone(&self.0.http))
    }

    /// Returns the message path for a stream at `path`.
    pub(crate) fn message_path_beside(&self, path: &str) -> String {
        if let Some(path) = &self.0.message_path {
            return path.path().to_owned();
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // `//host` would be another host, and some clients treat a backslash as a slash.
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

impl<B: Body + Send + 'static> Service<Request<B>> for LegacySseService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<ResponseBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        // Counted before the stage is checked, so that a drain that begins in between waits for it.
        let work_guard = WorkGuard::new(&self.0.http.shutdown);
        let (service, step) = (self.clone(), self.check_head(parts, work_guard));
        Box::pin(async move {
            let served = match step {
                Ok(step) => service.serve(step, body).await,
                Err(refusal) => Err(refusal),
            };
            Ok(service.0.http.finish(served))
        })
    }
}

impl LegacySseService {
    /// Checks the head of a request.
    fn check_head(&self, parts: Parts, work_guard: WorkGuard) -> Result<Step, Refusal> {
        let Inner { http, sessions, .. } = &*self.0;
        let head = RequestHead::new(parts, false, |parts, headers| {
            http.check_host_and_origin(parts, headers)?;
            match parts.method {
                Verb::GET => http.check_serving().and_then(|()| check_accepts_events(headers)),
                Verb::POST => http.check_serving().and_then(|()| check_is_json(headers)),
                _ => Err(method_not_allowed("GET, POST")),
            }
        })?;
        if head.parts.method == Verb::GET {
            let permit = http.admit(PermitKind::ListenStream, 1, &head)?;
            let selection = http.select_server(&head)?;
            return Ok(Step::Open { selection, head, work_guard, permit });
        }
        let (query, principal) = (head.parts.uri.query(), head.principal.as_ref());
        let session = sessions.find(query, principal, &http.options.session_options)?;
        Ok(Step::Write(session, head, work_guard))
    }

    async fn serve(&self, step: Step, body: impl Body) -> Result<Response<ResponseBody>, Refusal> {
        match step {
            Step::Open { selection, head, work_guard, permit } => {
                drop(body);
                let selected = match selection {
                    Some(selection) => work_guard.or_abort(selection).await.ok_or_else(|| self.0.http.ending())??,
                    None => None,
                };
                self.open(selected.as_ref(), &head, work_guard, permit)
            }
            Step::Write(session, head, _work_guard) => {
                let body = {
                    let (http, mut upload) = (&self.0.http, pin!(Upload::new(body)));
                    poll_fn(|cx| upload.as_mut().poll(cx, &http.options, &http.admission)).await?
                };
                self.write(&session, &head, &body)
            }
        }
    }

    /// Opens a stream.
    fn open(
        &self,
        selected: Option<&Server>,
        head: &RequestHead,
        work_guard: WorkGuard,
        permit: Permit,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let Inner { http, sessions, .. } = &*self.0;
        if work_guard.stage() == Stage::Aborting {
            return Err(http.ending());
        }
        let no_randomness = |error: mcp_session::NoRandomness| {
            tracing::error!(target: "mcp", %error, "cannot create a session id");
            http.busy("no session can be created: try again later")
        };
        let id = SessionId::random().map_err(no_randomness)?;
        let server = selected.unwrap_or(&http.server);
        if legacy(server).next().is_none() {
            let error = LegacySseError::NoLegacyRevision;
            tracing::error!(target: "mcp", %error, "`HttpOptions::select_server` returned a server that cannot be served");
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
        }
        let connection = Connection::long_lived(server)
            .second_handshake(SecondHandshake::Repeat)
            .session_id(Arc::new(id))
            .network(Network::Http);
        let session = Arc::new(SseSession::new(id, head.principal.clone(), &connection));
        let mut pacer = Pacer::new(work_guard, http.options.keep_alive_interval);
        if let Some(end) = head.stream_end() {
            pacer.expire(end);
        }
        let stream = SseStream::new((session, connection), sessions, pacer, permit);
        let path = self.message_path_beside(head.parts.uri.path());
        let mut first = Vec::new();
        write_named_event(&mut first, "endpoint", format!("{path}?sessionId={id}").as_bytes());
        let source = EventSource::Sse(Box::new(stream));
        Ok(event_stream(ResponseBody::events(source, first, server.observer())))
    }

    /// Passes a message to the stream of its session.
    fn write(&self, session: &SseSession, head: &RequestHead, body: &[u8]) -> Result<Response<ResponseBody>, Refusal> {
        let server = session.server();
        let revision = legacy(server).max().unwrap_or(Revision::LATEST);
        let incoming = parse(body, &server.config().limits.message)
            .map_err(|invalid| Refusal::invalid_message(&invalid, revision))?;
        let id = request_id(&incoming).cloned();
        self.feed(session, head, incoming, body.len()).map_err(|refusal| refusal.of(id, revision))?;
        Ok(accepted())
    }

    fn feed(
        &self,
        session: &SseSession,
        head: &RequestHead,
        incoming: Incoming<'_>,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let http = &self.0.http;
        if let Some(error) = modern(session.server(), &incoming) {
            return Err(Refusal::with_error(StatusCode::BAD_REQUEST, error));
        }
        // Notifications and responses need no permit, as requests in flight may wait for them.
        let permit = http.admit(PermitKind::Request, requests(&incoming), head)?;
        session.feed(incoming, bytes, head.caller(), permit).map_err(|error| match error {
            FeedError::Ended => unknown_session(),
            FeedError::TooEarly => {
                let text = "`initialize` has no response yet: wait for it on the event stream";
                Refusal::new(StatusCode::CONFLICT, text)
            }
            FeedError::Unread => http.busy("too much is queued on your stream: read it, and try again later"),
            FeedError::TooLarge => http.busy(
                "the requests in flight on your stream are too large together: wait for their responses, and try again",
            ),
            FeedError::Blocked => http.busy("a handler of your stream blocks the others: try again later"),
        })
    }
}

/// Refuses an HTTP method.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Refusal {
    let text = "method not allowed: GET opens the event stream, and POST sends a message";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text).header(ALLOW, HeaderValue::from_static(allowed))
}

fn legacy(server: &Server) -> impl Iterator<Item = Revision> {
    server.config().revisions.iter().copied().filter(|revision| revision.era() == Era::Legacy)
}

/// Refuses a modern request with the supported legacy versions.
fn modern(server: &Server, incoming: &Incoming<'_>) -> Option<ErrorObject> {
    let Incoming::Single(Message::Request(request)) = incoming else { return None };
    let version = request.params.as_ref().filter(|_| is_modern(request))?.meta(key::PROTOCOL_VERSION)?;
    let Ok(version) = serde_json::from_str::<String>(version.get()) else {
        return Some(ErrorObject::invalid_params(format!("`_meta`: `{}` is not a string", key::PROTOCOL_VERSION)));
    };
    let mut offered: Vec<Revision> = legacy(server).collect();
    offered.sort_unstable_by(|a, b| b.cmp(a));
    let offered = offered.into_iter().map(ProtocolVersion::from).collect();
    Some(ErrorObject::unsupported_protocol_version(ProtocolVersion::from(version), offered))
}

/// What a request does.
enum Step {
    Open {
        /// Selects the server, if `HttpOptions::select_server` is set.
        selection: Option<BoxFuture<SelectedServer>>,
        head: RequestHead,
        work_guard: WorkGuard,
        permit: Permit,
    },
    Write(Arc<SseSession>, RequestHead, WorkGuard),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpOptions;

    /// The message path is next to the stream, never on another host, or as configured.
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
