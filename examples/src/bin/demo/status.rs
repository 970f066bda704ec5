//! Metrics for Prometheus and health checks, on an address of their own.

use std::io;
use std::sync::Arc;

use mcp::http::StatusServer;
use mcp::telemetry::{Metrics, Prometheus};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

/// Binds the address. The metrics are the observer of the server.
pub(crate) async fn bind(address: &str) -> io::Result<(StatusServer, Arc<Metrics>)> {
    let prometheus = Prometheus::new();
    let provider = SdkMeterProvider::builder().with_reader(prometheus.clone()).build();
    let metrics = Arc::new(Metrics::new(&provider.meter("mcp")));
    let render = move || {
        // Metrics end with their provider, so what renders them keeps it.
        let _ = &provider;
        prometheus.render()
    };
    Ok((StatusServer::bind(address).await?.metrics(render), metrics))
}
