//! Reports messages and the connection to the observer of a client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::Time;
use mcp_kernel::client::HandledMessage;
use mcp_kernel::observe::{Network, Observation, Operation, OperationEnd, OperationOutcome, Role, Session, SessionEnd};
use mcp_types::{ErrorCode, Method, Revision};

use crate::close_reason::CloseReason;
use crate::error::Error;
use crate::state::Shared;
use crate::state::own_calls::OwnCall;

/// A request that was reported as started. It is reported as ended when it is dropped.
pub(crate) struct ObservedCall<'a> {
    shared: Arc<Shared>,
    role: Role,
    method: Method,
    target: Option<Cow<'a, str>>,
    start: Time,
    outcome: OperationOutcome,
}

impl<'a> ObservedCall<'a> {
    /// Reports the start of a call, if there is an observer. If it is not told otherwise, the call is cancelled.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        method: &Method,
        target: impl FnOnce() -> Option<Cow<'a, str>>,
    ) -> Option<Self> {
        Self::begin(shared, Role::Client, method, target)
    }

    /// Reports that a request of the server is handled.
    pub(crate) fn received(shared: &Arc<Shared>, method: &Method) -> Option<Self> {
        Self::begin(shared, Role::Server, method, || None)
    }

    fn begin(
        shared: &Arc<Shared>,
        role: Role,
        method: &Method,
        target: impl FnOnce() -> Option<Cow<'a, str>>,
    ) -> Option<Self> {
        let observer = shared.settings.observer.as_ref()?;
        let (method, target, start) = (method.clone(), target(), shared.now());
        let call =
            Self { shared: Arc::clone(shared), role, method, target, start, outcome: OperationOutcome::Cancelled };
        observer.observe(&Observation::OperationStarted(&call.operation()));
        Some(call)
    }

    /// Sets how the call ended.
    pub(crate) fn set_outcome(&mut self, outcome: OperationOutcome) {
        self.outcome = outcome;
    }

    fn operation(&self) -> Operation<'_> {
        let mut operation = operation(&self.shared, self.role, &self.method);
        operation.target = self.target.as_deref();
        operation
    }
}

impl Drop for ObservedCall<'_> {
    fn drop(&mut self) {
        if let Some(observer) = &self.shared.settings.observer {
            let end = OperationEnd::new(self.outcome, Some(self.shared.now().duration_since(self.start)));
            if let OperationOutcome::Error(ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND) = self.outcome {
                // It may not exist: names that a caller makes up must not create series.
                self.target = None;
            }
            observer.observe(&Observation::OperationEnded(&self.operation(), end));
        }
    }
}

/// Describes a request or a notification.
fn operation<'a>(shared: &Shared, role: Role, method: &'a Method) -> Operation<'a> {
    let mut operation = Operation::new(role, method);
    (operation.revision, operation.network) = (shared.read(|core| core.revision()), shared.settings.network);
    operation
}

/// Returns the outcome of a call that failed.
pub(crate) fn outcome_of(error: &Error) -> OperationOutcome {
    match error {
        Error::Rejected(error) => OperationOutcome::Error(error.code),
        Error::Status { status, .. } => OperationOutcome::Status(*status),
        Error::TimedOut => OperationOutcome::TimedOut,
        Error::Cancelled => OperationOutcome::Cancelled,
        Error::ToolFailed(_) => OperationOutcome::ToolError,
        Error::InvalidResponse(_)
        | Error::ResponseTooLong { .. }
        | Error::Interrupted(_)
        | Error::Authorization(_)
        | Error::InvalidCertificate(_)
        | Error::Closed(_)
        | Error::Command(_)
        | Error::InvalidCapabilities(_)
        | Error::InvalidParams(_)
        | Error::InputRequestFailed { .. }
        | Error::Retry(_)
        | Error::Task(_)
        | Error::EndlessList
        | Error::ListTooLong(_) => OperationOutcome::Failed,
    }
}

/// Reports a notification that was sent.
pub(crate) fn notified(shared: &Shared, method: &Method) {
    notification(shared, Role::Client, method);
}

