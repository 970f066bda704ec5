//! One call: a POST and its response as JSON or as an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method as Verb, StatusCode};
use mcp_client::{CallId, CredentialFingerprint, SessionLossReason};
use mcp_types::jsonrpc::{Limits, Message};
use mcp_types::{Era, Revision};
use reqwest::{Response, Url};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::event_reader::{EventReader, StreamError};
use super::headers::{self, Session};
use super::resumable_stream::{Opened, ResumableStream};
use super::sender::{BodyType, RequestSender, SendError, Sent, body_type, read_body, read_refusal};
use super::standalone_stream::is_transient;
use crate::client::driver_event::{DriverEvent, DriverHandle};
use crate::rules::header_names::SESSION;

/// A call to send.
pub(crate) struct Post {
    pub(crate) sender: Arc<RequestSender>,
    pub(crate) driver: DriverHandle,
    pub(crate) call: CallId,
    pub(crate) head: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) revision: Option<Revision>,
    pub(crate) session: Session,
    pub(crate) kind: PostKind,
    /// Whether it opens a subscription.
    pub(crate) subscribes: bool,
}

/// What a POST is for, which decides where its response arrives.
#[derive(Clone)]
pub(crate) enum PostKind {
    /// A call, whose response is in the HTTP response.
    Call,
    /// `initialize`: the HTTP response may start a session, or show that the server only supports HTTP+SSE.
    Handshake,
    /// A call to an HTTP+SSE server at this endpoint. Its response arrives on the event stream.
    LegacySse(Url),
}

/// How a POST ended.
enum Outcome {
    /// The driver has received everything there is for the call.
    Done,
    /// The response will arrive on the event stream of HTTP+SSE.
    OnSseStream,
}

/// How long an HTTP+SSE server may take to send its `endpoint` event.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to end a stream after the response, so that the connection can be reused.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(1);

impl Post {
    /// Makes the call, and reports its messages and its end to the driver.
    pub(crate) async fn run(self) {
        let outcome = match &self.kind {
            PostKind::Call | PostKind::Handshake => self.exchange().await,
            PostKind::LegacySse(endpoint) => self.deliver(endpoint, &self.session).await,
        };
        let why = match outcome {
            Ok(Outcome::OnSseStream) => return,
            Ok(Outcome::Done) => None,
            Err(why) => Some(why),
        };
        self.driver.send(DriverEvent::Ended { call: self.call, why }).await;
    }

    async fn exchange(&self) -> Result<Outcome, String> {
        let Some(Sent { response, by }) = self.send(&self.sender.url, &self.session).await? else {
            return Ok(Outcome::Done);
        };
        let status = response.status();
        if status.is_success() {
            if self.subscribes {
                self.driver.send(DriverEvent::Subscribed { call: self.call, by }).await;
            }
            self.receive(response, by).await?;
            return Ok(Outcome::Done);
        }
        let is_legacy = self.revision.is_some_and(|revision| revision.era() == Era::Legacy);
        if status == StatusCode::NOT_FOUND && is_legacy && self.session.id.is_some() {
            let reason = SessionLossReason::Unknown { status: status.as_u16() };
            self.driver
                .send(DriverEvent::SessionLost { call: Some(self.call), generation: self.session.generation, reason })
                .await;
            return Ok(Outcome::Done);
        }
        let refusal = self.refusal(response).await?;
        if let PostKind::Handshake = self.kind
            && self.sender.options.legacy_sse_fallback
            && suggests_legacy_sse(status, &refusal)
        {
            match self.find_sse_endpoint().await {
                Ok((endpoint, owner)) => {
                    let session = Session { owner: Some(owner), ..self.session.clone() };
                    return self.deliver(&endpoint, &session).await;
                }
                Err(why) => tracing::debug!(target: "mcp", why, "the server does not support HTTP+SSE, either"),
            }
        }
        self.refused(status, refusal).await;
        Ok(Outcome::Done)
    }

