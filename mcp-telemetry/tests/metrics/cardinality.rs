//! Floods of names, which do not create series.

use std::time::Duration;

use mcp_kernel::observe::{Observation, Observer, Operation, OperationEnd, OperationOutcome, Role};
use mcp_telemetry::MetricsOptions;
use mcp_types::{ErrorCode, Method, Revision};

use crate::collected::{Collector, Point};

const NAME: &str = "mcp.server.operation.duration";

fn observe(observer: &dyn Observer, method: &Method, target: Option<&str>, outcome: OperationOutcome) {
    let mut operation = Operation::new(Role::Server, method);
    (operation.target, operation.revision) = (target, Some(Revision::LATEST));
    observer.observe(&Observation::OperationStarted(&operation));
    let end = OperationEnd::new(outcome, Some(Duration::from_millis(1)));
    observer.observe(&Observation::OperationEnded(&operation, end));
}

fn count(point: &Point) -> u64 {
    match point {
        Point::Durations { count, .. } => *count,
        Point::Sum { .. } => panic!("not a histogram"),
    }
}

#[test]
fn unknown_methods_count_as_one() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    for number in 0..10_000 {
        let method = Method::from(format!("flood/{number}"));
        observe(&metrics, &method, None, OperationOutcome::Error(ErrorCode::METHOD_NOT_FOUND));
    }
    let points = collector.points(NAME);
    assert_eq!(points.len(), 1);
    let (attributes, point) = points.first_key_value().unwrap();
    assert!(attributes.contains("mcp.method.name=_OTHER"), "{attributes}");
    assert_eq!(count(point), 10_000);
    assert_eq!(collector.points("mcp.server.active_requests").len(), 1);
}

#[test]
fn names_beyond_the_limit_count_as_one() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    for number in 0..10_000 {
        observe(&metrics, &Method::TOOLS_CALL, Some(&format!("tool_{number}")), OperationOutcome::Completed);
    }
    observe(&metrics, &Method::TOOLS_CALL, Some("tool_999"), OperationOutcome::Completed);
    let points = collector.points(NAME);
    assert_eq!(points.len(), 1_001);
    let of_tool = |name: &str| {
        let attribute = format!("gen_ai.tool.name={name} ");
        points.iter().find(|(attributes, _)| attributes.contains(&attribute)).map(|(_, point)| count(point))
    };
    assert_eq!((of_tool("tool_999"), of_tool("tool_1000"), of_tool("_OTHER")), (Some(2), None, Some(9_000)));
}

#[test]
fn long_names_are_not_kept() {
    let collector = Collector::new();
    let long = "x".repeat(1_000);
    observe(&collector.metrics(), &Method::PROMPTS_GET, Some(&long), OperationOutcome::Completed);
    let points = collector.points(NAME);
    assert!(points.first_key_value().unwrap().0.contains("gen_ai.prompt.name=_OTHER"));
}

#[test]
fn error_codes_beyond_the_limit_count_as_one() {
    let collector = Collector::new();
    let metrics = collector.metrics();
    for code in 0..10_000 {
        observe(&metrics, &Method::TOOLS_CALL, None, OperationOutcome::Error(ErrorCode::from(code)));
    }
    let points = collector.points(NAME);
    assert_eq!(points.len(), 65);
    let (_, other) = points.iter().find(|(attributes, _)| attributes.contains("error.type=_OTHER")).unwrap();
    assert_eq!(count(other), 10_000 - 64);
}

#[test]
fn the_number_of_series_is_limited() {
    let collector = Collector::new();
    let metrics = collector.metrics_with(MetricsOptions::default().max_names(50).max_series(20));
    for number in 0..1_000 {
        let outcome = OperationOutcome::Error(ErrorCode::from(number % 7));
        observe(&metrics, &Method::TOOLS_CALL, Some(&format!("tool_{number}")), outcome);
    }
    let points = collector.points(NAME);
    assert_eq!(points.len(), 20);
    assert_eq!(points.values().map(count).sum::<u64>(), 1_000);
    assert_eq!(count(&points["mcp.method.name=_OTHER"]), 1_000 - 19);
}
