//! Reports streams, refusals and sessions to the observer of a server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::StatusCode;
use mcp_kernel::observe::{MetricSource, Observation, Observer, Refused, SourceMetric, StreamKind};
use mcp_session::{EndReason, LiveMetrics, SessionError};

use super::service::Inner;
use super::stateful::SessionCounters;

/// An event stream that was reported as opened. It is reported as closed when it is dropped.
pub(crate) struct ObservedStream {
    observer: Arc<dyn Observer>,
    kind: StreamKind,
}

impl ObservedStream {
    pub(crate) fn open(observer: &Arc<dyn Observer>, kind: StreamKind) -> Self {
        observer.observe(&Observation::StreamOpened(kind));
        Self { observer: Arc::clone(observer), kind }
    }
}

impl Drop for ObservedStream {
    fn drop(&mut self) {
        self.observer.observe(&Observation::StreamClosed(self.kind));
    }
}

impl Inner {
    /// Reports that a request was refused.
    pub(crate) fn observe_refusal(&self, status: StatusCode) {
        if let Some(observer) = self.server.observer() {
            observer.observe(&Observation::Refused(Refused::new(status.as_u16())));
        }
    }

    /// Reports that a connection was closed because its client did not read.
    #[cfg(feature = "serve")]
    pub(crate) fn observe_slow_reader(&self) {
        if let Some(observer) = self.server.observer() {
            observer.observe(&Observation::SlowReader);
        }
    }
}

/// The metrics of sessions. It keeps neither the sessions nor the service.
pub(crate) struct SessionSource {
    pub(crate) metrics: Arc<LiveMetrics>,
    pub(crate) counters: Arc<SessionCounters>,
}

impl MetricSource for SessionSource {
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
        let metrics = self.metrics.read();
        report(SourceMetric::ActiveSessions, metrics.active as u64);
        report(SourceMetric::IdleSessions, metrics.idle as u64);
        report(SourceMetric::IdleSessionBytes, metrics.idle_bytes as u64);
        for reason in EndReason::ALL.iter().copied() {
            report(SourceMetric::SessionsEnded(reason.as_str()), metrics.ended(reason));
        }
        for reason in SessionError::ALL.iter().copied() {
            report(SourceMetric::SessionsRefused(reason.as_str()), metrics.refused(reason));
        }
        report(SourceMetric::EventsReplayed, self.counters.replayed.load(Ordering::Relaxed));
        report(SourceMetric::EventsLost, self.counters.dropped_messages.load(Ordering::Relaxed));
    }

    fn is_ended(&self) -> bool {
        self.metrics.is_final()
    }
}
