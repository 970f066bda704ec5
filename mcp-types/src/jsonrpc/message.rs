//! Requests, notifications and responses.

use super::incoming;
use super::invalid_message::InvalidMessage;
use super::limits::Limits;
use super::payload::Payload;
use crate::{ErrorObject, Method, RequestId};

/// A message; its members determine its kind.
///
/// | kind | `method` | `id` | `result` or `error` |
/// |---|---|---|---|
/// | request | yes | yes | no |
/// | notification | yes | no | no |
/// | response | no | yes, with `error` perhaps | exactly one |
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these three")]
pub enum Message<'a> {
    /// A request, which expects a response.
    Request(Request<'a>),
    /// A notification, which expects no response.
    Notification(Notification<'a>),
    /// The response to a request.
    Response(Response<'a>),
}

impl<'a> Message<'a> {
    /// Parses a single message; batches are rejected.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid message.
    // M-18
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, InvalidMessage> {
        incoming::parse_single(bytes, limits)
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The id, which the response repeats.
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The parameters; both an absent member and `null` are `None`.
    pub params: Option<Payload<'a>>,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// The method.
    pub method: Method,
    /// The parameters; both an absent member and `null` are `None`.
    pub params: Option<Payload<'a>>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response<'a> {
    /// The id of the request.
    ///
    /// It is `None` only in an error response of a peer that could not read the id: `null` or absent.
    pub id: Option<RequestId>,
    /// The `result` or the `error`.
    pub outcome: Result<Payload<'a>, ErrorObject>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    fn parse(text: &str) -> Result<Message<'_>, InvalidMessage> {
        Message::parse(text.as_bytes(), &Limits::default())
    }

    fn payload(text: &str) -> Payload<'_> {
        Payload::parse(text, &Limits::default()).unwrap()
    }

    // covers: CG-12
    #[test]
    fn members_tell_the_kind() {
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1}}"#),
            Ok(Message::Request(Request {
                id: 1_u32.into(),
                method: Method::TOOLS_CALL,
                params: Some(payload(r#"{"a":1}"#)),
            }))
        );
        assert_eq!(
            parse(r#"{"method":"m","jsonrpc":"2.0","params":null}"#),
            Ok(Message::Notification(Notification { method: "m".into(), params: None }))
        );
        assert_eq!(
            parse(r#"{"result":{},"id":"x","jsonrpc":"2.0"}"#),
            Ok(Message::Response(Response { id: Some("x".into()), outcome: Ok(payload("{}")) }))
        );
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#),
            Ok(Message::Response(Response {
                id: None,
                outcome: Err(ErrorObject::new(ErrorCode::USER_REJECTED, "no"))
            }))
        );
    }

    // covers: M-18
    #[test]
    fn batches_are_refused() {
        // M-18
        let invalid = parse(r#" [{"jsonrpc":"2.0","method":"m"}]"#).unwrap_err();
        assert_eq!(invalid.code(), ErrorCode::INVALID_REQUEST);
        assert_eq!(invalid.to_string(), "a batch is not allowed here (byte 1)");
        assert_eq!(parse("[}").unwrap_err().code(), ErrorCode::PARSE_ERROR);
    }
}
