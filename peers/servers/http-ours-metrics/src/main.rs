//! `http-ours` with metrics for Prometheus, which nobody collects: what is counted is what requests record.

#[path = "../../../shared/driven.rs"]
mod driven;
#[path = "../../ours/src/tools.rs"]
mod tools;

use std::error::Error;
use std::sync::Arc;

use mcp_server::Server;
use mcp_telemetry::{Metrics, Prometheus};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

#[expect(clippy::print_stdout, reason = "the driver reads the address there")]
fn main() -> Result<(), Box<dyn Error>> {
    let provider = SdkMeterProvider::builder().with_reader(Prometheus::new()).build();
    let metrics = Arc::new(Metrics::new(&provider.meter("mcp")));
    let server = tools::echoes(Server::builder("ours", "1.0"), driven::number_of_tools()).observer(metrics).build()?;
    let mode = if driven::has_sessions() { SessionMode::Stateful } else { SessionMode::Stateless };
    let options = HttpOptions::default().sessions(mode);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(async {
        let listener = HttpServer::bind("127.0.0.1:0").await?;
        println!("{}", listener.url());
        listener.serve(HttpService::with_options(server, options), std::future::pending()).await;
        Ok(())
    })
}
