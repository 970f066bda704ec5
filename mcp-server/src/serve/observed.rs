//! Reports requests and connections to the observer of a server.

use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::observe::{
    Network, Observation, Observer, Operation, OperationEnd, OperationOutcome, Role, Session, SessionEnd,
};
use mcp_kernel::server::HandledMessage;
use mcp_types::{ErrorObject, Method};

use crate::connection::listen_streams::ListenStream;
use crate::connection::shared::Shared;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::response::Response;
use crate::serve::target::Target;
use crate::serve::telemetry::Stopwatch;
use crate::server::Server;

/// Reports that a request was received. A listen stream is reported when it opens.
pub(crate) fn started(ctx: &RequestContext) {
    let Some(observer) = ctx.server().observer() else { return };
    if *ctx.method() != Method::SUBSCRIPTIONS_LISTEN {
        // Without the target, which would have to be looked up twice.
        report_start(&**observer, ctx.shared(), &untargeted(ctx));
    }
}

/// Reports that a request ended, once.
pub(crate) fn ended(ctx: &RequestContext, outcome: Outcome, served: Option<&Result<Response, ErrorObject>>) {
    let Some(observer) = ctx.server().observer() else { return };
    if !ctx.report_once() {
        return;
    }
    let outcome = match (outcome, served) {
        (Outcome::Cancelled, _) | (_, None) => OperationOutcome::Cancelled,
        (_, Some(Err(error))) => OperationOutcome::Error(error.code),
        (Outcome::Completed, _) => OperationOutcome::Completed,
        (Outcome::InputRequired, _) => OperationOutcome::InputRequired,
        (Outcome::Failed, _) => OperationOutcome::ToolError,
    };
    let (connection, operation) = (ctx.shared(), operation(ctx));
    if *ctx.method() == Method::SUBSCRIPTIONS_LISTEN {
        // The stream has just been opened, unless it was refused.
        if outcome == OperationOutcome::Completed {
            return;
        }
        report_start(&**observer, connection, &operation);
    }
    report_end(&**observer, connection, &operation, outcome, ctx.stopwatch().and_then(Stopwatch::elapsed));
}

/// Reports a message that the kernel handled by itself, with the time since it was received.
pub(crate) fn handled(server: &Server, connection: &Shared, message: &HandledMessage, duration: Option<Duration>) {
    let Some(observer) = server.observer() else { return };
    let mut operation = Operation::new(Role::Server, &message.method);
    (operation.revision, operation.network) = (message.revision, connection.network());
    let outcome = message.error.map_or(OperationOutcome::Completed, OperationOutcome::Error);
    if message.id.is_some() {
        report_start(&**observer, connection, &operation);
        report_end(&**observer, connection, &operation, outcome, duration);
    } else {
        operation.is_notification = true;
        let end = OperationEnd::new(outcome, duration);
        observer.observe(&Observation::OperationEnded(&operation, end));
    }
}

/// Reports that a listen stream was opened.
pub(crate) fn listening(server: &Server, connection: &Shared, stream: &ListenStream) {
    if let Some(observer) = server.observer() {
        let _ = stream.observed.set((Arc::clone(observer), Stopwatch::start()));
        report_start(&**observer, connection, &listen(connection, stream));
    }
}

/// Reports that a listen stream ended, to the observer that knows of it.
pub(crate) fn listening_ended(connection: &Shared, stream: &ListenStream) {
    if let Some((observer, stopwatch)) = stream.observed.get() {
        let operation = listen(connection, stream);
        report_end(&**observer, connection, &operation, OperationOutcome::Completed, stopwatch.elapsed());
    }
}

/// Reports the number of requests of a connection that wait for others to finish.
pub(crate) fn queued(server: &Server, connection: &Shared, length: usize) {
    if let Some(observer) = server.observer() {
        observer.observe(&Observation::Queued(connection.queue_change(length)));
    }
}

