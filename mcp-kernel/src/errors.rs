//! Errors, by the party that can act on them.

use std::borrow::Cow;

use mcp_types::jsonrpc::InvalidMessage;
use mcp_types::{
    ClientCapabilities, ClientCapability, ErrorCode, ErrorObject, Method, ProtocolVersion, RequestId, Revision,
};

/// The error of a command that was not executed. Nothing was sent.
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
    #[error("no request can be sent to the client: {0}")]
    NoBackChannel(&'static str),
    /// The peer's revision does not have the method in this direction.
    #[error("revision {revision} does not have `{method}` in this direction")]
    NotInRevision {
        /// The method.
        method: Method,
        /// The revision of the peer.
        revision: Revision,
    },
    /// Another command sends this message.
    #[error("`{0}` is sent by another command")]
    Reserved(Method),
    /// The client did not declare the capability for the request.
    #[error("the client did not declare `{}`", .0.name())]
    MissingCapability(ClientCapability),
    /// The request or call is not in flight.
    #[error("the request has ended")]
    Ended,
    /// The parameters are not a JSON object.
    #[error("the parameters are not a JSON object")]
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

/// A violation of the protocol or of a limit by the peer. The connection goes on unless stated otherwise.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// The text is not a JSON-RPC message.
    #[error("{0}")]
    InvalidMessage(Box<InvalidMessage>),
    /// The message is longer than the transport accepts.
    #[error("a message must not have more than {limit} bytes (`line_limit` of the receiving side)")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The message is a batch, which only revision 2025-03-26 has.
    #[error("a batch is not allowed here")]
    BatchNotAllowed,
    /// The id of a request is that of another request in flight.
    #[error("the id {0} is in use")]
    DuplicateId(RequestId),
    /// The id of a request is longer than [`Limits::max_id_bytes`](crate::Limits::max_id_bytes).
    #[error("the id has more than {limit} bytes (`max_id_bytes`)")]
    IdTooLong {
        /// The limit.
        limit: usize,
    },
    /// `initialize` was sent twice.
    #[error("`initialize` was sent before")]
    InitializedTwice,
    /// `initialize` was sent twice, the second time with another version or other capabilities.
    #[error(
        "`initialize` was sent before, with another version or other capabilities; clients that share this connection \
         through a gateway need a server with `ServeOptions::shared_pipe`"
    )]
    InitializedDifferently,
    /// `initialize` was sent twice, the second time with another version or other capabilities and while requests were
    /// in flight, on a connection that several clients share.
    #[error("`initialize` was sent before, with another version or other capabilities, and requests are in flight")]
    InitializedWhileBusy,
    /// A request was sent before the handshake was complete.
    #[error("`{0}` was sent before the handshake was complete")]
    TooEarly(Method),
    /// The revision does not have the method, or the server did not declare the capability for it.
    #[error("the method `{0}` is not supported")]
    UnknownMethod(Method),
    /// The peer may not send this notification in its revision. It is ignored.
    #[error("the notification `{0}` is not allowed here")]
    StrayNotification(Method),
    /// A response has no matching request in flight. It is ignored.
    #[error("a response without a request in flight")]
    StrayResponse(Option<RequestId>),
    /// The id of a response is the text of the number that was sent. It is accepted, and reported once per connection.
    #[error("the id {0} was returned as text")]
    IdAsText(RequestId),
    /// The method needs a session, which this connection does not have.
    #[error("`{0}` needs a session, and sessions are disabled on this server")]
    NeedsSession(Method),
    /// The parameters or the `_meta` of a request are not valid.
    #[error("{0}")]
    InvalidParams(Cow<'static, str>),
    /// The protocol version is not supported.
    #[error("the protocol version {requested} is not supported")]
    UnsupportedVersion {
        /// The version of the request.
        requested: ProtocolVersion,
        /// The versions that the client may use instead.
        supported: Vec<ProtocolVersion>,
    },
    /// The request does not match the claims of its transport, such as HTTP headers.
    #[error("{}", .0.message)]
    ClaimMismatch(Box<ErrorObject>),
    /// The method belongs to an extension that the client did not declare.
    #[error("the client did not declare the extension of this method")]
    MissingCapability {
        /// The capabilities that the client has to declare.
        required: Box<ClientCapabilities>,
    },
    /// The peer sends requests and does not read the responses. The connection is closed.
    #[error("the peer does not read the responses to its requests")]
    NotReading,
    /// Too many requests are in flight.
    #[error("too many requests are in flight (`max_in_flight`)")]
    TooManyRequests,
    /// Too many `subscriptions/listen` streams are open.
    #[error("too many listen streams are open (`max_listen_streams`)")]
    TooManyListenStreams,
    /// Too many resources are subscribed to.
    #[error("too many resources are subscribed to (`max_subscriptions`, `max_subscription_bytes`)")]
    TooManySubscriptions,
}

impl PeerMisbehaved {
    /// Returns the error that is sent to the peer, if any.
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

/// The error of a call: why it ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer responded with an error.
    #[error("the peer responded with an error: {0}")]
    Rejected(ErrorObject),
    /// The call was cancelled by this side, or a subscription by the server.
    #[error("the call was cancelled")]
    Cancelled,
    /// The peer did not respond in time.
    #[error("the peer did not respond in time")]
    TimedOut,
    /// The connection, or the stream of the call, ended.
    #[error("the connection ended")]
    Disconnected,
    /// The response of the peer is not valid.
    #[error("the response of the peer is not valid")]
    InvalidResponse,
    /// The response is longer than the transport accepts.
    #[error("the response has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The server responded with an HTTP status and no JSON-RPC message.
    #[error("the server responded with HTTP status {status}{}", because(.reason))]
    Status {
        /// The HTTP status.
        status: u16,
        /// An excerpt of the response body, on one line.
        reason: Option<String>,
    },
    /// The server does not know the session. It has not processed the call.
    #[error("the server does not know the session")]
    SessionLost,
}

/// Formats an optional reason as the end of a sentence.
pub(crate) fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}
