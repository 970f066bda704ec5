//! Reports streams, refusals and sessions to the observer of a server.

use std::sync::Arc;

use http::StatusCode;
use mcp_kernel::observe::{Gauge, Gauges, Observation, Observer, Refused, StreamKind};
use mcp_session::{EndReason, SessionError};

use super::service::Inner;

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

/// The current values of sessions.
impl Gauges for Inner {
    fn read(&self, report: &mut dyn FnMut(Gauge, u64)) {
        let Some(metrics) = self.sessions.as_ref().map(|sessions| sessions.metrics()) else { return };
        report(Gauge::ActiveSessions, metrics.active as u64);
        report(Gauge::IdleSessions, metrics.idle as u64);
        report(Gauge::IdleSessionBytes, metrics.idle_bytes as u64);
        for reason in EndReason::ALL.iter().copied() {
            report(Gauge::SessionsEnded(reason.as_str()), metrics.ended(reason));
        }
        for reason in SessionError::ALL.iter().copied() {
            report(Gauge::SessionsRefused(reason.as_str()), metrics.refused(reason));
        }
        report(Gauge::EventsReplayed, metrics.replayed);
        report(Gauge::EventsLost, metrics.dropped_messages);
    }
}
