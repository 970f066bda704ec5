//! A server, a gateway or a client that exports its telemetry by OTLP, for the test `three_processes`.
//!
//! `telemetry-peer COLLECTOR server`, `telemetry-peer COLLECTOR gateway UPSTREAM` and
//! `telemetry-peer COLLECTOR client UPSTREAM REVISION`. Servers print their URL, and end with their input.

use std::error::Error;
use std::sync::Arc;

use mcp_client::{Client, ClientBuilder};
use mcp_server::types::{CallToolResult, ProtocolVersion};
use mcp_server::{HandlerError, NoArguments, Server, ServerBuilder, tool};
use mcp_telemetry::{Metrics, current_trace_context, set_parent};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, HttpTransport, SessionMode};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::io::AsyncReadExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [collector, role, rest @ ..] = arguments.as_slice() else { return Err("COLLECTOR and a role".into()) };
    // The exporters have threads of their own, and must not be created or dropped in a runtime.
    let telemetry = Telemetry::start(collector, role)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run(role, rest, &telemetry));
    drop(runtime);
    telemetry.stop()?;
    outcome
}

async fn run(role: &str, rest: &[&str], telemetry: &Telemetry) -> Result<(), AnyError> {
    match (role, rest) {
        ("server", []) => {
            let echo = tool("echo", async |_, _: NoArguments| "echo");
            serve(telemetry.server("server").tool(echo)).await
        }
        ("gateway", [upstream]) => {
            let client = telemetry.client("gateway").connect(HttpTransport::new(*upstream)?).await?;
            let caller = client.clone();
            let echo = tool("echo", move |_, _: NoArguments| {
                let client = caller.clone();
                async move { client.call_tool("echo").await.map_err(HandlerError::from) }
            });
            serve(telemetry.server("gateway").tool(echo)).await?;
            close(client).await;
            Ok(())
        }
        ("client", [upstream, revision]) => {
            let revision = ProtocolVersion::from(*revision).revision().ok_or("a known revision")?;
            let client = telemetry.client("client").revisions([revision]);
            let client = client.connect(HttpTransport::new(*upstream)?).await?;
            let result: CallToolResult = client.call_tool("echo").await?;
            close(client).await;
            if result.to_text() == "echo" { Ok(()) } else { Err(format!("{result:?}").into()) }
        }
        _ => Err(format!("no such role: {role} {rest:?}").into()),
    }
}

/// Serves until the input ends.
#[expect(clippy::print_stdout, reason = "the test reads the URL from here")]
async fn serve(server: ServerBuilder) -> Result<(), AnyError> {
    let options = HttpOptions::default().sessions(SessionMode::Stateful);
    let service = HttpService::with_options(server.build()?, options);
    let listener = HttpServer::bind("127.0.0.1:0").await?;
    println!("{}", listener.url());
    let end_of_input = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    listener.serve(service, end_of_input).await;
    Ok(())
}

/// Closes a client, and waits until its session has ended.
async fn close(client: Client) {
    client.close().await;
}

/// What exports metrics and traces.
struct Telemetry {
    meters: SdkMeterProvider,
    tracers: SdkTracerProvider,
    metrics: Arc<Metrics>,
}

impl Telemetry {
    fn start(collector: &str, name: &str) -> Result<Self, AnyError> {
        let resource = Resource::builder_empty().with_service_name(name.to_owned()).build();
        let spans = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let spans = spans.with_endpoint(format!("{collector}/v1/traces")).build()?;
        let tracers = SdkTracerProvider::builder().with_resource(resource.clone()).with_batch_exporter(spans).build();
        let points = MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let points = points.with_endpoint(format!("{collector}/v1/metrics")).build()?;
        let meters = SdkMeterProvider::builder().with_resource(resource).with_periodic_exporter(points).build();
        let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer("mcp"));
        // The exporter has spans of its own, which must not be exported.
        let only_ours = tracing_subscriber::filter::Targets::new().with_target("mcp", tracing::Level::INFO);
        tracing_subscriber::registry().with(only_ours).with(layer).init();
        let metrics = Arc::new(Metrics::new(&meters.meter("mcp")));
        Ok(Self { meters, tracers, metrics })
    }

    fn server(&self, name: &str) -> ServerBuilder {
        Server::builder(name, "1.0").observer(self.metrics.clone()).trace_parent(set_parent)
    }

    fn client(&self, name: &str) -> ClientBuilder {
        Client::builder(name, "1.0").observer(self.metrics.clone()).trace_context(current_trace_context)
    }

    fn stop(self) -> Result<(), AnyError> {
        self.tracers.shutdown()?;
        self.meters.shutdown()?;
        Ok(())
    }
}
