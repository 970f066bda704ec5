//! The observer that records metrics.

use std::fmt;
use std::sync::Arc;

use mcp_kernel::observe::{MetricSource, Observation, Observer, OperationOutcome};
use opentelemetry::metrics::Meter;

use crate::active::Active;
use crate::counters::Counters;
use crate::durations::Durations;
use crate::methods::MethodId;
use crate::observables;
use crate::options::MetricsOptions;
use crate::sources::Sources;

/// An [`Observer`] that records OpenTelemetry metrics.
///
/// Create one per process, and set it on all servers and clients. The [crate documentation](crate) lists the metrics and has
/// an example.
pub struct Metrics {
    durations: Durations,
    counters: Counters,
    active: Arc<Active>,
    sources: Arc<Sources>,
}

impl Metrics {
    /// Creates the instruments with a meter, such as `opentelemetry::global::meter("mcp")`. The provider of the meter keeps
    /// them until it shuts down.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self::with_options(meter, MetricsOptions::default())
    }

    /// Creates the instruments with other limits.
    #[must_use]
    pub fn with_options(meter: &Meter, options: MetricsOptions) -> Self {
        let (active, sources) = (Arc::new(Active::new()), Arc::new(Sources::default()));
        observables::register_active(meter, &active);
        observables::register_sources(meter, &sources);
        Self { durations: Durations::new(meter, &options), counters: Counters::new(meter), active, sources }
    }
}

impl Observer for Metrics {
    fn observe(&self, observation: &Observation<'_>) {
        match observation {
            Observation::OperationStarted(operation) => {
                self.active.change_requests(operation.role, MethodId::of(operation.method), 1);
            }
            Observation::OperationEnded(operation, end) => {
                let method = MethodId::of(operation.method);
                if !operation.is_notification {
                    self.active.change_requests(operation.role, method, -1);
                }
                self.durations.record_operation(method, operation, *end);
                if end.outcome == OperationOutcome::InputRequired {
                    self.counters.input_round(operation.role, method);
                }
            }
            Observation::InputRound(operation) => {
                self.counters.input_round(operation.role, MethodId::of(operation.method));
            }
            Observation::SessionStarted(session) => self.active.change_sessions(session, 1),
            Observation::SessionEnded(session, end) => {
                self.active.change_sessions(session, -1);
                self.durations.record_session(session, *end);
            }
            Observation::Queued(change) => self.active.queued.add(*change),
            Observation::Refused(refused) => self.counters.refused(*refused),
            Observation::StreamOpened(kind) => self.active.stream(*kind).add(1),
            Observation::StreamClosed(kind) => self.active.stream(*kind).add(-1),
            Observation::SlowReader => self.counters.slow_reader(),
            Observation::MessagesDropped(count) => self.counters.dropped_messages(*count),
            Observation::CacheLookup { is_hit } => self.counters.cache_lookup(*is_hit),
            Observation::ChildRestarted => self.counters.child_restarted(),
            Observation::Login { is_successful } => self.counters.login(*is_successful),
            Observation::TokenRefresh { is_successful } => self.counters.token_refresh(*is_successful),
            _ => {}
        }
    }

    fn watch(&self, source: Arc<dyn MetricSource>) {
        self.sources.add(source);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
