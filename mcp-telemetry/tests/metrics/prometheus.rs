//! The text format of Prometheus.

use std::time::Duration;

use mcp_kernel::observe::{Network, Observation, Observer, Operation, OperationEnd, OperationOutcome, Refused, Role};
use mcp_telemetry::{Metrics, Prometheus};
use mcp_types::{Method, Revision};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

#[test]
fn metrics_are_rendered() {
    let prometheus = Prometheus::new();
    assert_eq!(prometheus.render(), "");
    let provider = SdkMeterProvider::builder().with_reader(prometheus.clone()).build();
    let metrics = Metrics::new(&provider.meter("mcp"));

    let mut operation = Operation::new(Role::Server, &Method::TOOLS_CALL);
    (operation.target, operation.revision) = (Some("quote\"d"), Some(Revision::LATEST));
    operation.network = Network::Http;
    let end = OperationEnd::new(OperationOutcome::Completed, Some(Duration::from_millis(15)));
    metrics.observe(&Observation::OperationStarted(&operation));
    metrics.observe(&Observation::OperationEnded(&operation, end));
    metrics.observe(&Observation::Refused(Refused::new(429)));

    let text = prometheus.render();
    let attributes = r#"gen_ai_tool_name="quote\"d",mcp_method_name="tools/call",mcp_protocol_version="2026-07-28",network_protocol_name="http",network_transport="tcp",otel_scope_name="mcp""#;
    for line in [
        "# TYPE mcp_server_operation_duration_seconds histogram",
        &format!("mcp_server_operation_duration_seconds_bucket{{{attributes},le=\"0.01\"}} 0"),
        &format!("mcp_server_operation_duration_seconds_bucket{{{attributes},le=\"0.02\"}} 1"),
        &format!("mcp_server_operation_duration_seconds_sum{{{attributes}}} 0.015"),
        &format!("mcp_server_operation_duration_seconds_count{{{attributes}}} 1"),
        "# TYPE mcp_server_refused_requests_total counter",
        "mcp_server_refused_requests_total{http_response_status_code=\"429\",otel_scope_name=\"mcp\"} 1",
        "# TYPE mcp_server_active_requests gauge",
        "mcp_server_active_requests{mcp_method_name=\"tools/call\",otel_scope_name=\"mcp\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
    }

    provider.shutdown().unwrap();
    assert_eq!(prometheus.render(), "");
}
