//! The spans of a server are children of the spans of its client.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::sync::LazyLock;

use mcp_client::{Client, MemoryTransport};
use mcp_server::{NoArguments, Server, tool};
use mcp_telemetry::{current_trace_context, set_parent};
use mcp_types::Revision;
use mcp_types::meta::TraceContext;
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::trace::{SpanId, SpanKind, TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// Runs a test with spans that are exported to memory.
async fn with_spans(test: impl AsyncFn()) -> Vec<SpanData> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    test().await;
    drop(guard);
    provider.force_flush().unwrap();
    exporter.get_finished_spans().unwrap()
}

// covers: S4.102
#[tokio::test]
async fn the_span_of_a_client_is_the_parent_of_that_of_its_server() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let spans = with_spans(async || {
            let hello = tool("hello", async |_, _: NoArguments| {
                let context = Span::current().context();
                context.baggage().get("user").map(ToString::to_string).unwrap_or_default()
            });
            let server = Server::builder("greeter", "1.0").tool(hello).trace_parent(set_parent).build().unwrap();
            let client = Client::builder("test", "1.0").revisions([revision]).trace_context(current_trace_context);
            let client = client.connect(MemoryTransport::new(server)).await.unwrap();
            let root = tracing::info_span!("root");
            let context = root.context().with_baggage([opentelemetry::KeyValue::new("user", "alice")]);
            let root = tracing::info_span!("root with baggage");
            root.set_parent(context).unwrap();
            let result = client.call_tool("hello").into_future().instrument(root).await.unwrap();
            assert_eq!(result.to_text(), "alice");
            client.close().await;
        })
        .await;

        let call = |kind: SpanKind| {
            let calls = spans.iter().filter(|span| span.span_kind == kind && span.name.starts_with("tools/call"));
            let calls: Vec<_> = calls.collect();
            assert_eq!(calls.len(), 1, "{spans:#?}");
            calls[0]
        };
        let root = spans.iter().find(|span| span.name == "root with baggage").unwrap();
        let (sent, received) = (call(SpanKind::Client), call(SpanKind::Server));
        assert_eq!(sent.parent_span_id, root.span_context.span_id());
        assert_eq!(received.parent_span_id, sent.span_context.span_id());
        assert!(received.parent_span_is_remote);
        assert_eq!(received.span_context.trace_id(), root.span_context.trace_id());
    }
}

static TRACE: LazyLock<TraceContext> = LazyLock::new(|| {
    let mut trace = TraceContext::new("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    trace.set_tracestate("vendor=value");
    trace.set_baggage("user=alice");
    trace
});

#[tokio::test]
async fn a_trace_context_is_passed_on() {
    with_spans(async || {
        let span = tracing::info_span!("server");
        set_parent(&span, &TRACE);
        let passed = span.in_scope(current_trace_context).unwrap();
        let traceparent = passed.traceparent().unwrap();
        assert!(traceparent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{traceparent}");
        assert_ne!(traceparent, TRACE.traceparent().unwrap(), "the span is that of this process");
        assert_eq!(passed.tracestate(), Some("vendor=value"));
        assert_eq!(passed.baggage(), Some("user=alice"));
    })
    .await;
}

#[tokio::test]
async fn without_a_traceparent_the_parent_stays() {
    let spans = with_spans(async || {
        let _outer = tracing::info_span!("outer").entered();
        let inner = tracing::info_span!("inner");
        set_parent(&inner, &TraceContext::default());
        inner.in_scope(|| {});
    })
    .await;
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    assert_eq!(of("inner").parent_span_id, of("outer").span_context.span_id());
    assert_eq!(of("outer").parent_span_id, SpanId::INVALID);
}

#[test]
fn without_a_layer_there_is_no_trace_context() {
    assert_eq!(current_trace_context(), None);
    let span = tracing::info_span!("span");
    set_parent(&span, &TRACE);
    assert!(!span.context().span().span_context().is_valid());
}
