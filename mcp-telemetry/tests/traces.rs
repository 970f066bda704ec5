//! The spans of a server are children of the spans of its client.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mcp_client::{Client, MemoryTransport};
use mcp_server::{Change, NoArguments, RequestContext, Server, tool};
use mcp_tasks::{MemoryTaskStore, TaskOptions, Tasks};
use mcp_telemetry::{current_trace_context, set_parent};
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingLevel, Revision, SubscriptionFilter};
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::trace::{SpanId, SpanKind, TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tokio::sync::Notify;
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

/// Every message of either side has a span on both, and the sender's is the parent of the receiver's.
// covers: S4.102
#[tokio::test]
async fn every_message_has_a_parent() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let spans = with_spans(async || {
            let ask = tool("ask", async |ctx: RequestContext, _: NoArguments| {
                ctx.list_roots("roots").await.map(|roots| roots.len().to_string())
            });
            let server = Server::builder("asker", "1.0").tool(ask);
            let server = server.trace_parent(set_parent).trace_context(current_trace_context).build().unwrap();
            let client = Client::builder("test", "1.0").revisions([revision]).roots([]);
            let client = client.trace_context(current_trace_context).trace_parent(set_parent);
            let client = client.connect(MemoryTransport::new(server)).await.unwrap();
            assert_eq!(client.call_tool("ask").await.unwrap().to_text(), "0");
            client.notify("notifications/custom", &serde_json::json!({ "a": 1 })).await.unwrap();
            if revision == Revision::LATEST {
                let filter = SubscriptionFilter::default().tools_list_changed(true);
                drop(client.listen(filter).await.unwrap());
            }
            client.close().await;
        })
        .await;
        let names: &[&str] = if revision == Revision::LATEST {
            &["server/discover", "subscriptions/listen", "notifications/cancelled", "tools/call ask"]
        } else {
            &["initialize", "notifications/initialized", "roots/list", "tools/call ask"]
        };
        for name in names {
            let of = |kind: SpanKind| spans.iter().filter(move |span| span.span_kind == kind && span.name == *name);
            let (sent, received): (Vec<_>, Vec<_>) = (of(SpanKind::Client).collect(), of(SpanKind::Server).collect());
            assert!(!sent.is_empty() && !received.is_empty(), "{name}: {spans:#?}");
            for received in received {
                let parent = received.parent_span_id;
                assert!(sent.iter().any(|sent| sent.span_context.span_id() == parent), "{name} in {revision}");
            }
        }
        // What the server asks for belongs to the call.
        let of = |kind: SpanKind, name: &str| spans.iter().find(|span| span.span_kind == kind && span.name == name);
        if let (Some(asked), Some(call)) = (of(SpanKind::Client, "roots/list"), of(SpanKind::Server, "tools/call ask"))
        {
            assert_eq!(asked.parent_span_id, call.span_context.span_id());
        }
    }
}

