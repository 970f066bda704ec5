//! One call: a POST and its response as JSON or as an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method as Verb, StatusCode};
use mcp_client::{AuthorizationError, CallId, CredentialFingerprint};
use mcp_types::jsonrpc::{Limits, Message};
use mcp_types::{Era, Revision};
use reqwest::{Request, Response, Url};

use super::event_reader::{EventReader, StreamError};
use super::headers::{self, Session, SessionLost};
use super::login::within;
use super::resumable_stream::{Opened, ResumableStream};
use super::sender::{
    BodyType, CallContext, RequestSender, SendError, Sent, body_type, is_same_origin, read_body, read_refusal,
};
use super::standalone_stream::{is_transient, yield_to_driver};
use crate::rules::header_names::SESSION;

/// A call to send.
pub(crate) struct Post {
    pub(crate) sender: Arc<RequestSender>,
    pub(crate) call: CallId,
    /// The call and the values that are attached to it.
    pub(crate) context: CallContext,
    pub(crate) revision: Option<Revision>,
    pub(crate) session: Session,
    pub(crate) kind: PostKind,
}

/// What a POST is for, which decides where its response arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostKind {
    /// A call, whose response is in the HTTP response.
    Call,
    /// A call that opens a subscription.
    Subscription,
    /// `initialize`: the HTTP response may start a session, or show that the server only supports HTTP+SSE.
    Handshake,
    /// A call to an HTTP+SSE server. Its response arrives on the event stream.
    LegacySse,
}

/// How a POST ended.
pub(crate) enum PostEnd {
    /// Nothing more will be received for the call; the reason if something went wrong.
    Ended(Option<String>),
    /// The session is lost, and the server has not executed the call.
    SessionLost(SessionLost),
    /// The session is lost, and with it the stream of a call that the server may have executed.
    StreamLost(SessionLost, String),
    /// The authorizer has no credential for the call.
    Unauthorized(AuthorizationError),
    /// The certificate of the server is not valid. Nothing was sent.
    #[cfg(feature = "client-tls")]
    InvalidCertificate(String),
    /// The response will arrive on the event stream of HTTP+SSE.
    OnSseStream,
    /// The server only supports HTTP+SSE, and the call has to be sent again.
    LegacySse(Box<LegacySse>),
}

/// The event stream of an HTTP+SSE server.
pub(crate) struct LegacySse {
    /// Where messages are sent.
    pub(crate) endpoint: Url,
    pub(crate) events: EventReader,
    pub(crate) owner: CredentialFingerprint,
    /// The refused call, which is to be sent to the endpoint.
    pub(crate) request: Request,
}

/// Why there is no event stream of an HTTP+SSE server.
enum NoEventStream {
    Missing(String),
    /// The server responded with 401 or 403.
    Refused(Response),
    /// The authorizer has no credential.
    Unauthorized(AuthorizationError),
}

impl From<String> for NoEventStream {
    fn from(why: String) -> Self {
        Self::Missing(why)
    }
}

impl From<String> for PostEnd {
    fn from(why: String) -> Self {
        Self::Ended(Some(why))
    }
}

/// How long an HTTP+SSE server may take to send its `endpoint` event.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to end a stream after the response, so that the connection can be reused.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(1);

