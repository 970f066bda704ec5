//! A client, a gateway and a server as three processes, which export their telemetry to one collector.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What was exported: spans and histogram points, each with the name of its process.
#[derive(Default)]
struct Exported {
    spans: Vec<(String, Span)>,
    /// The attributes of each point, by process and metric.
    points: BTreeMap<(String, String), Vec<BTreeMap<String, String>>>,
}

type Collected = Arc<Mutex<Exported>>;

fn lock(collected: &Collected) -> std::sync::MutexGuard<'_, Exported> {
    collected.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a collector on a thread of its own; returns its URL.
#[expect(clippy::disallowed_methods, reason = "the test waits for processes, which need the collector meanwhile")]
fn start_collector(collected: Collected) -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let routes = Router::new().route("/v1/traces", post(take_spans)).route("/v1/metrics", post(take_metrics));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("a test");
            axum::serve(listener, routes.with_state(collected)).await.expect("a collector");
        });
    });
    format!("http://{}", receiver.recv_timeout(Duration::from_secs(10)).expect("a collector"))
}

async fn take_spans(State(collected): State<Collected>, body: Bytes) -> Vec<u8> {
    let request = ExportTraceServiceRequest::decode(body).expect("spans");
    for resource_spans in request.resource_spans {
        let process = service_name(resource_spans.resource.as_ref());
        for span in resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            lock(&collected).spans.push((process.clone(), span));
        }
    }
    Vec::new()
}

async fn take_metrics(State(collected): State<Collected>, body: Bytes) -> Vec<u8> {
    let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
    for resource_metrics in request.resource_metrics {
        let process = service_name(resource_metrics.resource.as_ref());
        for metric in resource_metrics.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
            let Some(Data::Histogram(histogram)) = metric.data else { continue };
            let bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
            assert!(histogram.data_points.iter().all(|point| point.explicit_bounds == bounds), "{}", metric.name);
            let points = histogram.data_points.iter().map(|point| attributes(&point.attributes)).collect();
            lock(&collected).points.insert((process.clone(), metric.name), points);
        }
    }
    Vec::new()
}

fn service_name(resource: Option<&Resource>) -> String {
    let attributes = attributes(&resource.expect("a resource").attributes);
    attributes.get("service.name").expect("a name").clone()
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    pairs.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

/// A process that serves until its input ends.
struct Peer {
    child: Child,
    url: String,
}

fn command(collector: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telemetry-peer"));
    command.arg(collector).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Peer {
    fn start(collector: &str, arguments: &[&str]) -> Self {
        let mut child = command(collector, arguments).spawn().expect("a process");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("a line");
        assert!(url.starts_with("http://"), "{url}");
        Self { child, url: url.trim().to_owned() }
    }

    /// Ends the input, and waits until everything was exported.
    fn stop(mut self) {
        drop(self.child.stdin.take());
        wait(&mut self.child);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a process has a deadline")]
fn wait(child: &mut Child) {
    let start = Instant::now();
    loop {
        match child.try_wait().expect("a status") {
            Some(status) => return assert!(status.success(), "{status}"),
            None if start.elapsed() > Duration::from_secs(60) => panic!("the process does not end"),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The span of the call in a process, by its kind: 2 is a server, 3 a client.
fn call<'a>(exported: &'a Exported, process: &str, kind: i32) -> &'a Span {
    let is_call = |span: &Span| span.name == "tools/call echo" && span.kind == kind;
    let mut found = exported.spans.iter().filter(|(name, span)| name == process && is_call(span));
    let (_, span) = found.next().unwrap_or_else(|| panic!("no span of {process}"));
    assert!(found.next().is_none(), "one call has one span");
    span
}

/// One call is one trace through all processes, in both eras, and all durations are exported.
// covers: S4.102, S4.103, S4.106, S4.107, MIS-3
#[test]
fn one_call_is_one_trace() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let collected = Collected::default();
        let collector = start_collector(Arc::clone(&collected));
        let server = Peer::start(&collector, &["server"]);
        let gateway = Peer::start(&collector, &["gateway", &server.url]);
        let mut client = command(&collector, &["client", &gateway.url, revision]).spawn().expect("a client");
        wait(&mut client);
        gateway.stop();
        server.stop();

        let exported = lock(&collected);
        let chain = [("client", 3), ("gateway", 2), ("gateway", 3), ("server", 2)];
        let spans = chain.map(|(process, kind)| call(&exported, process, kind));
        for pair in spans.windows(2) {
            assert_eq!(pair[1].trace_id, pair[0].trace_id, "{revision}");
            assert_eq!(pair[1].parent_span_id, pair[0].span_id, "{revision}");
        }
        assert!(spans[0].parent_span_id.is_empty());
        let mut sessions = BTreeSet::new();
        for (index, span) in spans.iter().enumerate() {
            let attributes = attributes(&span.attributes);
            // The client of the gateway selects its revision itself.
            let expected = if index < 2 { revision } else { "2026-07-28" };
            for (name, value) in [
                ("mcp.method.name", "tools/call"),
                ("mcp.protocol.version", expected),
                ("gen_ai.tool.name", "echo"),
                ("network.transport", "tcp"),
            ] {
                assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{revision} {index}: {attributes:?}");
            }
            assert!(attributes.contains_key("jsonrpc.request.id"), "{attributes:?}");
            sessions.insert(attributes["mcp.session.id"].clone());
        }
        assert_eq!(sessions.len(), 4, "clients and servers have names of their own");

        for (process, role) in
            [("client", "client"), ("gateway", "client"), ("gateway", "server"), ("server", "server")]
        {
            let points = |metric: &str| {
                let key = (process.to_owned(), format!("mcp.{role}.{metric}.duration"));
                exported.points.get(&key).unwrap_or_else(|| panic!("{key:?} of {:?}", exported.points.keys()))
            };
            let is_call = |point: &&BTreeMap<String, String>| {
                point.get("gen_ai.tool.name").is_some_and(|name| name == "echo")
                    && point["mcp.method.name"] == "tools/call"
                    && point["network.transport"] == "tcp"
                    && point.contains_key("mcp.protocol.version")
                    && !point.contains_key("error.type")
            };
            assert_eq!(points("operation").iter().filter(is_call).count(), 1, "{:?}", points("operation"));
            assert!(
                points("session").iter().any(|point| point["network.transport"] == "tcp"),
                "{:?}",
                points("session")
            );
        }
        // What has no handler is there as well.
        let handshake = if revision == "2025-11-25" { "initialize" } else { "server/discover" };
        let mut spans = exported.spans.iter();
        assert!(spans.any(|(process, span)| process == "gateway" && span.name == handshake), "{handshake}");
    }
}
