//! Observes as many requests of a server over HTTP as the argument says, to count instructions per request:
//!
//! ```text
//! cargo build --release -p mcp-telemetry --features bound-instruments --example requests
//! for count in 1000 11000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/requests $count
//! done
//! ```
//!
//! The difference of the two totals, divided by 10,000, is the cost of a request.

use std::time::Duration;

use mcp_kernel::observe::{
    Network, Observation, Observer, Operation, OperationEnd, OperationOutcome, Role, Session, SessionEnd,
};
use mcp_telemetry::Metrics;
use mcp_types::{Method, Revision};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_u64);
    let reader = PeriodicReader::builder(InMemoryMetricExporter::default()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let metrics = Metrics::new(&provider.meter("mcp"));
    for number in 0..count {
        observe(&metrics, Duration::from_micros(number % 64 * 100));
    }
}

/// A tool call in the newest revision, whose connection is a single request.
fn observe(observer: &dyn Observer, duration: Duration) {
    let mut operation = Operation::new(Role::Server, &Method::TOOLS_CALL);
    (operation.target, operation.revision) = (Some("count_words"), Some(Revision::LATEST));
    operation.network = Network::Http;
    let mut session = Session::new(Role::Server, false);
    (session.revision, session.network) = (operation.revision, operation.network);

    let end = OperationEnd::new(OperationOutcome::Completed, Some(duration));
    observer.observe(&Observation::SessionStarted(&session));
    observer.observe(&Observation::OperationStarted(&operation));
    observer.observe(&Observation::OperationEnded(&operation, end));
    observer.observe(&Observation::SessionEnded(&session, SessionEnd::new(Some(duration))));
}
