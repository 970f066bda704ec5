//! All metrics of a meter provider in the text format of Prometheus.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry_prometheus::PrometheusExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, Pipeline, Temporality};
use prometheus::{Registry, TextEncoder};

/// A reader of a meter provider that renders all metrics in the text format of Prometheus. Clones share everything.
///
/// Names get the suffixes that Prometheus recommends: `mcp.server.operation.duration` is `mcp_server_operation_duration_seconds`,
/// and `mcp.server.refused_requests` is `mcp_server_refused_requests_total`.
///
/// # Examples
///
/// ```
/// use mcp_telemetry::{Metrics, Prometheus};
/// use opentelemetry::metrics::MeterProvider as _;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
///
/// let prometheus = Prometheus::new();
/// let provider = SdkMeterProvider::builder().with_reader(prometheus.clone()).build();
/// let metrics = Metrics::new(&provider.meter("mcp"));
///
/// // The body of the response to `GET /metrics`, whose content type is `Prometheus::CONTENT_TYPE`:
/// let body: String = prometheus.render();
/// # drop((metrics, body));
/// ```
#[derive(Clone)]
pub struct Prometheus {
    registry: Registry,
    exporter: Arc<PrometheusExporter>,
}

impl Prometheus {
    /// The content type of the text.
    pub const CONTENT_TYPE: &'static str = prometheus::TEXT_FORMAT;

    /// Creates a reader.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build();
        let exporter = Arc::new(exporter.expect("a new registry has no other collector"));
        Self { registry, exporter }
    }

    /// Collects all metrics, and returns them as text. It is empty before the reader belongs to a provider, and after the
    /// provider has shut down.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Only a metric without values fails, of which the registry has none.
        let _ = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text);
        text
    }
}

impl Default for Prometheus {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricReader for Prometheus {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.exporter.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.exporter.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.exporter.temporality(kind)
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus").finish_non_exhaustive()
    }
}
