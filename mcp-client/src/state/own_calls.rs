//! Requests and notifications that the client sends by itself, such as the handshake.

use std::collections::BTreeMap;

use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::{CallId, Time};
use mcp_types::jsonrpc::{EncodedMessage, Limits, Message, Payload};
use mcp_types::meta::TraceContext;
use mcp_types::{Method, RequestId};
use tracing::Span;

use crate::call::telemetry;
use crate::observed;
use crate::state::Shared;
use crate::transport::OutgoingMessage;

/// A request without a caller, in flight.
pub(crate) struct OwnCall {
    pub(crate) method: Method,
    pub(crate) start: Time,
    span: Span,
}

/// The requests without a caller, and those that have ended and were not reported yet.
#[derive(Default)]
pub(crate) struct OwnCalls {
    open: BTreeMap<CallId, OwnCall>,
    ended: Vec<(OwnCall, OperationOutcome)>,
}

impl OwnCalls {
    /// Ends a request, if it is one of these.
    pub(super) fn end(&mut self, call: CallId, outcome: OperationOutcome) {
        self.ended.extend(self.open.remove(&call).map(|call| (call, outcome)));
    }

    /// Takes those that have ended, to be reported without the lock.
    pub(super) fn take_ended(&mut self) -> Vec<(OwnCall, OperationOutcome)> {
        std::mem::take(&mut self.ended)
    }
}

impl Shared {
    /// Traces and reports a message that the client sends by itself, and adds the trace context to it.
    pub(crate) fn trace_own_message(&self, message: &mut OutgoingMessage) {
        let Some(method) = message.method.clone() else { return };
        // There is no caller whose span could be the parent.
        let span = self.session_span().in_scope(|| telemetry::sent_span(&method, self.settings.network));
        if let Some(trace) = telemetry::trace_context(self, &span)
            && let Some(traced) = with_trace(&message.message, &trace)
        {
            message.message = traced;
        }
        let revision = message.revision;
        let Some(call) = message.call else {
            telemetry::describe(&span, self, None, revision);
            return observed::notified(self, &method);
        };
        let id: Option<RequestId> = self.read(|core| core.kernel.request_id(call).cloned());
        telemetry::describe(&span, self, id.as_ref(), revision);
        let own = OwnCall { method, start: self.now(), span };
        observed::own_call_started(self, &own);
        self.with(|core, _| {
            core.own_calls.open.insert(call, own);
            if core.kernel.request_id(call).is_none() {
                // It has ended meanwhile, which nothing will report any more.
                core.own_calls.end(call, OperationOutcome::Cancelled);
            }
        });
    }

    /// Reports requests that have ended.
    pub(super) fn report_own_calls(&self, ended: Vec<(OwnCall, OperationOutcome)>, now: Time) {
        for (call, outcome) in ended {
            telemetry::end(&call.span, outcome);
            observed::own_call_ended(self, &call, outcome, now);
        }
    }
}

/// Returns a message of the kernel with a trace context.
fn with_trace(message: &EncodedMessage, trace: &TraceContext) -> Option<EncodedMessage> {
    let add = |params: Option<Payload<'_>>| trace.add_to(&params.map(|params| params.to_object()).unwrap_or_default());
    match Message::parse(message, &Limits::default()).ok()? {
        Message::Request(request) => {
            EncodedMessage::request(&request.id, &request.method, Some(&add(request.params).ok()?)).ok()
        }
        Message::Notification(notification) => {
            EncodedMessage::notification(&notification.method, Some(&add(notification.params).ok()?)).ok()
        }
        Message::Response(_) => None,
    }
}
