//! Outgoing messages of a server.

use mcp_types::ErrorCode;
use mcp_types::jsonrpc::EncodedMessage;

use crate::RequestKey;

/// The route of a message. A transport maps it to its only stream, or to one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Route {
    /// The response to a request, which is the last message for it.
    Reply(RequestKey),
    /// A message that belongs to a request in flight.
    Related(RequestKey),
    /// A message of a listen stream.
    Listen(RequestKey),
    /// A message that belongs to the connection.
    Standalone,
}

impl Route {
    /// The stream of a route, within which messages stay in order: one for each request, and one for the connection.
    pub(crate) const fn stream(self) -> Option<RequestKey> {
        match self {
            Self::Reply(key) | Self::Related(key) | Self::Listen(key) => Some(key),
            Self::Standalone => None,
        }
    }
}

/// An outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not sent is lost"]
#[non_exhaustive]
pub struct Transmit {
    /// The route.
    pub route: Route,
    /// The message.
    pub message: EncodedMessage,
    /// The origin of the error, if the message is an error response; HTTP transports derive the status from it.
    pub failure: Option<Failure>,
}

/// The origin of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Failure {
    /// The kernel refused the request. The application has not processed it.
    Refused(ErrorCode),
    /// The application returned the error.
    Failed(ErrorCode),
}
