//! A request of the server, as traces and metrics see it.

use std::sync::Arc;

use mcp_kernel::observe::OperationOutcome;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{ErrorObject, Method, RawObject, RequestId, RequestMeta, Revision};
use tracing::Span;

use crate::call::telemetry;
use crate::observed::ObservedCall;
use crate::state::Shared;

/// A request of the server that is handled. If it is dropped before it is finished, it was cancelled.
pub(super) struct ReceivedRequest {
    span: Span,
    observed: Option<ObservedCall<'static>>,
    is_finished: bool,
}

impl ReceivedRequest {
    pub(super) fn new(
        shared: &Arc<Shared>,
        method: &Method,
        params: &PayloadBuf,
        (id, revision): (&RequestId, Revision),
    ) -> Self {
        let meta = params.get("_meta").and_then(|meta| serde_json::from_str::<RequestMeta>(meta.get()).ok());
        let trace = meta.map(|meta| meta.trace_context()).unwrap_or_default();
        let span = telemetry::received_span(shared, method, (Some(id), Some(revision)), &trace);
        Self { span, observed: ObservedCall::received(shared, method), is_finished: false }
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Records the outcome.
    pub(super) fn finish(mut self, outcome: &Result<RawObject, ErrorObject>) {
        self.is_finished = true;
        let outcome = match outcome {
            Ok(_) => OperationOutcome::Completed,
            Err(error) => OperationOutcome::Error(error.code),
        };
        telemetry::end(&self.span, outcome);
        if let Some(observed) = &mut self.observed {
            observed.set_outcome(outcome);
        }
    }
}

impl Drop for ReceivedRequest {
    fn drop(&mut self) {
        if !self.is_finished {
            telemetry::end(&self.span, OperationOutcome::Cancelled);
        }
    }
}
