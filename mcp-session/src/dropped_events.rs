//! The number of events that a store has dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mcp_kernel::observe::{MetricSource, SourceMetric};

/// Counts the events that an [`EventStore`](crate::EventStore) has dropped because of a limit. The store owns it, and shares
/// its [source](Self::source) with observers.
#[derive(Debug, Default)]
pub struct DroppedEvents(Arc<Counter>);

#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    is_final: AtomicBool,
}

impl DroppedEvents {
    /// Counts an event.
    pub fn add_one(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of events so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Returns the source for [`EventStore::metrics`](crate::EventStore::metrics), which ends with this value.
    #[must_use]
    pub fn source(&self) -> Arc<dyn MetricSource> {
        let source: Arc<Counter> = Arc::clone(&self.0);
        source
    }
}

impl Drop for DroppedEvents {
    fn drop(&mut self) {
        self.0.is_final.store(true, Ordering::Release);
    }
}

impl MetricSource for Counter {
    fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
        report(SourceMetric::EventsDropped, self.count.load(Ordering::Relaxed));
    }

    fn is_ended(&self) -> bool {
        self.is_final.load(Ordering::Acquire)
    }
}
