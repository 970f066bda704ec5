//! The dashboard uses only metrics and attributes that exist.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::observe::{
    MetricSource, Network, Observation, Observer as _, Operation, OperationEnd, OperationOutcome, Refused, Role,
    Session, SessionEnd, SourceMetric, StreamKind,
};
use mcp_telemetry::{Metrics, Prometheus};
use mcp_types::{ErrorCode, Method, Revision};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

struct Source;

impl MetricSource for Source {
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
        for metric in [
            SourceMetric::ActiveSessions,
            SourceMetric::IdleSessions,
            SourceMetric::IdleSessionBytes,
            SourceMetric::SessionsEnded("idle"),
            SourceMetric::SessionsRefused("unknown"),
            SourceMetric::EventsReplayed,
            SourceMetric::EventsLost,
            SourceMetric::EventsDropped,
            SourceMetric::WorkingTasks,
            SourceMetric::WaitingTasks,
            SourceMetric::QueuedTasks,
            SourceMetric::TasksCreated,
            SourceMetric::TasksFinished("completed"),
            SourceMetric::TasksRefused("full"),
            SourceMetric::TaskInputRounds,
            SourceMetric::TasksTakenOver,
        ] {
            report(metric, 1);
        }
    }

    fn is_ended(&self) -> bool {
        false
    }
}

/// The text of `/metrics` after everything that is observed has happened.
fn rendered() -> String {
    let prometheus = Prometheus::new();
    let provider = SdkMeterProvider::builder().with_reader(prometheus.clone()).build();
    let metrics = Metrics::new(&provider.meter("mcp"));
    for outcome in [OperationOutcome::InputRequired, OperationOutcome::Error(ErrorCode::INTERNAL_ERROR)] {
        let mut operation = Operation::new(Role::Server, &Method::TOOLS_CALL);
        (operation.target, operation.revision) = (Some("add"), Some(Revision::LATEST));
        operation.network = Network::Http;
        metrics.observe(&Observation::OperationStarted(&operation));
        let end = OperationEnd::new(outcome, Some(Duration::from_millis(1)));
        metrics.observe(&Observation::OperationEnded(&operation, end));
    }
    let session = Session::new(Role::Server, true);
    metrics.observe(&Observation::SessionStarted(&session));
    metrics.observe(&Observation::SessionEnded(&session, SessionEnd::new(Some(Duration::from_secs(1)))));
    for observation in [
        Observation::Queued(1),
        Observation::Refused(Refused::new(429)),
        Observation::StreamOpened(StreamKind::Listen),
        Observation::SlowReader,
        Observation::MessagesDropped(1),
    ] {
        metrics.observe(&observation);
    }
    metrics.watch(Arc::new(Source));
    prometheus.render()
}

/// The words of a text that begin with a prefix, as far as they are letters, digits and underscores.
fn words(text: &str, is_word: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_inner(letter)).filter(|word| is_word(word)).collect()
}

#[test]
fn the_dashboard_uses_what_exists() {
    let dashboard = include_str!("../../docs/dashboards/mcp-server.json");
    let metrics = rendered();
    let is_name = |word: &str| {
        ["mcp_", "gen_ai_", "http_response_", "error_type", "network_"].iter().any(|prefix| word.starts_with(prefix))
    };
    let (used, existing) = (words(dashboard, is_name), words(&metrics, is_name));
    assert!(used.len() > 20, "{used:?}");
    let missing: Vec<_> = used.difference(&existing).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{metrics}");
    assert!(serde_json::from_str::<serde_json::Value>(dashboard).unwrap()["panels"].is_array());
}
