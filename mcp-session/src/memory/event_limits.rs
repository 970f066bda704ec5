//! The limits of the event store in memory, and its usage.

use std::time::Duration;

/// The limits of [`MemoryEventStore`](crate::MemoryEventStore). The oldest events are evicted first.
///
/// | setting | default | a greater value |
/// |---|---|---|
/// | [`max_session_events`](Self::max_session_events) | 1,024 | lets a client miss more |
/// | [`max_session_bytes`](Self::max_session_bytes) | 1 MiB | lets a client miss more, and one session take more of the whole |
/// | [`max_bytes`](Self::max_bytes) | 64 MiB | takes more memory |
/// | [`max_age`](Self::max_age) | 30 min | lets a client be away for longer |
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryEventLimits {
    pub(super) max_session_events: usize,
    pub(super) max_session_bytes: usize,
    pub(super) max_bytes: usize,
    pub(super) max_age: Duration,
}

impl Default for MemoryEventLimits {
    fn default() -> Self {
        Self {
            max_session_events: 1024,
            max_session_bytes: 1024 * 1024,
            max_bytes: 64 * 1024 * 1024,
            max_age: Duration::from_secs(30 * 60),
        }
    }
}

impl MemoryEventLimits {
    /// Sets the maximum number of events of one session.
    pub fn max_session_events(mut self, count: usize) -> Self {
        self.max_session_events = count;
        self
    }

    /// Sets the maximum number of bytes in the events of one session. An event counts as its message and
    /// [`EVENT_OVERHEAD`](Self::EVENT_OVERHEAD).
    pub fn max_session_bytes(mut self, bytes: usize) -> Self {
        self.max_session_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes in all events.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum age of an event.
    pub fn max_age(mut self, time: Duration) -> Self {
        self.max_age = time;
        self
    }

    /// The number of bytes that is added to the message size of each event, so that the limits bound small events too.
    pub const EVENT_OVERHEAD: usize = 160;
}

/// The usage of [`MemoryEventStore`](crate::MemoryEventStore).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventUsage {
    /// The number of events.
    pub events: usize,
    /// The number of bytes in them, each with [`EVENT_OVERHEAD`](MemoryEventLimits::EVENT_OVERHEAD).
    pub bytes: usize,
    /// The number of sessions with events.
    pub sessions: usize,
    /// The number of events that were evicted because of a limit.
    pub dropped: u64,
    /// The number of events that were refused because they were too large or out of order.
    pub lost: u64,
}
