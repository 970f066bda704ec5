//! What servers, clients and transports report for metrics.
//!
//! An [`Observer`] is set on a server or a client, and gets an [`Observation`] of each request, notification and session, and
//! of what transports refuse, close or drop. All of it is plain data. The state machines of this crate do not call it; the
//! crates above do, which know the time and the transport. Without an observer nothing is measured.
//!
//! The crate `mcp-telemetry` has an observer that records OpenTelemetry metrics.

use std::sync::Weak;
use std::time::Duration;

use mcp_types::{ErrorCode, Method, Revision};

/// Receives observations. It is called in the middle of requests, so it must not block, and it must not panic.
pub trait Observer: Send + Sync {
    /// Receives an observation.
    fn observe(&self, observation: &Observation<'_>);

    /// Receives a source of current values, which can be read whenever metrics are collected. The source ends with the
    /// transport that it belongs to.
    ///
    /// By default it is ignored.
    fn watch(&self, source: Weak<dyn Gauges>) {
        drop(source);
    }
}

/// An event for metrics.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A request was received by a server, or sent by a client.
    OperationStarted(&'a Operation<'a>),
    /// A request ended, or a notification was handled or sent. Each operation that started ends exactly once; a notification
    /// has no start.
    OperationEnded(&'a Operation<'a>, OperationEnd),
    /// A client got input requests in response to a call, and continues the call with its responses. A server's round is the
    /// end of an operation, with [`OperationOutcome::InputRequired`].
    InputRound(&'a Operation<'a>),
    /// A connection began: a session, a process, a socket, or a single request of a server without sessions.
    SessionStarted(&'a Session),
    /// A connection ended.
    SessionEnded(&'a Session, SessionEnd),
    /// The number of requests that wait for others to finish changed by this much.
    Queued(i64),
    /// A transport refused a request before it reached the server.
    Refused(Refused),
    /// A stream of events was opened.
    StreamOpened(StreamKind),
    /// A stream of events ended.
    StreamClosed(StreamKind),
    /// A connection was closed because its client did not read.
    SlowReader,
    /// As many messages were dropped, because there was no room or no stream for them.
    MessagesDropped(usize),
    /// A client looked for a result in its cache.
    CacheLookup {
        /// Whether the result was there.
        is_hit: bool,
    },
    /// A client started a server process again.
    ChildRestarted,
    /// A login ended.
    Login {
        /// Whether there are tokens now.
        is_successful: bool,
    },
    /// A refresh of tokens ended.
    TokenRefresh {
        /// Whether there are new tokens now.
        is_successful: bool,
    },
}

/// Which peer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has two roles")]
pub enum Role {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Network {
    /// Within the process, or by a transport that does not say what it is.
    #[default]
    InProcess,
    /// The standard streams of a process.
    Stdio,
    /// A Unix domain socket.
    Unix,
    /// A TCP socket with one message per line.
    Tcp,
    /// HTTP.
    Http,
}

impl Network {
    /// Returns the value of `network.transport` in the OpenTelemetry conventions, if there is one.
    #[must_use]
    pub fn transport_name(self) -> Option<&'static str> {
        match self {
            Self::InProcess => None,
            Self::Stdio => Some("pipe"),
            Self::Unix => Some("unix"),
            Self::Tcp | Self::Http => Some("tcp"),
        }
    }

    /// Returns the value of `network.protocol.name` in the OpenTelemetry conventions, if there is one.
    #[must_use]
    pub fn protocol_name(self) -> Option<&'static str> {
        (self == Self::Http).then_some("http")
    }
}

/// A request or a notification.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// Which peer reports: the server that received it, or the client that sent it.
    pub role: Role,
    /// The method. A client can choose any name.
    pub method: &'a Method,
    /// Whether it is a notification, which ends without a start.
    pub is_notification: bool,
    /// The name of the tool or prompt. A server reports only names that are registered.
    pub target: Option<&'a str>,
    /// The revision, if it is known.
    pub revision: Option<Revision>,
    /// How messages travel.
    pub network: Network,
}

impl<'a> Operation<'a> {
    /// Creates the description of a request without a target and a revision.
    #[must_use]
    pub fn new(role: Role, method: &'a Method) -> Self {
        Self { role, method, is_notification: false, target: None, revision: None, network: Network::InProcess }
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationEnd {
    /// The outcome.
    pub outcome: OperationOutcome,
    /// The time since it started. Absent where there is no clock.
    pub duration: Option<Duration>,
}

impl OperationEnd {
    /// Creates the description of an end.
    #[must_use]
    pub fn new(outcome: OperationOutcome, duration: Option<Duration>) -> Self {
        Self { outcome, duration }
    }
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationOutcome {
    /// A result, or nothing for a notification.
    Completed,
    /// Input requests, after which the client retries.
    InputRequired,
    /// A tool result with `isError`.
    ToolError,
    /// An error response.
    Error(ErrorCode),
    /// An HTTP status instead of a response.
    Status(u16),
    /// The operation was cancelled, or its connection ended.
    Cancelled,
    /// There was no response in time.
    TimedOut,
    /// Another failure of the client or the transport.
    Failed,
}

/// A connection, as metrics see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// Which peer reports.
    pub role: Role,
    /// Whether it can have more than one request.
    pub is_lasting: bool,
    /// The revision, if it is known.
    pub revision: Option<Revision>,
    /// How messages travel.
    pub network: Network,
}

impl Session {
    /// Creates the description of a connection, whose revision is not known yet.
    #[must_use]
    pub fn new(role: Role, is_lasting: bool) -> Self {
        Self { role, is_lasting, revision: None, network: Network::InProcess }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEnd {
    /// The time since it started. Absent where there is no clock.
    pub duration: Option<Duration>,
    /// What failed, if it did not end as intended: a short name such as `timeout`.
    pub error: Option<&'static str>,
}

impl SessionEnd {
    /// Creates the description of an end without an error.
    #[must_use]
    pub fn new(duration: Option<Duration>) -> Self {
        Self { duration, error: None }
    }
}

/// Why a transport refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refused {
    /// The status of the HTTP response.
    pub status: u16,
}

impl Refused {
    /// Creates a refusal with a status.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status }
    }
}

/// What a stream of events is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamKind {
    /// The response to a request.
    Response,
    /// The notifications of `subscriptions/listen`.
    Listen,
    /// The standalone stream of a session.
    Standalone,
}

/// A source of current values.
pub trait Gauges: Send + Sync {
    /// Reports each value.
    fn read(&self, report: &mut dyn FnMut(Gauge, u64));
}

/// A value of a [`Gauges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gauge {
    /// The number of sessions with a request or a stream.
    ActiveSessions,
    /// The number of sessions without any.
    IdleSessions,
    /// The number of bytes in idle sessions.
    IdleSessionBytes,
    /// The number of sessions that ended since the start, for a reason such as `idle`.
    SessionsEnded(&'static str),
    /// The number of refused attempts to begin or enter a session since the start, for a reason such as `unknown`.
    SessionsRefused(&'static str),
    /// The number of events that were replayed since the start.
    EventsReplayed,
    /// The number of messages of sessions that were lost since the start, because there was no stream to send them on.
    EventsLost,
}
