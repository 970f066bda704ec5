//! What servers, clients and transports report for metrics.
//!
//! An [`Observer`] is set on a server or a client, and gets an [`Observation`] of each request, notification and session, and
//! of what transports refuse, close or drop. All of it is plain data. The state machines of this crate do not call it; the
//! crates above do, which know the time and the transport. Without an observer nothing is measured.
//!
//! The crate `mcp-telemetry` has an observer that records OpenTelemetry metrics.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_types::{ErrorCode, Method, Revision};

use crate::errors::CallError;

/// Receives observations. It is called in the middle of requests, so it must not block, and it must not panic.
pub trait Observer: Send + Sync {
    /// Receives an observation.
    fn observe(&self, observation: &Observation<'_>);

    /// Receives a source of values, which can be read whenever metrics are collected, until it has
    /// [ended](MetricSource::is_ended). The same source may be received several times.
    ///
    /// By default it is ignored.
    fn watch(&self, source: Arc<dyn MetricSource>) {
        drop(source);
    }
}

/// An event for metrics.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A request was received or sent.
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
    /// A connection was closed, or a stream of it was reset, because its client did not read.
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

/// A side of a connection or of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has two roles")]
pub enum Role {
    /// The client of a connection, or the sender of an operation.
    Client,
    /// The server of a connection, or the receiver of an operation.
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
    /// Whether it was received or sent. By the OpenTelemetry conventions, the sender of a request is its client, also if it is
    /// the server of the connection, such as for an elicitation.
    pub role: Role,
    /// The method. A peer can choose any name.
    pub method: &'a Method,
    /// Whether it is a notification, which ends without a start.
    pub is_notification: bool,
    /// The name of the tool or prompt. A server reports only names that are registered, and only when the operation has ended.
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

impl OperationOutcome {
    /// Returns the outcome of a call that failed.
    #[must_use]
    pub fn of_call_error(error: &CallError) -> Self {
        match error {
            CallError::Rejected(error) => Self::Error(error.code),
            CallError::Status { status, .. } => Self::Status(*status),
            CallError::TimedOut => Self::TimedOut,
            CallError::Cancelled => Self::Cancelled,
            CallError::Disconnected
            | CallError::InvalidResponse
            | CallError::TooLong { .. }
            | CallError::SessionLost => Self::Failed,
        }
    }

    /// Returns the value of `error.type` in the OpenTelemetry conventions, if the operation failed.
    #[must_use]
    pub fn error_type(self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Completed | Self::InputRequired => return None,
            Self::ToolError => "tool_error".into(),
            Self::Error(code) => code.to_string().into(),
            Self::Status(status) => status.to_string().into(),
            Self::Cancelled => "cancelled".into(),
            Self::TimedOut => "timeout".into(),
            Self::Failed => "_OTHER".into(),
        })
    }
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

/// A source of values that are read when metrics are collected. It has plain values only: it is read, and dropped, in the
/// thread that collects metrics, so it must not own anything of the application.
pub trait MetricSource: Send + Sync {
    /// Reports each value.
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64));

    /// Returns whether the values do not change any more, so that the source need not be read again.
    fn is_ended(&self) -> bool;
}

/// A value of a [`MetricSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceMetric {
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
    /// The number of stored events that were dropped since the start because of a limit, so that they cannot be replayed.
    EventsDropped,
    /// The number of tasks whose handlers work in this process.
    WorkingTasks,
    /// The number of tasks whose handlers wait for input in the memory of this process.
    WaitingTasks,
    /// The number of tasks in the queue of the store, which several processes may share and report.
    QueuedTasks,
    /// The number of tasks that were created since the start.
    TasksCreated,
    /// The number of tasks that finished since the start, with a status such as `completed`.
    TasksFinished(&'static str),
    /// The number of calls that did not become tasks since the start, for a reason such as `full`.
    TasksRefused(&'static str),
    /// The number of times that tasks began to wait for input since the start.
    TaskInputRounds,
    /// The number of tasks since the start that this process runs because the lease of an earlier run had expired.
    TasksTakenOver,
}

impl SourceMetric {
    /// Returns whether the value is a number of events since the start, which never decreases.
    #[must_use]
    pub fn is_counter(self) -> bool {
        match self {
            Self::ActiveSessions
            | Self::IdleSessions
            | Self::IdleSessionBytes
            | Self::WorkingTasks
            | Self::WaitingTasks
            | Self::QueuedTasks => false,
            Self::SessionsEnded(_)
            | Self::SessionsRefused(_)
            | Self::EventsReplayed
            | Self::EventsLost
            | Self::EventsDropped
            | Self::TasksCreated
            | Self::TasksFinished(_)
            | Self::TasksRefused(_)
            | Self::TaskInputRounds
            | Self::TasksTakenOver => true,
        }
    }
}
