//! Answers that no handler gives.

use std::borrow::Cow;

use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use mcp_types::jsonrpc::{EncodedMessage, UnknownId, write_error};
use mcp_types::{ErrorCode, ErrorObject, RequestId, Revision};

use super::body::ResponseBody;
use crate::rules::media;

/// Why a request is not served: a status, with an error that says what to do.
#[derive(Clone, Debug)]
pub struct Refusal {
    status: StatusCode,
    error: ErrorObject,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The request that is refused, if whoever answers does not know it any more.
    id: Option<RequestId>,
}

impl Refusal {
    /// Refuses with a status, and a text that the client can show.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_error(status, ErrorObject::new(ErrorCode::INVALID_REQUEST, message))
    }

    /// Refuses with a status, and an error of one's own.
    #[must_use]
    pub fn with_error(status: StatusCode, error: ErrorObject) -> Self {
        Self { status, error, headers: Vec::new(), id: None }
    }

    /// Something that the server has no room for now.
    pub(crate) fn busy(status: StatusCode, message: &'static str, retry_after: std::time::Duration) -> Self {
        // At least a second, as the header knows no less.
        let seconds = retry_after.as_secs().max(1);
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
        Self::with_error(status, error).header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    pub(crate) fn method_not_allowed(has_sessions: bool) -> Self {
        let (text, allowed) = match has_sessions {
            true => ("send a POST, GET or DELETE", "POST, GET, DELETE"),
            false => ("send a POST: this endpoint has no streams to GET and no sessions to DELETE", "POST"),
        };
        Self::new(StatusCode::METHOD_NOT_ALLOWED, text).header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// Adds a header, such as `WWW-Authenticate`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says which request is refused.
    pub(crate) fn of(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    /// The refusal of a request as a message, where there is no response to refuse any more.
    pub(crate) fn to_message(&self, id: Option<&RequestId>, revision: Revision) -> Option<EncodedMessage> {
        EncodedMessage::error(id, &self.error, UnknownId::of(revision)).ok()
    }

    pub(crate) fn into_response(self, id: Option<&RequestId>, revision: Revision) -> Response<ResponseBody> {
        let (mut message, id) = (Vec::new(), id.or(self.id.as_ref()));
        // Errors are plain data, which can always be written.
        let _ = write_error(&mut message, id, &self.error, UnknownId::of(revision));
        let mut response = Response::new(ResponseBody::full(message, None));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::JSON));
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        response
    }
}
