//! Errors by the party who can act on them.

use std::borrow::Cow;

use mcp_types::jsonrpc::InvalidMessage;
use mcp_types::{ClientCapabilities, ErrorCode, ErrorObject, Method, ProtocolVersion, RequestId, Revision};

/// The error of a command that was not executed; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The handshake is not complete.
    #[error("the handshake is not complete")]
    NotReady,
    /// Too many requests to the peer are in flight.
    #[error("{limit} requests to the peer are in flight (`Limits::max_calls`)")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// Too many messages are queued for the peer.
    #[error("the peer does not read: its queue is full (`Limits::max_route_*`, `Limits::max_outbox_*`)")]
    OutboxFull,
    /// There is no way to send a request to this peer.
    #[error("there is no back channel: {0}")]
    NoBackChannel(&'static str),
    /// The peer's revision does not have the method in this direction.
    #[error("`{method}` may not be sent in {revision}")]
    NotInRevision {
        /// The method.
        method: Method,
        /// The revision of the peer.
        revision: Revision,
    },
    /// Another command sends this message.
    #[error("`{0}` is not sent by hand: a command of its own does that")]
    Reserved(Method),
    /// The client did not declare the capability for the request.
    #[error("the client did not declare `{0}`")]
    MissingCapability(&'static str),
    /// The request or call is not in flight.
    #[error("the request has ended")]
    Ended,
    /// The parameters are not a JSON object.
    #[error("the payload is not a JSON object")]
    NotAnObject,
}

impl CommandError {
    /// Returns whether the same command can succeed later: when the handshake is complete, a call has ended, or the peer
    /// has read some messages.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::NotReady | Self::TooManyCalls { .. } | Self::OutboxFull)
    }
}

/// A rule that the peer broke; the connection lives on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// The text is not a message.
    #[error("{0}")]
    InvalidMessage(Box<InvalidMessage>),
    /// A text that is longer than the driver reads.
    #[error("a message must not have more than {limit} bytes (`line_limit` of the receiving side)")]
    TooLong {
        /// The limit that was hit.
        limit: usize,
    },
    /// A batch, which only revision 2025-03-26 has.
    #[error("a batch is not allowed here")]
    BatchNotAllowed,
    /// A request with the id of one that is still open.
    #[error("the id {0} is in use")]
    DuplicateId(RequestId),
    /// A request with an id that is longer than the limits allow.
    #[error("the id has more than {limit} bytes")]
    IdTooLong {
        /// The limit that was hit.
        limit: usize,
    },
    /// `initialize` for the second time.
    #[error("`initialize` was sent before")]
    InitializedTwice,
    /// `initialize` for the second time, with another version or other capabilities.
    #[error(
        "`initialize` was sent before, with another version or other capabilities; clients that share this connection \
         through a gateway need a server with `ServeOptions::shared_pipe`"
    )]
    InitializedDifferently,
    /// `initialize` for the second time, with another version or other capabilities, where clients share the connection
    /// and requests are in flight.
    #[error("`initialize` was sent before, with another version or other capabilities, and requests are in flight")]
    InitializedWhileBusy,
    /// A request before the handshake.
    #[error("`{0}` was sent before the handshake was complete")]
    TooEarly(Method),
    /// A method that the revision does not have, or whose capability was not advertised.
    #[error("there is no method `{0}` here")]
    UnknownMethod(Method),
    /// A notification that the client may not send in its revision; it is ignored.
    #[error("the notification `{0}` is not allowed here")]
    StrayNotification(Method),
    /// A response to nothing that was asked; it is ignored.
    #[error("a response to nothing that is open")]
    StrayResponse(Option<RequestId>),
    /// A response whose id is the text of the number that was sent; it is accepted. Told once per connection.
    #[error("the id {0} came back as text")]
    IdAsText(RequestId),
    /// A method that makes no sense without a session, which this connection does not have.
    #[error("`{0}` needs a session, and this server keeps none for legacy clients")]
    NeedsSession(Method),
    /// Parameters or metadata that are not what they should be.
    #[error("{0}")]
    InvalidParams(Cow<'static, str>),
    /// A version that is not served.
    #[error("the version {requested} is not supported")]
    UnsupportedVersion {
        /// What the client asked for.
        requested: ProtocolVersion,
        /// What it may use instead.
        supported: Vec<ProtocolVersion>,
    },
    /// A request that differs from what the transport says about it, as in HTTP headers.
    #[error("{}", .0.message)]
    ClaimMismatch(Box<ErrorObject>),
    /// A method of an extension that the client did not declare.
    #[error("the client did not declare the capability that the method needs")]
    MissingCapability {
        /// What the client would have to declare.
        required: Box<ClientCapabilities>,
    },
    /// Requests without reading the answers: more waits to be sent than the limits allow. The connection ends.
    #[error("the peer does not read")]
    NotReading,
    /// More requests than the limits allow.
    #[error("too many requests at once")]
    TooManyRequests,
    /// More listen requests than the limits allow.
    #[error("too many subscriptions at once")]
    TooManyListenStreams,
    /// More addresses than the limits allow.
    #[error("too many resources are subscribed to")]
    TooManySubscriptions,
}