/// What a handler sends has a span of its own, which is the parent of the client's.
// covers: S4.102
#[tokio::test]
async fn notifications_of_a_handler_have_a_parent() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let spans = with_spans(async || {
            let work = tool("work", async |ctx: RequestContext, _: NoArguments| {
                ctx.progress(1);
                ctx.log(LoggingLevel::Debug, "not sent");
                ctx.log(LoggingLevel::Error, "sent");
                let custom = (&"notifications/custom".into(), &serde_json::json!({ "a": 1 }));
                ctx.notify(custom.0, custom.1);
                // To legacy clients only: both belong to no request.
                ctx.connection().log(LoggingLevel::Debug, "not sent");
                ctx.connection().log(LoggingLevel::Error, "sent");
                ctx.connection().notify(custom.0, custom.1);
                "done"
            });
            let server = Server::builder("worker", "1.0").tool(work);
            let server = server.trace_parent(set_parent).trace_context(current_trace_context).build().unwrap();
            let client = Client::builder("test", "1.0").revisions([revision]).log_level(LoggingLevel::Warning);
            let client = client.trace_context(current_trace_context).trace_parent(set_parent);
            let client = client.connect(MemoryTransport::new(server)).await.unwrap();
            client.call_tool("work").await.unwrap();
            client.close().await;
        })
        .await;
        let of = |kind: SpanKind, name: &'static str| {
            spans.iter().filter(move |span| span.span_kind == kind && span.name == name).collect::<Vec<_>>()
        };
        let call = of(SpanKind::Server, "tools/call work")[0].span_context.span_id();
        let standalone = usize::from(revision == Revision::LATEST_LEGACY);
        for (name, count) in
            [("notifications/progress", 1), ("notifications/message", 1 + standalone), ("_OTHER", 1 + standalone)]
        {
            let (sent, received) = (of(SpanKind::Client, name), of(SpanKind::Server, name));
            assert_eq!((sent.len(), received.len()), (count, count), "{name} in {revision}: {spans:#?}");
            assert!(sent.iter().all(|sent| sent.parent_span_id == call), "{name} in {revision}");
            let sent: HashSet<_> = sent.iter().map(|sent| sent.span_context.span_id()).collect();
            let parents: HashSet<_> = received.iter().map(|received| received.parent_span_id).collect();
            assert_eq!(sent, parents, "{name} in {revision}");
        }
    }
}

/// A change has one span, however many clients are notified of it.
// covers: S4.102
#[tokio::test]
async fn the_notifications_of_a_change_have_one_span() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let spans = with_spans(async || {
            let work = tool("work", async |ctx: RequestContext, _: NoArguments| {
                ctx.server().publish(&Change::Tools);
                "done"
            });
            let server = Server::builder("worker", "1.0").tool(work).trace_parent(set_parent).build().unwrap();
            let connect = async || {
                let client = Client::builder("test", "1.0").revisions([revision]).trace_parent(set_parent);
                let client = client.connect(MemoryTransport::new(server.clone())).await.unwrap();
                let filter = SubscriptionFilter::default().tools_list_changed(true);
                let changes = client.listen(filter).await.unwrap();
                (client, changes)
            };
            let (mut first, mut second) = (connect().await, connect().await);
            first.0.call_tool("work").await.unwrap();
            for (_, changes) in [&mut first, &mut second] {
                assert_eq!(changes.next().await.unwrap().unwrap(), Change::Tools);
            }
            first.0.close().await;
            second.0.close().await;
        })
        .await;
        let of = |kind: SpanKind, name: &'static str| {
            spans.iter().filter(move |span| span.span_kind == kind && span.name == name).collect::<Vec<_>>()
        };
        let name = "notifications/tools/list_changed";
        let (sent, received) = (of(SpanKind::Client, name), of(SpanKind::Server, name));
        assert_eq!((sent.len(), received.len()), (1, 2), "{revision}: {spans:#?}");
        assert_eq!(sent[0].parent_span_id, of(SpanKind::Server, "tools/call work")[0].span_context.span_id());
    }
}

/// Without a function for traces, a handler that reports often does not fill a log with spans.
#[tokio::test]
async fn notifications_have_no_span_unless_traces_are_connected() {
    let spans = with_spans(async || {
        let work = tool("work", async |ctx: RequestContext, _: NoArguments| {
            ctx.progress(1);
            ctx.server().publish(&Change::Tools);
            "done"
        });
        let server = Server::builder("worker", "1.0").tool(work).build().unwrap();
        let client = Client::builder("test", "1.0").connect(MemoryTransport::new(server)).await.unwrap();
        client.call_tool("work").await.unwrap();
        client.close().await;
    })
    .await;
    assert!(!spans.iter().any(|span| span.name.starts_with("notifications/")), "{spans:#?}");
}

