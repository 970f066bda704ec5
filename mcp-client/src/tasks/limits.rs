//! Limits of tasks.

use std::time::Duration;

/// Limits of the tasks that a client follows: whatever a server says, it is neither polled without a pause nor waited for
/// without a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowLimits {
    /// Minimum time between two polls of a task. Defaults to 250 milliseconds.
    pub min_poll_interval: Duration,
    /// Maximum time between two polls of a task. Defaults to 60 seconds.
    pub max_poll_interval: Duration,
    /// Maximum number of consecutive requests for a task that fail because of the connection or an outage of the server.
    /// Defaults to 10, which are about two minutes.
    pub max_failures: u32,
    /// Maximum number of input requests over the life of a task. Defaults to 256. The number in one response is that of
    /// [`RetryLimits::max_input_requests`](crate::RetryLimits::max_input_requests).
    pub max_input_requests: usize,
    /// Maximum size of the state of a task with its result, as JSON, in bytes. Defaults to 16 MiB.
    pub max_bytes: usize,
}

impl Default for FollowLimits {
    fn default() -> Self {
        Self {
            min_poll_interval: Duration::from_millis(250),
            max_poll_interval: Duration::from_secs(60),
            max_failures: 10,
            max_input_requests: 256,
            max_bytes: 16 * 1024 * 1024,
        }
    }
}

impl FollowLimits {
    /// Sets [`min_poll_interval`](Self::min_poll_interval).
    #[must_use]
    pub fn min_poll_interval(self, min_poll_interval: Duration) -> Self {
        Self { min_poll_interval, ..self }
    }

    /// Sets [`max_poll_interval`](Self::max_poll_interval).
    #[must_use]
    pub fn max_poll_interval(self, max_poll_interval: Duration) -> Self {
        Self { max_poll_interval, ..self }
    }

    /// Sets [`max_failures`](Self::max_failures).
    #[must_use]
    pub fn max_failures(self, max_failures: u32) -> Self {
        Self { max_failures, ..self }
    }

    /// Sets [`max_input_requests`](Self::max_input_requests).
    #[must_use]
    pub fn max_input_requests(self, max_input_requests: usize) -> Self {
        Self { max_input_requests, ..self }
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Returns the time until the next poll, for the interval that the server asks for.
    pub(super) fn clamp(&self, interval: Duration) -> Duration {
        // Not `Duration::clamp`, which panics if the limits contradict each other.
        interval.min(self.max_poll_interval).max(self.min_poll_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_clamped() {
        let limits = FollowLimits::default();
        let [none, some, long] = [0, 5000, u64::MAX].map(Duration::from_millis);
        assert_eq!(
            [none, some, long].map(|interval| limits.clamp(interval)),
            [limits.min_poll_interval, some, limits.max_poll_interval]
        );
        let reversed = limits.min_poll_interval(Duration::from_secs(100));
        assert_eq!(reversed.clamp(some), Duration::from_secs(100));
    }
}
