//! Trace contexts between the spans of clients and servers.

use mcp_types::meta::{TraceContext, key};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Makes a span a child of the span that a trace context names. Use it with `ServerBuilder::trace_parent` of `mcp-server`.
///
/// The baggage of the trace context becomes that of the span. Without a `traceparent`, or without the layer of
/// `tracing-opentelemetry`, the span keeps its parent.
pub fn set_parent(span: &Span, trace: &TraceContext) {
    if trace.traceparent().is_none() {
        return;
    }
    let headers = Headers(trace);
    // Not the current context: what the server runs in is not what the client sent.
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let context = BaggagePropagator::new().extract_with_context(&context, &headers);
    // It fails without a layer, and in a span that was entered before.
    let _ = span.set_parent(context);
}

/// Returns the trace context of the current span. Use it with `ClientBuilder::trace_context` of `mcp-client`.
///
/// Returns `None` if there is neither a span nor baggage, such as without the layer of `tracing-opentelemetry`.
#[must_use]
pub fn current_trace_context() -> Option<TraceContext> {
    let context = Span::current().context();
    let mut values = Values::default();
    TraceContextPropagator::new().inject_context(&context, &mut values);
    BaggagePropagator::new().inject_context(&context, &mut values);
    values.into_trace_context()
}

/// Reads a trace context as the headers of the W3C.
struct Headers<'a>(&'a TraceContext);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        match name {
            key::TRACEPARENT => self.0.traceparent(),
            key::TRACESTATE => self.0.tracestate(),
            key::BAGGAGE => self.0.baggage(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        [key::TRACEPARENT, key::TRACESTATE, key::BAGGAGE].into_iter().filter(|name| self.get(name).is_some()).collect()
    }
}

/// Collects the headers of the W3C, of which a `tracestate` may come first.
#[derive(Default)]
struct Values {
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
}

impl Injector for Values {
    fn set(&mut self, name: &str, value: String) {
        let value = Some(value).filter(|value| !value.is_empty());
        match name {
            key::TRACEPARENT => self.traceparent = value,
            key::TRACESTATE => self.tracestate = value,
            key::BAGGAGE => self.baggage = value,
            _ => {}
        }
    }
}

impl Values {
    fn into_trace_context(self) -> Option<TraceContext> {
        let parent = self.traceparent.and_then(TraceContext::new);
        if parent.is_none() && self.baggage.is_none() {
            return None;
        }
        let mut trace = parent.unwrap_or_default();
        if let Some(tracestate) = self.tracestate {
            trace.set_tracestate(tracestate);
        }
        if let Some(baggage) = self.baggage {
            trace.set_baggage(baggage);
        }
        Some(trace)
    }
}