/// The run of a task belongs to the trace of the call, also if that has ended.
// covers: S4.102
#[tokio::test]
async fn the_run_of_a_task_is_a_child_of_the_call() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let spans = with_spans(async || {
            let options = TaskOptions::required().poll_interval(Duration::from_millis(1));
            let work = tool("work", async |_, _: NoArguments| {
                tracing::info_span!("work").in_scope(|| {});
                "done"
            });
            let server = Server::builder("farm", "1.0").tool(work.task(options)).trace_parent(set_parent);
            let server = server.tasks(Tasks::new(MemoryTaskStore::default())).build().unwrap();
            let client = Client::builder("test", "1.0").revisions([revision]).trace_context(current_trace_context);
            let client = client.connect(MemoryTransport::new(server)).await.unwrap();
            client.list_tools(None).await.unwrap();
            assert_eq!(client.call_tool("work").await.unwrap().to_text(), "done");
            client.close().await;
        })
        .await;
        let of = |kind: SpanKind, name: &'static str| {
            spans.iter().filter(move |span| span.span_kind == kind && span.name == name).collect::<Vec<_>>()
        };
        let (sent, received) = (of(SpanKind::Client, "tools/call work"), of(SpanKind::Server, "tools/call work"));
        assert_eq!((sent.len(), received.len()), (1, 2), "the request, and the run: {spans:#?}");
        for received in &received {
            assert_eq!(received.parent_span_id, sent[0].span_context.span_id(), "{revision}");
        }
        let work = of(SpanKind::Internal, "work");
        let is_parent = |span: &&&SpanData| span.span_context.span_id() == work[0].parent_span_id;
        let run = received.iter().find(is_parent).expect("the span of the handler is in that of the run");
        assert!(!run.attributes.iter().any(|attribute| attribute.key.as_str() == "jsonrpc.request.id"));
    }
}

/// The state of a task that is sent to a client has a span, which is the parent of the client's.
// covers: S4.102
#[tokio::test]
async fn notifications_of_tasks_have_a_parent() {
    for (revision, name) in
        [(Revision::LATEST_LEGACY, "notifications/tasks/status"), (Revision::LATEST, "notifications/tasks")]
    {
        let spans = with_spans(async || {
            let listening = Arc::new(Notify::new());
            let listened = Arc::clone(&listening);
            let work = tool("work", move |_: RequestContext, _: NoArguments| {
                let listened = Arc::clone(&listened);
                async move {
                    if revision == Revision::LATEST {
                        listened.notified().await;
                    }
                    "done"
                }
            });
            let options = TaskOptions::required().poll_interval(Duration::from_millis(10));
            let server = Server::builder("farm", "1.0").tool(work.task(options)).trace_parent(set_parent);
            let server = server.on_subscription(move |_| listening.notify_one());
            let server = server.trace_context(current_trace_context).tasks(Tasks::new(MemoryTaskStore::default()));
            let client = Client::builder("test", "1.0").revisions([revision]).trace_parent(set_parent);
            let client = client.connect(MemoryTransport::new(server.build().unwrap())).await.unwrap();
            client.list_tools(None).await.unwrap();
            assert_eq!(client.call_tool("work").await.unwrap().to_text(), "done");
            client.close().await;
        })
        .await;
        let of = |kind: SpanKind, name: &'static str| {
            spans.iter().filter(move |span| span.span_kind == kind && span.name == name).collect::<Vec<_>>()
        };
        let (sent, received) = (of(SpanKind::Client, name), of(SpanKind::Server, name));
        assert!(!received.is_empty(), "{revision}: {spans:#?}");
        for received in received {
            let parent = received.parent_span_id;
            assert!(sent.iter().any(|sent| sent.span_context.span_id() == parent), "{revision}: {spans:#?}");
        }
        if revision == Revision::LATEST {
            let stream = of(SpanKind::Server, "subscriptions/listen")[0].span_context.span_id();
            assert!(sent.iter().all(|sent| sent.parent_span_id == stream), "{spans:#?}");
        }
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
