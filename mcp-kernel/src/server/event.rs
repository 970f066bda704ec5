//! What a connection has to say to the application.

use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{LoggingLevel, Method, ProgressNotificationParams, Revision, SubscriptionFilter};

use super::in_flight::Responder;
use super::scope::RequestScope;
use super::transmit::Route;
use crate::errors::{CallError, PeerMisbehaved};
use crate::{CallId, RequestKey};

/// News for the application, in the order in which they happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The client asks for something; answer with the responder.
    Request {
        /// What holds for the request.
        scope: Arc<RequestScope>,
        /// The parameters; an empty object where there were none.
        params: PayloadBuf,
        /// The right to answer.
        responder: Responder,
    },
    /// The client does not want the answer any more: stop the work. Whatever is answered now goes nowhere.
    Cancelled {
        /// The request.
        request: RequestKey,
        /// What the client says about it.
        reason: Option<String>,
    },
    /// The client tells something that the kernel does not act on by itself.
    Notification {
        /// What is told.
        method: Method,
        /// The parameters; an empty object where there were none.
        params: PayloadBuf,
    },
    /// The handshake is complete.
    Initialized,
    /// The client chose a log level for the connection.
    LogLevel(LoggingLevel),
    /// The client subscribed to a resource, or ended that.
    Subscription {
        /// The address of the resource.
        uri: String,
        /// Whether it is subscribed to from now on.
        active: bool,
    },
    /// The client listens for changes; they go out with `publish`.
    Listening {
        /// What holds for the request.
        scope: Arc<RequestScope>,
        /// What the server acknowledged.
        filter: SubscriptionFilter,
    },
    /// A subscription ended.
    ListeningEnded(RequestKey),
    /// A call to the client ended: exactly one such event for each call.
    CallFinished {
        /// The call.
        call: CallId,
        /// How it ended.
        outcome: Result<PayloadBuf, CallError>,
    },
    /// The client reports progress of a call.
    CallProgress {
        /// The call.
        call: CallId,
        /// What it reports.
        progress: Box<ProgressNotificationParams>,
    },
    /// The client broke a rule; it was told where the protocol wants that.
    PeerMisbehaved(PeerMisbehaved),
    /// Members were left out of a message because the client's revision lacks them.
    Stripped {
        /// The revision.
        revision: Revision,
        /// The members, as `Type.member`.
        members: Vec<&'static str>,
    },
    /// An answer could not be expressed in the client's revision; the client got an internal error instead.
    NotExpressible {
        /// The request.
        request: RequestKey,
        /// What is in the way.
        what: Vec<&'static str>,
    },
    /// Messages were dropped because nobody reads the route fast enough.
    Dropped {
        /// The route.
        route: Route,
        /// How many.
        count: usize,
    },
    /// The connection is over: the last event.
    Closed,
}
