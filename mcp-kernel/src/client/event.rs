//! What a client's connection has to say to the application, and to the transport.

use mcp_types::jsonrpc::{EncodedMessage, PayloadBuf};
use mcp_types::{
    Implementation, LoggingMessageNotificationParams, Method, ProgressNotificationParams, RequestId, ResultType,
    Revision, ServerCapabilities, SubscriptionFilter,
};

use super::detect::{ConnectError, DetectedRevision};
use crate::CallId;
use crate::Change;
use crate::errors::{CallError, PeerMisbehaved};

/// Something for the transport to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is not done is lost"]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Transmit {
    /// Send a message; where each call has a stream of its own, on that of `call`.
    Send {
        /// The call that the message opens, if it opens one.
        call: Option<CallId>,
        /// What it asks for or tells; nothing, if it is an answer.
        method: Option<Method>,
        /// The revision that it is written in; nothing, where that is still to be agreed on.
        revision: Option<Revision>,
        /// The message.
        message: EncodedMessage,
    },
    /// Close the stream of a call, which gives it up.
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

    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Send { method: None, .. })
    }
}

/// The right to answer a request of the server, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request that is not answered keeps the server waiting"]
pub struct Responder {
    pub(super) id: RequestId,
    pub(super) generation: u64,
}

impl Responder {
    /// The id of the request that this answers, by which [`Event::RequestCancelled`] names it.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }
}

/// News for the application, in the order in which they happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server can be talked to.
    Ready {
        /// The revision that is used.
        revision: Revision,
        /// What the server said about itself.
        server: Box<ServerFacts>,
    },
    /// The server died of the probe: it is legacy, and needs a new process and a new connection.
    RestartNeeded {
        /// What to start the new connection with, so that it does not probe again.
        detected: DetectedRevision,
    },
    /// The server cannot be talked to.
    Failed(ConnectError),
    /// A call ended: exactly one such event for each call.
    CallFinished {
        /// The call.
        call: CallId,
        /// How it ended.
        outcome: Result<Outcome, CallError>,
    },
    /// The server reports progress of a call.
    CallProgress {
        /// The call.
        call: CallId,
        /// What it reports.
        progress: ProgressNotificationParams,
    },
    /// The server sent a log message.
    Log(LoggingMessageNotificationParams),
    /// The server will tell of these changes on a subscription.
    Listening {
        /// The subscription.
        call: CallId,
        /// What it honours.
        filter: SubscriptionFilter,
    },
    /// Something changed.
    Changed {
        /// The subscription that told, in the modern era.
        call: Option<CallId>,
        /// What changed.
        change: Change,
    },
    /// The server asks for something, in the legacy era; answer with the responder.
    Request {
        /// What is asked for.
        method: Method,
        /// The parameters; an empty object where there were none.
        params: PayloadBuf,
        /// The right to answer.
        responder: Responder,
    },
    /// The server does not want an answer any more.
    RequestCancelled {
        /// The id of the request.
        id: RequestId,
    },
    /// The server tells something that the kernel does not know.
    Notification {
        /// What is told.
        method: Method,
        /// The parameters; an empty object where there were none.
        params: PayloadBuf,
    },
    /// The server broke a rule.
    PeerMisbehaved(PeerMisbehaved),
    /// The connection is over: the last event.
    Closed,
}

/// What a server says about itself; nothing, where the client did not have to ask.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// What it offers.
    pub capabilities: Option<ServerCapabilities>,
    /// Who it says it is: for display and logs only.
    pub info: Option<Implementation>,
    /// How it is best used, for the model to read.
    pub instructions: Option<String>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the call is complete, or the server asks for input; older servers always complete.
    pub result_type: ResultType,
    /// The result.
    pub result: PayloadBuf,
}
