//! The counters and current numbers for operators.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_kernel::observe::{
    MetricSource, Observation, Observer, Operation, OperationEnd, OperationOutcome, Refused, Role, Session, SessionEnd,
    SourceMetric, StreamKind,
};
use mcp_telemetry::METRIC_NAMES;
use mcp_types::Method;

use crate::collected::{Collector, Point, counter, number};

fn end() -> OperationEnd {
    OperationEnd::new(OperationOutcome::InputRequired, Some(Duration::ZERO))
}

/// A transport's values.
#[derive(Default)]
struct Source {
    is_ended: AtomicBool,
}

impl MetricSource for Source {
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
        if !self.is_ended() {
            report(SourceMetric::ActiveSessions, 1);
            report(SourceMetric::IdleSessions, 2);
            report(SourceMetric::IdleSessionBytes, 3);
            report(SourceMetric::WorkingTasks, 9);
            report(SourceMetric::WaitingTasks, 10);
            report(SourceMetric::QueuedTasks, 17);
        }
        report(SourceMetric::SessionsEnded("idle"), 4);
        report(SourceMetric::SessionsRefused("unknown"), 5);
        report(SourceMetric::EventsReplayed, 6);
        report(SourceMetric::EventsLost, 7);
        report(SourceMetric::EventsDropped, 8);
        report(SourceMetric::TasksCreated, 11);
        report(SourceMetric::TasksFinished("completed"), 12);
        report(SourceMetric::TasksFinished("failed"), 13);
        report(SourceMetric::TasksRefused("full"), 14);
        report(SourceMetric::TaskInputRounds, 15);
        report(SourceMetric::TasksTakenOver, 16);
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

#[test]
fn every_observation_is_counted() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    for role in [Role::Server, Role::Client] {
        let operation = Operation::new(role, &Method::TOOLS_CALL);
        for _ in 0..3 {
            metrics.observe(&Observation::OperationStarted(&operation));
        }
        metrics.observe(&Observation::OperationEnded(&operation, end()));
        let session = Session::new(role, true);
        metrics.observe(&Observation::SessionStarted(&session));
        metrics.observe(&Observation::SessionStarted(&session));
        metrics.observe(&Observation::SessionEnded(&session, SessionEnd::new(Some(Duration::ZERO))));
    }
    metrics.observe(&Observation::Queued(5));
    metrics.observe(&Observation::Queued(-2));
    metrics.observe(&Observation::Refused(Refused::new(429)));
    for kind in [StreamKind::Response, StreamKind::Listen, StreamKind::Standalone] {
        metrics.observe(&Observation::StreamOpened(kind));
    }
    metrics.observe(&Observation::StreamClosed(StreamKind::Listen));
    metrics.observe(&Observation::SlowReader);
    metrics.observe(&Observation::MessagesDropped(4));
    metrics.observe(&Observation::CacheLookup { is_hit: true });
    metrics.observe(&Observation::CacheLookup { is_hit: false });
    metrics.observe(&Observation::ChildRestarted);
    metrics.observe(&Observation::Login { is_successful: true });
    metrics.observe(&Observation::TokenRefresh { is_successful: false });
    metrics.watch(Arc::new(Source::default()));

