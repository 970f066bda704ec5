//! Messages that a connection handled by itself, for metrics and traces.

use mcp_types::jsonrpc::{Limits, Payload};
use mcp_types::meta::{TraceContext, key};
use mcp_types::{ErrorCode, Method, RequestId, Revision};
use serde_json::value::RawValue;

/// A request or a notification of the peer that the kernel handled by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandledMessage {
    /// The method.
    pub method: Method,
    /// The id, if it is a request.
    pub id: Option<RequestId>,
    /// The revision, if it is known.
    pub revision: Option<Revision>,
    /// The trace context.
    pub trace_context: TraceContext,
    /// The code of the error response, if it was refused.
    pub error: Option<ErrorCode>,
}

/// A message that has just arrived. Most are for the application, so that nothing is copied.
pub(crate) struct ArrivedMessage<'a> {
    method: Method,
    params: Option<&'a str>,
}

impl<'a> ArrivedMessage<'a> {
    pub(crate) fn new(method: &Method, params: Option<&'a str>) -> Self {
        Self { method: method.clone(), params }
    }

    /// Returns the message as one that was handled. Its trace context is read, unless it is longer than `_meta` may be.
    pub(crate) fn handled(
        self,
        (id, revision): (Option<&RequestId>, Option<Revision>),
        error: Option<ErrorCode>,
        (limits, max_meta_bytes): (&Limits, usize),
    ) -> HandledMessage {
        let Self { method, params } = self;
        let params = params.and_then(|text| Payload::parse(text, limits).ok());
        let trace_context = params.map(|params| read_trace_context(&params, max_meta_bytes)).unwrap_or_default();
        HandledMessage { method, id: id.cloned(), revision, trace_context, error }
    }
}

fn read_trace_context(params: &Payload<'_>, limit: usize) -> TraceContext {
    let value = |name| params.meta(name).filter(|raw| raw.get().len() <= limit);
    trace_context(value(key::TRACEPARENT), value(key::TRACESTATE), value(key::BAGGAGE))
}

/// Reads a trace context, without what is malformed.
pub(crate) fn trace_context(
    traceparent: Option<&RawValue>,
    tracestate: Option<&RawValue>,
    baggage: Option<&RawValue>,
) -> TraceContext {
    let text = |raw: Option<&RawValue>| serde_json::from_str::<String>(raw?.get()).ok();
    let mut context = text(traceparent).and_then(TraceContext::new).unwrap_or_default();
    if let Some(tracestate) = text(tracestate) {
        context.set_tracestate(tracestate);
    }
    if let Some(baggage) = text(baggage) {
        context.set_baggage(baggage);
    }
    context
}