impl Post {
    /// Makes the call, and passes its messages to the client. `Ok` and `Err` both contain how it ended.
    pub(crate) async fn run(&self, request: Request) -> Result<PostEnd, PostEnd> {
        let may_fall_back = self.kind == PostKind::Handshake && self.sender.options.legacy_sse_fallback;
        let again = if may_fall_back { request.try_clone() } else { None };
        let Sent { response, by } = match self.sender.send(request, &self.session, &self.context).await {
            Ok(sent) => sent,
            Err(SendError::Failed(why)) => return Err(why.into()),
            Err(SendError::Authorization(error)) => return Err(PostEnd::Unauthorized(error)),
            #[cfg(feature = "client-tls")]
            Err(SendError::InvalidCertificate(what)) => return Err(PostEnd::InvalidCertificate(what)),
            Err(SendError::CredentialsChanged) => return Err(PostEnd::SessionLost(self.session.credentials_changed())),
        };
        let mut status = response.status();
        if status.is_success() {
            if self.kind == PostKind::LegacySse {
                return Ok(PostEnd::OnSseStream);
            }
            self.receive(response, by).await?;
            return Ok(PostEnd::Ended(None));
        }
        let is_legacy = self.revision.is_some_and(|revision| revision.era() == Era::Legacy);
        if status == StatusCode::NOT_FOUND && is_legacy && self.session.id.is_some() && self.kind != PostKind::LegacySse
        {
            return Err(PostEnd::SessionLost(self.session.lost_with_status(status)));
        }
        let mut refusal = self.refusal(response).await?;
        if let Some(request) = again.filter(|_| suggests_legacy_sse(status, &refusal)) {
            // Few calls need this, so it is boxed here and below, which keeps the others small.
            match Box::pin(self.find_sse_endpoint(request)).await {
                Ok(found) => return Ok(PostEnd::LegacySse(Box::new(found))),
                Err(NoEventStream::Unauthorized(error)) => return Err(PostEnd::Unauthorized(error)),
                // It may support HTTP+SSE for other credentials, which is the better explanation.
                Err(NoEventStream::Refused(response)) => {
                    status = response.status();
                    refusal = self.refusal(response).await?;
                }
                Err(NoEventStream::Missing(why)) => {
                    tracing::debug!(target: "mcp", why, "the server does not support HTTP+SSE, either");
                }
            }
        }
        self.sender.responses.handle_status(self.call, status.as_u16(), &refusal);
        Ok(PostEnd::Ended(None))
    }

    /// Reads an error response.
    async fn refusal(&self, response: Response) -> Result<Bytes, String> {
        if response.status().is_redirection() {
            let to = response.headers().get(http::header::LOCATION);
            let to = to.and_then(|to| self.sender.url.join(to.to_str().ok()?).ok());
            let to = to.map_or_else(|| "an unknown location".to_owned(), |to| to.origin().ascii_serialization());
            return Err(format!("the server redirects to {to} ({}), which is not followed", response.status()));
        }
        Ok(read_refusal(response).await)
    }

