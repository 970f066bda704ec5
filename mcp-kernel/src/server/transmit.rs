//! Outgoing messages of a server, and where they belong.

use mcp_types::ErrorCode;
use mcp_types::jsonrpc::EncodedMessage;

use crate::RequestKey;

/// Where a message belongs; a transport maps it to a line on its one stream, or to one of several streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Route {
    /// The answer to a request; the last message for it.
    Reply(RequestKey),
    /// Something that belongs to a request which is still open.
    Related(RequestKey),
    /// Something that a listen request asked for.
    Listen(RequestKey),
    /// Something that belongs to the connection as a whole.
    Standalone,
}

impl Route {
    /// What shares a stream, and so keeps its order: all that belongs to one request, or to the connection.
    pub(crate) const fn stream(self) -> Option<RequestKey> {
        match self {
            Self::Reply(key) | Self::Related(key) | Self::Listen(key) => Some(key),
            Self::Standalone => None,
        }
    }
}

/// One message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not sent is lost"]
#[non_exhaustive]
pub struct Transmit {
    /// Where it belongs.
    pub route: Route,
    /// The message.
    pub message: EncodedMessage,
    /// What is wrong, if it is an error: for transports that say so beside the message.
    pub failure: Option<Failure>,
}

/// Why a request was answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Failure {
    /// It broke a rule of the protocol, and nobody worked on it.
    Refused(ErrorCode),
    /// Whoever worked on it says so.
    Failed(ErrorCode),
}
