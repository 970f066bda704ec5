//! The error of parsing a message.

use std::fmt;

use super::fault::Fault;
use crate::json::scan::{Problem, ScanError};
use crate::{ErrorCode, ErrorObject, RequestId};

/// The error of parsing a message of a peer.
///
/// Later messages may be valid, so it is no reason to close the connection.
///
/// ```
/// use mcp_types::jsonrpc::{Limits, Message};
///
/// let text = br#"{"jsonrpc":"2.0","method":"ping","id":null}"#;
/// let invalid = Message::parse(text, &Limits::default()).unwrap_err();
/// assert_eq!(
///     invalid.to_string(),
///     "`id` must be a string or an integer, found null (byte 38)"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMessage {
    fault: Fault,
    offset: Option<usize>,
    origin: Origin,
}

/// The kind and the id of the invalid message, if they could be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Unknown,
    Request(RequestId),
    Response(RequestId),
}

impl InvalidMessage {
    pub(super) fn new(fault: Fault, offset: Option<usize>) -> Self {
        Self { fault, offset, origin: Origin::Unknown }
    }

    pub(super) fn from_scan(error: ScanError, text: &str) -> Self {
        let fault = match error.problem {
            Problem::Expected(expected) => {
                Fault::Syntax { expected, found: text.get(error.at..).and_then(|rest| rest.chars().next()) }
            }
            Problem::TooDeep { limit } => Fault::TooDeep { limit },
            Problem::ReservedName => Fault::ReservedName,
        };
        Self::new(fault, Some(error.at))
    }

    pub(super) fn about(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Returns the violated rule.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Returns the code for the error response.
    ///
    /// It is [`PARSE_ERROR`](ErrorCode::PARSE_ERROR) for text that is not JSON,
    /// [`INVALID_PARAMS`](ErrorCode::INVALID_PARAMS) if only `params` are wrong, and
    /// [`INVALID_REQUEST`](ErrorCode::INVALID_REQUEST) for everything else.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.fault.code()
    }

    /// Returns the id of the invalid request, if it could be parsed, for the error response.
    ///
    /// It is available even if the text is not JSON after the id. It is `None` for messages with a `result` or an `error`,
    /// because responses get no response.
    // M-11
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        match &self.origin {
            Origin::Request(id) => Some(id),
            Origin::Unknown | Origin::Response(_) => None,
        }
    }

    /// Returns the id of the invalid response, if it could be parsed, so that the pending request can fail.
    #[must_use]
    pub fn response_id(&self) -> Option<&RequestId> {
        match &self.origin {
            Origin::Response(id) => Some(id),
            Origin::Unknown | Origin::Request(_) => None,
        }
    }

    /// Returns the byte offset of the error, if there is a single one.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// Creates the error object for the response.
    #[must_use]
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(self.code(), self.to_string())
    }
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (byte {offset})", self.fault),
            None => write!(f, "{}", self.fault),
        }
    }
}

impl std::error::Error for InvalidMessage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_give_an_id_to_answer() {
        let invalid = InvalidMessage::new(Fault::EmptyMethod, Some(3));
        assert_eq!((invalid.request_id(), invalid.response_id()), (None, None));
        let request = invalid.clone().about(Origin::Request(1_u32.into()));
        assert_eq!(request.request_id(), Some(&1_u32.into()));
        let response = invalid.about(Origin::Response(1_u32.into()));
        assert_eq!(response.request_id(), None);
        assert_eq!(response.response_id(), Some(&1_u32.into()));
    }

    #[test]
    fn the_answer_names_rule_and_place() {
        let error = InvalidMessage::new(Fault::EmptyMethod, Some(3)).to_error_object();
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        assert_eq!(error.message, "`method` must not be empty (byte 3)");
    }
}
