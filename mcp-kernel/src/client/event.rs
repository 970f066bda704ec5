//! The events of a client's connection, and the actions of its transport.

use mcp_types::jsonrpc::{EncodedMessage, PayloadBuf};
use mcp_types::{
    CacheScope, DiscoverResult, Implementation, LoggingMessageNotificationParams, Method, ProgressNotificationParams,
    RequestId, ResultType, Revision, ServerCapabilities, SubscriptionFilter,
};
use serde::{Deserialize, Serialize};

use super::detect::{ConnectError, DetectedRevision};
use crate::CallId;
use crate::Change;
use crate::errors::{CallError, PeerMisbehaved};
use crate::handled_message::HandledMessage;

/// An action for the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is not done is lost"]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Transmit {
    /// Sends a message, on the stream of `call` where each call has its own.
    Send {
        /// The call that the message starts, if any.
        call: Option<CallId>,
        /// The method, or `None` for a response.
        method: Option<Method>,
        /// The revision of the message, or `None` for `initialize`.
        revision: Option<Revision>,
        /// The headers of the call that it opens, as they were given to
        /// [`Connection::call_with_headers`](super::Connection::call_with_headers).
        headers: CallHeaders,
        /// The message.
        message: EncodedMessage,
    },
    /// Closes the stream of a call, which cancels it.
    Abort {
        /// The call.
        call: CallId,
    },
}

impl Transmit {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Send { message, .. } => message.len(),
            Self::Abort { .. } => 0,
        }
    }

    pub(super) fn is_response(&self) -> bool {
        matches!(self, Self::Send { method: None, .. })
    }
}

/// The values of the headers that repeat parameters of a call, for transports with headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallHeaders {
    /// The value of `Mcp-Name`: the name of a tool or prompt, the URI of a resource, or the id of a task.
    pub name: Option<String>,
    /// The names and values of the `Mcp-Param-` headers; names are without the prefix.
    pub params: Vec<(String, String)>,
}

impl CallHeaders {
    /// Creates the headers of a call.
    #[must_use]
    pub fn new(name: Option<String>, params: Vec<(String, String)>) -> Self {
        Self { name, params }
    }
}

/// The right to respond to a request of the server, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request without a response keeps the server waiting"]
pub struct Responder {
    pub(super) id: RequestId,
    pub(super) generation: u64,
}

impl Responder {
    /// Returns the id of the request, as in [`Event::RequestCancelled`].
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }
}

/// An event for the application.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The connection is ready for calls.
    Ready {
        /// The revision.
        revision: Revision,
        /// The description of the server.
        server: Box<ServerFacts>,
    },
    /// The server exited because of the probe. It is legacy, and needs a new process and a new connection.
    RestartNeeded {
        /// The argument of [`start`](super::Connection::start) for the new connection, which skips the probe.
        detected: DetectedRevision,
    },
    /// No connection could be made.
    Failed(ConnectError),
    /// A call ended. There is exactly one such event for each call.
    CallFinished {
        /// The call.
        call: CallId,
        /// The result, or the error.
        outcome: Result<CallResult, CallError>,
    },
    /// The server reported progress of a call.
    CallProgress {
        /// The call.
        call: CallId,
        /// The progress.
        progress: ProgressNotificationParams,
    },
    /// The server sent a log message.
    Log {
        /// The log message.
        log: LoggingMessageNotificationParams,
        /// The call that it belongs to, if that is known: see [`Connection`](super::Connection#related-calls).
        related: Option<CallId>,
    },
    /// The server acknowledged a listen stream.
    Listening {
        /// The call of the stream.
        call: CallId,
        /// The filter that the server accepted.
        filter: SubscriptionFilter,
    },
    /// The server notified of a change.
    Changed {
        /// The call of the listen stream, in the modern era.
        call: Option<CallId>,
        /// The change.
        change: Change,
    },
    /// A request of a legacy server. Respond with the responder.
    Request {
        /// The method.
        method: Method,
        /// The parameters, or an empty object.
        params: PayloadBuf,
        /// The right to respond.
        responder: Responder,
        /// The call that it belongs to, if that is known: see [`Connection`](super::Connection#related-calls).
        related: Option<CallId>,
    },
    /// The server cancelled a request.
    RequestCancelled {
        /// The id of the request.
        id: RequestId,
    },
    /// A notification that the kernel does not process.
    Notification {
        /// The method.
        method: Method,
        /// The parameters, or an empty object.
        params: PayloadBuf,
        /// The call that it belongs to, if that is known: see [`Connection`](super::Connection#related-calls).
        related: Option<CallId>,
    },
    /// The kernel handled a request of the server by itself, or the server sent a notification, and
    /// [`ClientConfig::observed`](super::ClientConfig::observed) is set. A notification may have an event of its own, too.
    Handled(Box<HandledMessage>),
    /// A request that the connection sent by itself ended: the probe or the handshake.
    /// [`ClientConfig::observed`](super::ClientConfig::observed) is set.
    OwnCallFinished {
        /// The call.
        call: CallId,
        /// Why it failed, if it did.
        error: Option<CallError>,
    },
    /// The server violated the protocol or a limit.
    PeerMisbehaved(PeerMisbehaved),
    /// The connection is closed. This is the last event.
    Closed,
}

/// The description of a server. It is empty if the client did not have to request it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The capabilities of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ServerCapabilities>,
    /// The name and version of the server. They are not verified: use them for display and logs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Implementation>,
    /// Instructions for the model on how to use the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whether the description is the same for all users, as a modern server declares it with the cache scope `public`.
    pub is_public: bool,
}

impl From<DiscoverResult> for ServerFacts {
    fn from(found: DiscoverResult) -> Self {
        Self {
            capabilities: Some(found.capabilities),
            info: found.meta.and_then(|meta| meta.server_info),
            instructions: found.instructions,
            is_public: found.cache_scope == Some(CacheScope::PUBLIC),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallResult {
    /// Whether the call is complete, or the server requests input. Legacy results are always complete.
    pub result_type: ResultType,
    /// The result.
    pub result: PayloadBuf,
}
