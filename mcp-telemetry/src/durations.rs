//! The histograms of the conventions.

use mcp_kernel::observe::{Operation, OperationEnd, Role, Session, SessionEnd};
use opentelemetry::metrics::{Histogram, Meter};

use crate::methods::MethodId;
use crate::names::{
    CLIENT_OPERATION_DURATION, CLIENT_SESSION_DURATION, SERVER_OPERATION_DURATION, SERVER_SESSION_DURATION,
};
use crate::options::MetricsOptions;
use crate::parts::Parts;
use crate::series_cache::SeriesCache;

/// The upper bounds of the buckets, in seconds.
const BOUNDARIES: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The four histograms.
pub(crate) struct Durations {
    server: RoleDurations,
    client: RoleDurations,
}

struct RoleDurations {
    operations: DurationHistogram,
    sessions: DurationHistogram,
}

struct DurationHistogram {
    histogram: Histogram<f64>,
    series: SeriesCache,
}

impl Durations {
    pub(crate) fn new(meter: &Meter, options: &MetricsOptions) -> Self {
        let histogram = |name: &'static str, description: &'static str| DurationHistogram {
            histogram: meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(BOUNDARIES.to_vec())
                .build(),
            series: SeriesCache::new(options.clone()),
        };
        Self {
            server: RoleDurations {
                operations: histogram(
                    SERVER_OPERATION_DURATION,
                    "Time from receiving a request or notification until its result is sent.",
                ),
                sessions: histogram(SERVER_SESSION_DURATION, "Duration of sessions of the server."),
            },
            client: RoleDurations {
                operations: histogram(
                    CLIENT_OPERATION_DURATION,
                    "Time from sending a request or notification until its result is received.",
                ),
                sessions: histogram(CLIENT_SESSION_DURATION, "Duration of sessions of the client."),
            },
        }
    }

    pub(crate) fn record_operation(&self, method: MethodId, operation: &Operation<'_>, end: OperationEnd) {
        if let Some(duration) = end.duration {
            let parts = Parts::of_operation(method, operation, end.outcome);
            self.role(operation.role).operations.record(duration.as_secs_f64(), &parts);
        }
    }

    pub(crate) fn record_session(&self, session: &Session, end: SessionEnd) {
        if let Some(duration) = end.duration {
            let parts = Parts::of_session(session, end.error);
            self.role(session.role).sessions.record(duration.as_secs_f64(), &parts);
        }
    }

    fn role(&self, role: Role) -> &RoleDurations {
        match role {
            Role::Server => &self.server,
            Role::Client => &self.client,
        }
    }
}

impl DurationHistogram {
    fn record(&self, seconds: f64, parts: &Parts<'_>) {
        self.series.find(parts).record(&self.histogram, seconds);
    }
}
