//! The histograms of the OpenTelemetry conventions.

use std::time::Duration;

use mcp_kernel::observe::{
    Network, Observation, Observer, Operation, OperationEnd, OperationOutcome, Role, Session, SessionEnd,
};
use mcp_types::{ErrorCode, Method, Revision};

use crate::collected::{Collector, Point};

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

fn end(observer: &dyn Observer, operation: &Operation<'_>, outcome: OperationOutcome) {
    observer.observe(&Observation::OperationEnded(operation, OperationEnd::new(outcome, SECOND)));
}

// covers: S4.107
#[test]
fn durations_have_the_attributes_unit_and_buckets_of_the_conventions() {
    for (role, name) in
        [(Role::Server, "mcp.server.operation.duration"), (Role::Client, "mcp.client.operation.duration")]
    {
        let collector = Collector::new();
        let metrics = collector.metrics();
        let mut call = Operation::new(role, &Method::TOOLS_CALL);
        (call.target, call.revision, call.network) = (Some("add"), Some(Revision::LATEST), Network::Http);
        end(&metrics, &call, OperationOutcome::Completed);
        end(&metrics, &call, OperationOutcome::Completed);
        let mut prompt = Operation::new(role, &Method::PROMPTS_GET);
        (prompt.target, prompt.network) = (Some("greet"), Network::Stdio);
        end(&metrics, &prompt, OperationOutcome::InputRequired);
        end(&metrics, &Operation::new(role, &Method::PING), OperationOutcome::Completed);

        let points = collector.points(name);
        let keys: Vec<&str> = points.keys().map(String::as_str).collect();
        let call = "gen_ai.tool.name=add mcp.method.name=tools/call mcp.protocol.version=2026-07-28 \
                    network.protocol.name=http network.transport=tcp";
        let prompt = "gen_ai.prompt.name=greet mcp.method.name=prompts/get network.transport=pipe";
        assert_eq!(keys, [prompt, call, "mcp.method.name=ping"]);
        let bounds = vec![0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
        assert_eq!(points[call], Point::Durations { count: 2, sum: 2.0, bounds });
        assert_eq!(collector.unit(name), "s");
    }
}

#[test]
fn errors_have_a_type() {
    let cases = [
        (OperationOutcome::Error(ErrorCode::INVALID_PARAMS), "-32602", " rpc.response.status_code=-32602"),
        (OperationOutcome::ToolError, "tool_error", ""),
        (OperationOutcome::Cancelled, "cancelled", ""),
        (OperationOutcome::TimedOut, "timeout", ""),
        (OperationOutcome::Status(503), "503", ""),
        (OperationOutcome::Failed, "_OTHER", ""),
    ];
    for (outcome, error, status) in cases {
        let collector = Collector::new();
        end(&collector.metrics(), &Operation::new(Role::Server, &Method::TOOLS_CALL), outcome);
        let points = collector.points("mcp.server.operation.duration");
        let expected = format!("error.type={error} mcp.method.name=tools/call{status}");
        assert_eq!(points.keys().collect::<Vec<_>>(), [&expected]);
    }
}

// covers: S4.107
#[test]
fn sessions_have_durations() {
    for (role, name) in [(Role::Server, "mcp.server.session.duration"), (Role::Client, "mcp.client.session.duration")] {
        let collector = Collector::new();
        let metrics = collector.metrics();
        let mut session = Session::new(role, true);
        metrics.observe(&Observation::SessionStarted(&session));
        (session.revision, session.network) = (Some(Revision::V2025_11_25), Network::Stdio);
        metrics.observe(&Observation::SessionEnded(&session, SessionEnd::new(SECOND)));
        let mut failure = SessionEnd::new(SECOND);
        failure.error = Some("timeout");
        metrics.observe(&Observation::SessionEnded(&session, failure));

        let points = collector.points(name);
        let keys: Vec<&str> = points.keys().map(String::as_str).collect();
        let (attributes, error) = ("mcp.protocol.version=2025-11-25 network.transport=pipe", "error.type=timeout");
        assert_eq!(keys, [&format!("{error} {attributes}"), attributes]);
        assert_eq!(collector.unit(name), "s");
    }
}

#[test]
fn what_has_no_duration_is_not_recorded() {
    let collector = Collector::new();
    let operation = Operation::new(Role::Server, &Method::PING);
    let end = OperationEnd::new(OperationOutcome::Completed, None);
    collector.metrics().observe(&Observation::OperationEnded(&operation, end));
    assert!(collector.points("mcp.server.operation.duration").is_empty());
}
