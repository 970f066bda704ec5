//! Requests allocate nothing for metrics once their series exist.

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use mcp_kernel::observe::{
    Network, Observation, Observer, Operation, OperationEnd, OperationOutcome, Role, Session, SessionEnd,
};
use mcp_telemetry::Metrics;
use mcp_types::{ErrorCode, Method, Revision};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// A tool call of every outcome, on a connection for a single request.
fn observe_requests(observer: &dyn Observer) {
    let outcomes = [
        OperationOutcome::Completed,
        OperationOutcome::InputRequired,
        OperationOutcome::ToolError,
        OperationOutcome::Error(ErrorCode::INVALID_PARAMS),
        OperationOutcome::Status(503),
        OperationOutcome::Cancelled,
        OperationOutcome::TimedOut,
        OperationOutcome::Failed,
    ];
    for role in [Role::Server, Role::Client] {
        let mut operation = Operation::new(role, &Method::TOOLS_CALL);
        (operation.target, operation.revision) = (Some("count_words"), Some(Revision::LATEST));
        operation.network = Network::Http;
        let mut session = Session::new(role, false);
        (session.revision, session.network) = (operation.revision, operation.network);
        for outcome in outcomes {
            let duration = Some(Duration::from_millis(3));
            observer.observe(&Observation::SessionStarted(&session));
            observer.observe(&Observation::OperationStarted(&operation));
            observer.observe(&Observation::OperationEnded(&operation, OperationEnd::new(outcome, duration)));
            observer.observe(&Observation::SessionEnded(&session, SessionEnd::new(duration)));
        }
        observer.observe(&Observation::CacheLookup { is_hit: true });
        observer.observe(&Observation::Queued(1));
        observer.observe(&Observation::Queued(-1));
    }
}

#[test]
fn requests_do_not_allocate() {
    let reader =
        PeriodicReader::builder(InMemoryMetricExporter::default()).with_interval(Duration::from_secs(3_600)).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let metrics = Metrics::new(&provider.meter("mcp"));
    observe_requests(&metrics);

    // The test runner has other threads, which may allocate at any time; they do not allocate each time.
    let allocated = (0..10).map(|_| {
        let before = ALLOCATOR.total_allocated();
        for _ in 0..1_000 {
            observe_requests(&metrics);
        }
        ALLOCATOR.total_allocated() - before
    });
    assert_eq!(allocated.min(), Some(0));
}
