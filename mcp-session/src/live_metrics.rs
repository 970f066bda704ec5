//! The metrics of sessions, which can be read without access to the sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::metrics::{EndReason, SessionError, SessionMetrics};

/// The current metrics of a [`SessionManager`](crate::SessionManager). They can be read in any thread, and after its end, as
/// they do not keep any session.
#[derive(Debug, Default)]
pub struct LiveMetrics {
    live: AtomicUsize,
    idle: AtomicUsize,
    idle_bytes: AtomicUsize,
    created: AtomicU64,
    adopted: AtomicU64,
    ended: [AtomicU64; EndReason::ALL.len()],
    refused: [AtomicU64; SessionError::ALL.len()],
    is_final: AtomicBool,
}

impl LiveMetrics {
    /// Returns the current values. Those that change together may be read one before and the other after a change.
    #[must_use]
    pub fn read(&self) -> SessionMetrics {
        let (live, idle) = (self.live.load(Ordering::Relaxed), self.idle.load(Ordering::Relaxed));
        SessionMetrics {
            live,
            idle,
            idle_bytes: self.idle_bytes.load(Ordering::Relaxed),
            active: live.saturating_sub(idle),
            created: self.created.load(Ordering::Relaxed),
            adopted: self.adopted.load(Ordering::Relaxed),
            replayed: 0,
            dropped_messages: 0,
            ended: self.ended.each_ref().map(|count| count.load(Ordering::Relaxed)),
            refused: self.refused.each_ref().map(|count| count.load(Ordering::Relaxed)),
        }
    }

    /// Returns whether the sessions and their manager are gone, so that the values do not change any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_final.load(Ordering::Acquire)
    }

    pub(crate) fn set_live(&self, live: usize) {
        self.live.store(live, Ordering::Relaxed);
    }

    pub(crate) fn set_idle(&self, count: usize, bytes: usize) {
        self.idle.store(count, Ordering::Relaxed);
        self.idle_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_created(&self) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_adopted(&self) {
        self.adopted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_ended(&self, reason: EndReason) {
        count(&self.ended, reason as usize);
    }

    pub(crate) fn count_refused(&self, reason: SessionError) {
        count(&self.refused, reason as usize);
    }
}

fn count(counters: &[AtomicU64], index: usize) {
    if let Some(counter) = counters.get(index) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The metrics of the table that changes them. They are final when it is dropped.
#[derive(Default)]
pub(crate) struct OwnedMetrics(pub(crate) Arc<LiveMetrics>);

impl Drop for OwnedMetrics {
    fn drop(&mut self) {
        self.0.set_live(0);
        self.0.set_idle(0, 0);
        self.0.is_final.store(true, Ordering::Release);
    }
}
