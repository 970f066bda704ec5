//! The events of a server's connection.

use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{LoggingLevel, Method, ProgressNotificationParams, Revision, SubscriptionFilter};

use super::handshake::HandshakeRequest;
use super::in_flight::Responder;
use super::scope::RequestScope;
use super::transmit::Route;
use crate::errors::{CallError, PeerMisbehaved};
use crate::handled_message::HandledMessage;
use crate::{CallId, RequestKey};

/// An event for the application.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request of the client. Respond with the responder.
    Request {
        /// The properties of the request.
        scope: Arc<RequestScope>,
        /// The parameters, or an empty object.
        params: PayloadBuf,
        /// The right to respond.
        responder: Responder,
    },
    /// The client cancelled a request. A response will not be sent.
    Cancelled {
        /// The request.
        request: RequestKey,
        /// The reason that the client gave.
        reason: Option<String>,
    },
    /// A request ended while it waited for others to finish: it was cancelled, or the connection was closed.
    /// [`ServerConfig::observed`](super::ServerConfig::observed) is set. There is no other event for it.
    CancelledInQueue {
        /// The properties of the request.
        scope: Arc<RequestScope>,
        /// The parameters, or an empty object.
        params: PayloadBuf,
    },
    /// A notification that the kernel does not process.
    Notification {
        /// The method.
        method: Method,
        /// The parameters, or an empty object.
        params: PayloadBuf,
    },
    /// A legacy client wants to begin, and
    /// [`ServerConfig::intercept_initialize`](super::ServerConfig::intercept_initialize) is set. Accept or refuse it with
    /// [`accept_handshake`](super::Connection::accept_handshake) or
    /// [`refuse_handshake`](super::Connection::refuse_handshake).
    Handshake(Box<HandshakeRequest>),
    /// The handshake is complete.
    Initialized,
    /// The client set the log level of the connection.
    LogLevel(LoggingLevel),
    /// A subscription of a legacy client to a resource begins or ends: by a request of the client, with the connection, or
    /// because another process changed the session.
    Subscription {
        /// The URI of the resource.
        uri: String,
        /// Whether the client is subscribed now.
        active: bool,
    },
    /// The client opened a listen stream. It gets the changes of [`publish`](super::Connection::publish).
    Listening {
        /// The properties of the request.
        scope: Arc<RequestScope>,
        /// The filter that was acknowledged.
        filter: SubscriptionFilter,
    },
    /// A listen stream ended.
    ListeningEnded(RequestKey),
    /// A call to the client ended. There is exactly one such event for each call.
    CallFinished {
        /// The call.
        call: CallId,
        /// The result, or the error.
        outcome: Result<PayloadBuf, CallError>,
    },
    /// The client reported progress of a call.
    CallProgress {
        /// The call.
        call: CallId,
        /// The progress.
        progress: Box<ProgressNotificationParams>,
    },
    /// The client violated the protocol or a limit. It got an error if the protocol has one for it.
    PeerMisbehaved(PeerMisbehaved),
    /// Members were removed from a result because the client's revision does not have them.
    Stripped {
        /// The revision.
        revision: Revision,
        /// The members, as `Type.member`.
        members: Vec<&'static str>,
    },
    /// A result could not be sent because the client's revision cannot express it. The client got an internal error.
    NotExpressible {
        /// The request.
        request: RequestKey,
        /// The types and members that the revision does not have.
        what: Vec<&'static str>,
    },
    /// Messages were dropped because the client does not read the route fast enough.
    Dropped {
        /// The route.
        route: Route,
        /// The number of messages.
        count: usize,
    },
    /// The kernel handled a request or a notification by itself, and
    /// [`ServerConfig::observed`](super::ServerConfig::observed) is set.
    Handled(Box<HandledMessage>),
    /// The number of requests that wait for others to finish changed, and
    /// [`ServerConfig::observed`](super::ServerConfig::observed) is set.
    QueueLength(usize),
    /// The connection is closed. This is the last event.
    Closed,
}
