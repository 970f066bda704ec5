//! When a server that exited is restarted.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::time::Duration;

use mcp_kernel::Time;

/// Limits how often a server that exited is restarted.
///
/// The delay before a restart starts at [`initial_delay`](Self::initial_delay) and doubles with each restart within
/// [`window`](Self::window), up to 30 seconds. A random part of up to one half is subtracted, so that many clients do not
/// restart their servers at the same moment. When [`max_restarts`](Self::max_restarts) is reached, the client is closed
/// with the exit status of the last process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RestartPolicy {
    max_restarts: usize,
    window: Duration,
    initial_delay: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self { max_restarts: 5, window: Duration::from_secs(60), initial_delay: Duration::from_millis(100) }
    }
}

impl RestartPolicy {
    /// Creates a policy that never restarts the server.
    pub fn never() -> Self {
        Self { max_restarts: 0, ..Self::default() }
    }

    /// Sets the maximum number of restarts within [`window`](Self::window); 0 disables restarts. Defaults to 5.
    pub fn max_restarts(self, max_restarts: usize) -> Self {
        Self { max_restarts, ..self }
    }

    /// Sets the period in which restarts are counted. Defaults to 60 seconds.
    pub fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Sets the delay before the first restart. Defaults to 100 milliseconds.
    pub fn initial_delay(self, initial_delay: Duration) -> Self {
        Self { initial_delay, ..self }
    }
}

/// The recent restarts of a server.
pub(super) struct Restarts {
    policy: RestartPolicy,
    recent: VecDeque<Time>,
}

impl Restarts {
    pub(super) fn new(policy: RestartPolicy) -> Self {
        Self { policy, recent: VecDeque::new() }
    }

    /// Records a restart and returns the delay before it, or `None` if the limit is reached.
    pub(super) fn next(&mut self, now: Time) -> Option<Duration> {
        while self.recent.front().is_some_and(|first| now.duration_since(*first) >= self.policy.window) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.policy.max_restarts {
            return None;
        }
        let doublings = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).min(16);
        let longest = self.policy.initial_delay.saturating_mul(1 << doublings).min(MAX_DELAY);
        self.recent.push_back(now);
        Some(jittered(longest))
    }
}

const MAX_DELAY: Duration = Duration::from_secs(30);

/// Returns a random duration between one half of `longest` and `longest`.
fn jittered(longest: Duration) -> Duration {
    // The standard library has no other source of randomness; each state has its own keys.
    let random = std::hash::RandomState::new().hash_one(0) as u32;
    longest.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that always dies is given up, and one that dies now and then is not.
    // covers: RB-67
    #[test]
    fn the_bound_is_for_a_while() {
        let start = Time::EPOCH;
        let policy = RestartPolicy::default().max_restarts(3).window(Duration::from_secs(10));
        let mut restarts = Restarts::new(policy);
        let at = |seconds| start + Duration::from_secs(seconds);
        for (time, longest) in [(0, 100), (1, 200), (2, 400)] {
            let delay = restarts.next(at(time)).expect("not too often yet");
            assert!(
                delay <= Duration::from_millis(longest) && delay >= Duration::from_millis(longest / 2),
                "{delay:?}"
            );
        }
        assert_eq!(restarts.next(at(9)), None);
        assert!(restarts.next(at(10)).is_some(), "the first one is forgotten");
        assert_eq!(restarts.next(at(10)), None);
        assert!(restarts.next(at(30)).is_some_and(|delay| delay <= Duration::from_millis(100)));
        assert_eq!(Restarts::new(RestartPolicy::never()).next(start), None);
    }

    #[test]
    fn delays_are_bounded() {
        let now = Time::EPOCH;
        let mut restarts = Restarts::new(RestartPolicy::default().max_restarts(100));
        assert!((0..100).all(|_| restarts.next(now).is_some_and(|delay| delay <= MAX_DELAY)));
    }
}