    /// Sends the message. Reports a lost session and returns `None` if the credentials are not those of the session.
    async fn send(&self, to: &Url, session: &Session) -> Result<Option<Sent>, String> {
        match self.sender.send(Verb::POST, to, &self.head, Some(&self.body), session, &self.driver).await {
            Ok(sent) => Ok(Some(sent)),
            Err(SendError::Failed(why)) => Err(why),
            Err(SendError::CredentialsChanged) => {
                let reason = SessionLossReason::CredentialsChanged;
                self.driver
                    .send(DriverEvent::SessionLost { call: Some(self.call), generation: session.generation, reason })
                    .await;
                Ok(None)
            }
        }
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

    async fn refused(&self, status: StatusCode, body: Bytes) {
        self.driver.send(DriverEvent::Status { call: self.call, status: status.as_u16(), body }).await;
    }

    /// Reads a successful response, as JSON or as an event stream.
    // H-15
    async fn receive(&self, response: Response, by: CredentialFingerprint) -> Result<(), String> {
        let session = match self.kind {
            PostKind::Handshake => self.begin_session(&response, by).await?,
            PostKind::Call | PostKind::LegacySse(_) => self.session.clone(),
        };
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(format!("the server accepted the request without a response ({})", response.status()));
        }
        match body_type(response.headers())? {
            BodyType::Json => {
                let message = read_body(response, self.sender.options.body_limit).await?;
                self.driver.send(DriverEvent::Reply { call: self.call, message }).await;
                Ok(())
            }
            BodyType::EventStream => {
                self.follow(Box::new(EventReader::new(response, self.sender.options.event_limit)), session).await
            }
        }
    }

    /// Reports the session that the response to `initialize` starts.
    // S4.50
    async fn begin_session(&self, response: &Response, owner: CredentialFingerprint) -> Result<Session, String> {
        let id = response.headers().get(SESSION).cloned();
        if id.as_ref().is_some_and(|id| !is_visible(id.as_bytes())) {
            return Err("the session id of the server has characters that are not visible ASCII".to_owned());
        }
        self.driver.send(DriverEvent::Session { id: id.clone(), owner }).await;
        Ok(Session { id, generation: self.session.generation, owner: Some(owner) })
    }