impl PeerMisbehaved {
    /// What the peer is told, if it is told anything.
    #[must_use]
    pub fn to_error_object(&self) -> Option<ErrorObject> {
        let code = match self {
            Self::InvalidMessage(invalid) => return Some(invalid.to_error_object()),
            Self::UnsupportedVersion { requested, supported } => {
                return Some(ErrorObject::unsupported_protocol_version(requested.clone(), supported.clone()));
            }
            Self::ClaimMismatch(error) => return Some((**error).clone()),
            Self::MissingCapability { required } => {
                return Some(ErrorObject::missing_required_client_capability((**required).clone()));
            }
            Self::StrayNotification(_) | Self::StrayResponse(_) | Self::IdAsText(_) | Self::NotReading => return None,
            Self::TooLong { .. }
            | Self::BatchNotAllowed
            | Self::DuplicateId(_)
            | Self::IdTooLong { .. }
            | Self::InitializedTwice
            | Self::InitializedDifferently
            | Self::InitializedWhileBusy
            | Self::TooEarly(_) => ErrorCode::INVALID_REQUEST,
            Self::UnknownMethod(_) | Self::NeedsSession(_) => ErrorCode::METHOD_NOT_FOUND,
            Self::InvalidParams(_) => ErrorCode::INVALID_PARAMS,
            Self::TooManyRequests | Self::TooManyListenStreams | Self::TooManySubscriptions => {
                ErrorCode::INTERNAL_ERROR
            }
        };
        Some(ErrorObject::new(code, self.to_string()))
    }
}

/// How a call to the peer ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer answered with an error.
    #[error("the peer refused: {0}")]
    Rejected(ErrorObject),
    /// We cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The peer did not answer in time.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// The connection ended.
    #[error("the connection ended")]
    Disconnected,
    /// The peer's answer is not a response.
    #[error("the peer's answer is invalid")]
    InvalidResponse,
    /// The peer's answer is longer than the driver reads.
    #[error("the answer has more than {limit} bytes; `line_limit` of this side's transport allows no more")]
    TooLong {
        /// The limit that was hit.
        limit: usize,
    },
    /// An HTTP status came instead of an answer.
    #[error("the server responded with HTTP status {status}{}", because(.reason))]
    Status {
        /// The status.
        status: u16,
        /// An excerpt of what the server said with it, in one line.
        reason: Option<String>,
    },
    /// The server does not know the session any more, so it did not look at the call.
    #[error("the server does not know the session any more")]
    SessionLost,
}

/// Formats an optional reason as the end of a sentence.
pub(crate) fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}