    let expected: &[(&str, &[(&str, Point)])] = &[
        ("mcp.client.active_requests", &[("mcp.method.name=tools/call", number(2))]),
        ("mcp.client.cache_lookups", &[("mcp.cache.result=hit", counter(1)), ("mcp.cache.result=miss", counter(1))]),
        ("mcp.client.child_restarts", &[("", counter(1))]),
        ("mcp.client.input_rounds", &[("mcp.method.name=tools/call", counter(1))]),
        ("mcp.client.logins", &[("mcp.is_successful=true", counter(1))]),
        ("mcp.client.session.count", &[("", number(1))]),
        ("mcp.client.token_refreshes", &[("mcp.is_successful=false", counter(1))]),
        ("mcp.server.active_requests", &[("mcp.method.name=tools/call", number(2))]),
        ("mcp.server.dropped_events", &[("", counter(8))]),
        ("mcp.server.dropped_messages", &[("", counter(4))]),
        (
            "mcp.server.http_session.count",
            &[("mcp.session.state=active", number(1)), ("mcp.session.state=idle", number(2))],
        ),
        ("mcp.server.http_session.ended", &[("mcp.session.reason=idle", counter(4))]),
        ("mcp.server.http_session.idle_size", &[("", number(3))]),
        ("mcp.server.http_session.refused", &[("mcp.session.reason=unknown", counter(5))]),
        ("mcp.server.input_rounds", &[("mcp.method.name=tools/call", counter(1))]),
        ("mcp.server.lost_events", &[("", counter(7))]),
        ("mcp.server.queued_requests", &[("", number(3))]),
        ("mcp.server.refused_requests", &[("http.response.status_code=429", counter(1))]),
        ("mcp.server.replayed_events", &[("", counter(6))]),
        ("mcp.server.session.count", &[("", number(1))]),
        ("mcp.server.slow_readers", &[("", counter(1))]),
        (
            "mcp.server.stream.count",
            &[
                ("mcp.stream.kind=listen", number(0)),
                ("mcp.stream.kind=response", number(1)),
                ("mcp.stream.kind=standalone", number(1)),
            ],
        ),
        (
            "mcp.server.task.count",
            &[("mcp.task.status=input_required", number(10)), ("mcp.task.status=working", number(9))],
        ),
        ("mcp.server.task.created", &[("", counter(11))]),
        (
            "mcp.server.task.finished",
            &[("mcp.task.status=completed", counter(12)), ("mcp.task.status=failed", counter(13))],
        ),
        ("mcp.server.task.input_rounds", &[("", counter(15))]),
        ("mcp.server.task.queued", &[("", number(17))]),
        ("mcp.server.task.refused", &[("mcp.task.reason=full", counter(14))]),
        ("mcp.server.task.taken_over", &[("", counter(16))]),
    ];
    let mut collected = collector.collect();
    let names: BTreeSet<&str> = collected.keys().map(String::as_str).collect();
    assert_eq!(names, METRIC_NAMES.iter().copied().collect(), "all metrics are named, and no others exist");
    assert!(METRIC_NAMES.is_sorted());
    for (name, points) in expected {
        let points = points.iter().map(|(attributes, point)| ((*attributes).to_owned(), point.clone())).collect();
        assert_eq!(collected.remove(*name).unwrap(), points, "{name}");
    }
    assert!(collected.keys().all(|name| name.ends_with(".duration")));
}

#[test]
fn metrics_that_are_not_used_have_no_points() {
    let collector = Collector::new();
    let _metrics = collector.metrics();
    assert!(collector.collect().values().all(|points| points.is_empty()));
}

#[test]
fn a_notification_does_not_change_the_number_of_requests() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    // The last two are sent as notifications by a peer that violates the protocol.
    let methods =
        [Method::NOTIFICATIONS_INITIALIZED, Method::from("notifications/custom"), Method::PING, Method::from("x")];
    for method in &methods {
        let mut operation = Operation::new(Role::Server, method);
        operation.is_notification = true;
        metrics.observe(&Observation::OperationEnded(&operation, end()));
    }
    let points = collector.points("mcp.server.active_requests");
    assert!(points.is_empty(), "{points:?}");
}

#[test]
fn a_source_that_ended_is_forgotten() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    let source = Arc::new(Source::default());
    metrics.watch(source.clone());
    assert_eq!(collector.points("mcp.server.http_session.count").len(), 2);
    source.is_ended.store(true, Ordering::Relaxed);
    assert!(collector.points("mcp.server.http_session.count").is_empty());
    assert_eq!(collector.points("mcp.server.lost_events")[""], counter(7), "a counter does not decrease");
}

#[test]
fn every_metric_is_documented() {
    let docs = include_str!("../../src/lib.rs");
    let documented = docs.lines().filter(|line| line.starts_with("//! | `mcp.")).flat_map(|line| {
        let names = line.split('|').nth(1).unwrap_or_default();
        names.split(',').map(|name| name.trim().trim_matches('`'))
    });
    assert_eq!(documented.collect::<BTreeSet<_>>(), METRIC_NAMES.iter().copied().collect());
}