    /// Reads a stream until the response arrives, and resumes it if it ends before.
    async fn follow(&self, mut events: Box<EventReader>, session: Session) -> Result<(), String> {
        let own_id = serde_json::from_slice::<Envelope<'_>>(&self.body).ok().and_then(|envelope| envelope.id);
        let mut stream = ResumableStream::new(Arc::clone(&self.sender), self.driver.clone(), self.revision, session);
        loop {
            let broken = loop {
                match events.next().await {
                    Ok(Some(event)) if event.is_message() => {
                        stream.failed_attempts = 0;
                        let is_answer = answers(&event.data, own_id);
                        self.driver.send(DriverEvent::Reply { call: self.call, message: event.data.into() }).await;
                        if is_answer {
                            let _ = tokio::time::timeout(STREAM_END_TIMEOUT, async {
                                while let Ok(Some(_)) = events.next().await {}
                            })
                            .await;
                            return Ok(());
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break None,
                    Err(StreamError::Broken(why)) => break Some(why),
                    Err(StreamError::Unreadable(why)) => return Err(why),
                }
            };
            // H-23: modern streams cannot be resumed.
            let is_legacy = self.revision.is_none_or(|revision| revision.era() == Era::Legacy);
            if is_legacy {
                stream.record_progress(&events)?;
            }
            if stream.last_event_id.is_none() {
                return broken.map_or(Ok(()), Err);
            }
            drop(events);
            events = self.resume(&mut stream, broken).await?;
        }
    }

    /// Resumes a stream that ended before the response.
    async fn resume(
        &self,
        stream: &mut ResumableStream,
        mut broken: Option<String>,
    ) -> Result<Box<EventReader>, String> {
        loop {
            if stream.is_exhausted() {
                let why = broken.unwrap_or_else(|| "it ends without a response each time".to_owned());
                return Err(format!("the stream of the call could not be resumed: {why}"));
            }
            stream.back_off().await;
            match stream.open().await {
                Ok(Opened::Stream(events)) => return Ok(events),
                Ok(Opened::Refused(status)) if is_transient(status) => broken = Some(status.to_string()),
                Ok(Opened::Refused(status)) => {
                    if status == StatusCode::NOT_FOUND && stream.session.id.is_some() {
                        // The server has seen the call, so it must not be made again in the new session.
                        let reason = SessionLossReason::Unknown { status: status.as_u16() };
                        self.driver
                            .send(DriverEvent::SessionLost {
                                call: None,
                                generation: stream.session.generation,
                                reason,
                            })
                            .await;
                    }
                    return Err(format!("the server refused to resume the stream of the call ({status})"));
                }
                Ok(Opened::CredentialsChanged) => {
                    let reason = SessionLossReason::CredentialsChanged;
                    self.driver
                        .send(DriverEvent::SessionLost { call: None, generation: stream.session.generation, reason })
                        .await;
                    return Err(SendError::CredentialsChanged.into_text());
                }
                Ok(Opened::Unusable(why)) => return Err(why),
                Err(why) => broken = Some(why),
            }
        }
    }

    /// Sends the message to an HTTP+SSE server, which responds on its event stream.
    // B-106
    async fn deliver(&self, endpoint: &Url, session: &Session) -> Result<Outcome, String> {
        let Some(Sent { response, .. }) = self.send(endpoint, session).await? else { return Ok(Outcome::Done) };
        let status = response.status();
        if status.is_success() {
            return Ok(Outcome::OnSseStream);
        }
        let refusal = self.refusal(response).await?;
        self.refused(status, refusal).await;
        Ok(Outcome::Done)
    }

    /// Opens an HTTP+SSE stream and waits for its `endpoint` event.
    // DU-38
    async fn find_sse_endpoint(&self) -> Result<(Url, CredentialFingerprint), String> {
        let looking = async {
            let url = &self.sender.url;
            let head = headers::for_stream(None, &Session::default(), None);
            let sent = self.sender.send(Verb::GET, url, &head, None, &Session::default(), &self.driver).await;
            let Sent { response, by } = sent.map_err(SendError::into_text)?;
            if response.status() != StatusCode::OK || body_type(response.headers())? != BodyType::EventStream {
                return Err(format!("no event stream ({})", response.status()));
            }
            let mut events = Box::new(EventReader::new(response, self.sender.options.event_limit));
            loop {
                match events.next().await {
                    Ok(Some(event)) if event.name == b"endpoint" => {
                        let address = String::from_utf8_lossy(&event.data);
                        let endpoint = url.join(address.trim()).map_err(|fault| fault.to_string())?;
                        if endpoint.origin() != url.origin() {
                            return Err("its endpoint has another origin".to_owned());
                        }
                        return Ok((endpoint, events, by));
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return Err("the stream ended without an `endpoint` event".to_owned()),
                    Err(StreamError::Broken(why) | StreamError::Unreadable(why)) => return Err(why),
                }
            }
        };
        let (endpoint, events, owner) = tokio::time::timeout(ENDPOINT_TIMEOUT, looking)
            .await
            .map_err(|_| "the stream sent no `endpoint` event in time".to_owned())??;
        self.driver.send(DriverEvent::LegacySse { endpoint: endpoint.clone(), events, owner }).await;
        Ok((endpoint, owner))
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

/// The members of a message that tell whether it is a response.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Whether a message or batch contains the response to a request, or an error without an id.
fn answers(message: &[u8], request: Option<&RawValue>) -> bool {
    let is_answer = |envelope: &Envelope<'_>| match envelope.id.map(RawValue::get).filter(|id| *id != "null") {
        Some(id) => {
            let is_response = envelope.result.is_some() || envelope.error.is_some();
            // Some servers return a numeric id as a string.
            let number = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id);
            is_response && request.is_some_and(|request| request.get() == number)
        }
        None => envelope.error.is_some(),
    };
    if message.trim_ascii_start().starts_with(b"[") {
        let all: Vec<Envelope<'_>> = serde_json::from_slice(message).unwrap_or_default();
        all.iter().any(is_answer)
    } else {
        serde_json::from_slice(message).is_ok_and(|envelope| is_answer(&envelope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The response to a call is recognised, alone and in a batch, and nothing else is.
    // covers: B-109
    #[test]
    fn answers_are_recognised() {
        let own: Envelope<'_> = serde_json::from_str(r#"{"id":7}"#).unwrap();
        for (message, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"error":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, true),
            (r#"{"jsonrpc":"2.0","error":{}}"#, true),
            (r#"[{"method":"x"},{"id":7,"result":{}}]"#, true),
            (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":"07","result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","result":{}}"#, false),
            (r#"[{"id":8,"result":{}}]"#, false),
            ("{", false),
        ] {
            assert_eq!(answers(message.as_bytes(), own.id), expected, "{message}");
        }
    }
}