/// Reports a message of the server that was handled at once, with the error of its response.
pub(crate) fn handled(shared: &Shared, message: &HandledMessage) {
    if message.id.is_none() {
        return notification(shared, Role::Server, &message.method);
    }
    let Some(observer) = &shared.settings.observer else { return };
    let operation = operation(shared, Role::Server, &message.method);
    let outcome = message.error.map_or(OperationOutcome::Completed, OperationOutcome::Error);
    observer.observe(&Observation::OperationStarted(&operation));
    observer.observe(&Observation::OperationEnded(&operation, OperationEnd::new(outcome, Some(Duration::ZERO))));
}

fn notification(shared: &Shared, role: Role, method: &Method) {
    let Some(observer) = &shared.settings.observer else { return };
    let mut operation = operation(shared, role, method);
    operation.is_notification = true;
    let end = OperationEnd::new(OperationOutcome::Completed, Some(Duration::ZERO));
    observer.observe(&Observation::OperationEnded(&operation, end));
}

/// Reports the start of a request that the client sends by itself.
pub(crate) fn own_call_started(shared: &Shared, call: &OwnCall) {
    if let Some(observer) = &shared.settings.observer {
        observer.observe(&Observation::OperationStarted(&operation(shared, Role::Client, &call.method)));
    }
}

/// Reports the end of a request that the client sent by itself.
pub(crate) fn own_call_ended(shared: &Shared, call: &OwnCall, outcome: OperationOutcome, now: Time) {
    if let Some(observer) = &shared.settings.observer {
        let end = OperationEnd::new(outcome, Some(now.duration_since(call.start)));
        observer.observe(&Observation::OperationEnded(&operation(shared, Role::Client, &call.method), end));
    }
}

/// Reports that a server requires input, which the client provides itself.
pub(crate) fn input_round(shared: &Shared, method: &Method) {
    if let Some(observer) = &shared.settings.observer {
        observer.observe(&Observation::InputRound(&Operation::new(Role::Client, method)));
    }
}

/// Reports whether a result was in the cache.
pub(crate) fn cache_lookup(shared: &Shared, is_hit: bool) {
    if let Some(observer) = &shared.settings.observer {
        observer.observe(&Observation::CacheLookup { is_hit });
    }
}

/// Reports that a server process was started again.
pub(crate) fn restarted(shared: &Shared) {
    if let Some(observer) = &shared.settings.observer {
        observer.observe(&Observation::ChildRestarted);
    }
}

/// Reports that the client begins to connect.
pub(crate) fn session_started(shared: &Shared) {
    if let Some(observer) = &shared.settings.observer {
        observer.observe(&Observation::SessionStarted(&session(shared.settings.network, None)));
    }
}

/// Reports that the client is closed.
pub(crate) fn session_ended(shared: &Shared, ended: &EndedSession, now: Time) {
    if let Some(observer) = &shared.settings.observer {
        let mut end = SessionEnd::new(Some(now.duration_since(ended.start)));
        end.error = ended.error;
        observer.observe(&Observation::SessionEnded(&session(shared.settings.network, ended.revision), end));
    }
}

/// A connection that has ended, and was not reported yet.
pub(crate) struct EndedSession {
    pub(crate) start: Time,
    pub(crate) revision: Option<Revision>,
    pub(crate) error: Option<&'static str>,
}

/// Returns a short name of the reason, unless the application closed the client.
pub(crate) fn error_of(reason: &CloseReason) -> Option<&'static str> {
    match reason {
        CloseReason::ByClient => None,
        CloseReason::Exited { .. } => Some("exited"),
        CloseReason::ConnectFailed(_) => Some("connect_failed"),
        CloseReason::Authorization(_) => Some("authorization"),
        CloseReason::InvalidCertificate(_) => Some("invalid_certificate"),
        CloseReason::SessionLost(_) => Some("session_lost"),
        CloseReason::Disconnected(_) => Some("disconnected"),
    }
}

fn session(network: Network, revision: Option<Revision>) -> Session {
    let mut session = Session::new(Role::Client, true);
    (session.network, session.revision) = (network, revision);
    session
}