/// Moves the queue of a connection to another server that serves it from now on, whose observer gets the next changes.
pub(crate) fn queue_moved(from: &Server, to: &Server, connection: &Shared) {
    let length = connection.reported_queue();
    if length == 0 {
        return;
    }
    queued(from, connection, 0);
    queued(to, connection, length);
}

/// Reports messages that were dropped.
pub(crate) fn dropped(server: &Server, count: usize) {
    if let Some(observer) = server.observer() {
        observer.observe(&Observation::MessagesDropped(count));
    }
}

/// Reports that a connection for many requests began.
pub(crate) fn session_started(server: &Server, connection: &Shared) {
    if let Some(observer) = server.observer().filter(|_| connection.is_lasting()) {
        connection.set_observer(Arc::clone(observer));
        observer.observe(&Observation::SessionStarted(&Session::new(Role::Server, true)));
    }
}

/// Reports that a connection for many requests ended, to the observer that knows of its start.
pub(crate) fn session_ended(connection: &Shared) {
    if let Some((observer, stopwatch)) = connection.observer() {
        let mut session = Session::new(Role::Server, true);
        (session.revision, session.network) = (connection.lock().kernel.negotiated(), connection.network());
        let mut end = SessionEnd::new(stopwatch.elapsed());
        end.error = connection.end_error();
        observer.observe(&Observation::SessionEnded(&session, end));
    }
}

/// A connection for one request begins and ends with it.
fn report_start(observer: &dyn Observer, connection: &Shared, operation: &Operation<'_>) {
    if !connection.is_lasting() {
        observer.observe(&Observation::SessionStarted(&session_of(operation)));
    }
    observer.observe(&Observation::OperationStarted(operation));
}

fn report_end(
    observer: &dyn Observer,
    connection: &Shared,
    operation: &Operation<'_>,
    outcome: OperationOutcome,
    duration: Option<Duration>,
) {
    observer.observe(&Observation::OperationEnded(operation, OperationEnd::new(outcome, duration)));
    if !connection.is_lasting() {
        observer.observe(&Observation::SessionEnded(&session_of(operation), SessionEnd::new(duration)));
    }
}

fn session_of(operation: &Operation<'_>) -> Session {
    let mut session = Session::new(operation.role, false);
    (session.revision, session.network) = (operation.revision, operation.network);
    session
}

fn listen(connection: &Shared, stream: &ListenStream) -> Operation<'static> {
    let mut operation = Operation::new(Role::Server, &Method::SUBSCRIPTIONS_LISTEN);
    (operation.revision, operation.network) = (Some(stream.scope.revision()), connection.network());
    operation
}

fn untargeted(ctx: &RequestContext) -> Operation<'_> {
    let mut operation = Operation::new(Role::Server, ctx.method());
    (operation.revision, operation.network) = (Some(ctx.revision()), ctx.shared().network());
    operation
}

/// A target is named only if it is registered, as clients can send any name.
fn operation(ctx: &RequestContext) -> Operation<'_> {
    let mut operation = untargeted(ctx);
    operation.target = match ctx.target() {
        Some(Target::Tool(name)) => Some(name).filter(|name| ctx.server().has_tool(name)),
        Some(Target::Prompt(name)) => Some(name).filter(|name| ctx.server().has_prompt(name)),
        Some(Target::Resource(_)) | None => None,
    };
    operation
}

/// The network as it is kept in a connection.
pub(crate) fn network_of(number: u8) -> Network {
    NETWORKS.get(usize::from(number)).copied().unwrap_or_default()
}

/// The inverse of [`network_of`].
pub(crate) fn number_of(network: Network) -> u8 {
    NETWORKS.iter().position(|other| *other == network).unwrap_or_default() as u8
}

const NETWORKS: [Network; 5] = [Network::InProcess, Network::Stdio, Network::Unix, Network::Tcp, Network::Http];