    /// Reads a successful response, as JSON or as an event stream.
    // H-15
    async fn receive(&self, response: Response, by: CredentialFingerprint) -> Result<(), PostEnd> {
        let session = match self.kind {
            PostKind::Handshake => self.begin_session(&response, by)?,
            PostKind::Call | PostKind::Subscription | PostKind::LegacySse => self.session.clone(),
        };
        if self.kind == PostKind::Subscription {
            self.sender.subscribed(self.call, by, &self.context.extensions);
        }
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(format!("the server accepted the request without a response ({})", response.status()).into());
        }
        match body_type(response.headers())? {
            BodyType::Json => {
                let message = read_body(response, self.sender.options.body_limit).await?;
                self.sender.responses.handle_reply(self.call, &message);
                Ok(())
            }
            BodyType::EventStream => {
                self.read_until_response(Box::new(EventReader::new(response, self.sender.options.event_limit)), session)
                    .await
            }
        }
    }

    /// Records the session that the response to `initialize` starts.
    // S4.50
    fn begin_session(&self, response: &Response, owner: CredentialFingerprint) -> Result<Session, String> {
        let id = response.headers().get(SESSION).cloned();
        if id.as_ref().is_some_and(|id| !is_visible(id.as_bytes())) {
            return Err("the session id of the server has characters that are not visible ASCII".to_owned());
        }
        let name = id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned);
        self.sender.responses.set_session(name, Some(owner));
        let session = &mut self.sender.state().session;
        (session.id, session.owner) = (id.clone(), Some(owner));
        Ok(Session { id, generation: self.session.generation, owner: Some(owner) })
    }

    /// Reads a stream until the response arrives, and resumes it if it ends before.
    async fn read_until_response(&self, mut events: Box<EventReader>, session: Session) -> Result<(), PostEnd> {
        let mut stream = ResumableStream::new(Arc::clone(&self.sender), self.revision, session);
        stream.context = CallContext::new(self.call, self.context.extensions.clone());
        loop {
            let broken = loop {
                match events.next().await {
                    Ok(Some(event)) if event.is_message() => {
                        stream.failed_attempts = 0;
                        if !self.sender.responses.handle_reply(self.call, &event.data) {
                            let _ = tokio::time::timeout(STREAM_END_TIMEOUT, async {
                                while let Ok(Some(_)) = events.next().await {}
                            })
                            .await;
                            return Ok(());
                        }
                        yield_to_driver().await;
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break None,
                    Err(StreamError::Broken(why)) => break Some(why),
                    Err(StreamError::Unreadable(why)) => return Err(why.into()),
                }
            };
            // H-23: modern streams cannot be resumed.
            let is_legacy = self.revision.is_none_or(|revision| revision.era() == Era::Legacy);
            if is_legacy {
                stream.record_progress(&events)?;
            }
            if stream.last_event_id.is_none() {
                return Err(PostEnd::Ended(broken));
            }
            drop(events);
            events = Box::pin(self.resume(&mut stream, broken)).await?;
        }
    }

    /// Resumes a stream that ended before the response.
    async fn resume(
        &self,
        stream: &mut ResumableStream,
        mut broken: Option<String>,
    ) -> Result<Box<EventReader>, PostEnd> {
        loop {
            if stream.is_exhausted() {
                let why = broken.unwrap_or_else(|| "it ends without a response each time".to_owned());
                return Err(format!("the stream of the call could not be resumed: {why}").into());
            }
            stream.back_off().await;
            match stream.open().await {
                Ok(Opened::Stream(events)) => return Ok(events),
                Ok(Opened::Refused(status)) if is_transient(status) => broken = Some(status.to_string()),
                Ok(Opened::Refused(status)) => {
                    let why = format!("the server refused to resume the stream of the call ({status})");
                    let is_unknown = status == StatusCode::NOT_FOUND && stream.session.id.is_some();
                    return Err(if is_unknown {
                        PostEnd::StreamLost(stream.session.lost_with_status(status), why)
                    } else {
                        why.into()
                    });
                }
                Ok(Opened::CredentialsChanged) => {
                    let why = SendError::CredentialsChanged.into_text();
                    return Err(PostEnd::StreamLost(stream.session.credentials_changed(), why));
                }
                Ok(Opened::Unusable(why)) => return Err(why.into()),
                // The server may have executed the call, so this is not the error of a call without credentials.
                Ok(Opened::Unauthorized(error)) => {
                    return Err(format!("the stream of the call could not be resumed: {error}").into());
                }
                Err(why) => broken = Some(why),
            }
        }
    }

    /// Opens an HTTP+SSE stream and waits for its `endpoint` event.
    // B-106, DU-38
    async fn find_sse_endpoint(&self, mut request: Request) -> Result<LegacySse, NoEventStream> {
        // The login that it may take is one of the handshake.
        let context = CallContext::new(self.call, self.context.extensions.clone());
        let looking = async {
            let url = &self.sender.url;
            let head = headers::for_stream(None, &Session::default(), None);
            let get = self.sender.request(Verb::GET, url, head);
            let sent = self.sender.send(get, &Session::default(), &context).await;
            let Sent { response, by } = match sent {
                Ok(sent) => sent,
                Err(SendError::Authorization(error)) => return Err(NoEventStream::Unauthorized(error)),
                Err(error) => return Err(error.into_text().into()),
            };
            if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Err(NoEventStream::Refused(response));
            }
            if response.status() != StatusCode::OK || body_type(response.headers())? != BodyType::EventStream {
                return Err(format!("no event stream ({})", response.status()).into());
            }
            let mut events = EventReader::new(response, self.sender.options.event_limit);
            loop {
                match events.next().await {
                    Ok(Some(event)) if event.name == b"endpoint" => {
                        let address = String::from_utf8_lossy(&event.data);
                        let endpoint = url.join(address.trim()).map_err(|fault| fault.to_string())?;
                        if !is_same_origin(&endpoint, url) {
                            return Err("its endpoint has another origin".to_owned().into());
                        }
                        request.url_mut().clone_from(&endpoint);
                        return Ok(LegacySse { endpoint, events, owner: by, request });
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return Err("the stream ended without an `endpoint` event".to_owned().into()),
                    Err(StreamError::Broken(why) | StreamError::Unreadable(why)) => return Err(why.into()),
                }
            }
        };
        let found = within(ENDPOINT_TIMEOUT, &context, looking).await;
        found.ok_or_else(|| "the stream sent no `endpoint` event in time".to_owned())?
    }
}

/// Whether the server may support HTTP+SSE: it refused `initialize` without a JSON-RPC error.
// DU-38
fn suggests_legacy_sse(status: StatusCode, body: &[u8]) -> bool {
    match status.as_u16() {
        405 => true,
        400 | 404 => {
            let message = Message::parse(body, &Limits::default());
            !matches!(message, Ok(Message::Response(response)) if response.outcome.is_err())
        }
        _ => false,
    }
}

/// Whether a session id consists of visible ASCII characters, as the specification requires.
fn is_visible(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(u8::is_ascii_graphic)
}
