//! Error responses of the transport itself.

use std::borrow::Cow;

use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use mcp_session::SessionError;
use mcp_types::jsonrpc::{EncodedMessage, InvalidMessage, UnknownId, write_error};
use mcp_types::{ErrorCode, ErrorObject, RequestId, Revision};

use super::body::ResponseBody;
use crate::rules::header_names::JSON;

/// A refusal of a request: an HTTP status, a JSON-RPC error for the body, and optional headers.
#[derive(Clone, Debug)]
pub struct Refusal {
    status: StatusCode,
    error: ErrorObject,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The id of the refused request, and the revision of its response.
    id: Option<RequestId>,
    revision: Revision,
}

impl Refusal {
    /// Creates a refusal with a status and a message for the client.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_error(status, ErrorObject::new(ErrorCode::INVALID_REQUEST, message))
    }

    /// Creates a refusal with a status and a JSON-RPC error.
    #[must_use]
    pub fn with_error(status: StatusCode, error: ErrorObject) -> Self {
        Self { status, error, headers: Vec::new(), id: None, revision: Revision::LATEST }
    }

    /// Creates the refusal of a request whose session does not exist: 404, after which clients start a new session.
    #[must_use]
    pub fn unknown_session() -> Self {
        Self::new(StatusCode::NOT_FOUND, SessionError::Unknown.to_string())
    }

    /// Creates a refusal with `Retry-After`, for a request that exceeds a limit.
    pub(crate) fn busy(status: StatusCode, message: &'static str, retry_after: std::time::Duration) -> Self {
        // The header has a resolution of one second.
        let seconds = retry_after.as_secs().max(1);
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
        Self::with_error(status, error).header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Refuses a request because the service shuts down.
    pub(crate) fn shutting_down(retry_after: std::time::Duration) -> Self {
        Self::busy(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down: try again later", retry_after)
    }

    pub(crate) fn method_not_allowed(has_sessions: bool) -> Self {
        let (text, allowed) = match has_sessions {
            true => ("send a POST, GET or DELETE", "POST, GET, DELETE"),
            false => ("send a POST: this endpoint has no streams to GET and no sessions to DELETE", "POST"),
        };
        Self::new(StatusCode::METHOD_NOT_ALLOWED, text).header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// Refuses a body that is not a message.
    pub(crate) fn invalid_message(invalid: &InvalidMessage, revision: Revision) -> Self {
        tracing::debug!(target: "mcp", error = %invalid, "invalid message");
        let refusal = Self::with_error(StatusCode::BAD_REQUEST, invalid.to_error_object());
        refusal.of(invalid.request_id().cloned(), revision)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Adds a header, such as `WWW-Authenticate`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sets the request that is refused: its id and its revision.
    pub(crate) fn of(self, id: Option<RequestId>, revision: Revision) -> Self {
        Self { id, revision, ..self }
    }

    /// Encodes the refusal as a JSON-RPC error response, for a stream whose HTTP status was already sent.
    pub(crate) fn to_message(&self, id: Option<&RequestId>, revision: Revision) -> Option<EncodedMessage> {
        EncodedMessage::error(id, &self.error, UnknownId::for_revision(revision)).ok()
    }

    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        let mut message = Vec::new();
        // Writing plain data to a vector does not fail.
        let _ = write_error(&mut message, self.id.as_ref(), &self.error, UnknownId::for_revision(self.revision));
        let mut response = Response::new(ResponseBody::full(message, None));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        response
    }
}
