//! A request to the client, as traces and metrics see it.

use std::sync::Arc;

use mcp_kernel::observe::{Observation, Observer, Operation, OperationEnd, OperationOutcome, Role};
use mcp_types::meta::TraceContext;
use mcp_types::{Method, Revision};
use tracing::Span;

use crate::asking::error::AskError;
use crate::connection::shared::{ClientResponse, Shared};
use crate::serve::telemetry::{self, Stopwatch};
use crate::server::Server;

/// A request to a legacy client. If it is dropped before it is finished, it was cancelled.
pub(super) struct SentRequest {
    method: Method,
    revision: Option<Revision>,
    shared: Arc<Shared>,
    span: Span,
    observed: Option<(Arc<dyn Observer>, Stopwatch)>,
    outcome: OperationOutcome,
}

impl SentRequest {
    /// Begins the span of the request in the current one, and reports its start.
    pub(super) fn start(shared: &Arc<Shared>, server: Option<&Server>, method: &Method) -> Self {
        let revision = shared.lock().kernel.negotiated();
        let span = telemetry::sent_span(method, revision, shared);
        let observed = server.and_then(Server::observer).map(|observer| (Arc::clone(observer), Stopwatch::start()));
        let (method, shared, outcome) = (method.clone(), Arc::clone(shared), OperationOutcome::Cancelled);
        let request = Self { method, revision, shared, span, observed, outcome };
        if let Some((observer, _)) = &request.observed {
            observer.observe(&Observation::OperationStarted(&request.operation()));
        }
        request
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Returns the trace context of the request, which the application knows in its span.
    pub(super) fn trace_context(&self, server: Option<&Server>) -> Option<TraceContext> {
        let trace = server?.hooks().trace_context.as_ref()?;
        self.span.in_scope(|| trace())
    }

    /// Records the outcome.
    pub(super) fn finish(mut self, response: &ClientResponse) {
        self.outcome = match response {
            Ok(_) => OperationOutcome::Completed,
            Err(AskError::NoResponse(error)) => OperationOutcome::of_call_error(error),
            Err(_) => OperationOutcome::Failed,
        };
    }

    fn operation(&self) -> Operation<'_> {
        let mut operation = Operation::new(Role::Client, &self.method);
        (operation.revision, operation.network) = (self.revision, self.shared.network());
        operation
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        telemetry::end_span(&self.span, self.outcome);
        if let Some((observer, stopwatch)) = &self.observed {
            let end = OperationEnd::new(self.outcome, stopwatch.elapsed());
            observer.observe(&Observation::OperationEnded(&self.operation(), end));
        }
    }
}
