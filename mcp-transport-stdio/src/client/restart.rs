//! How often a server that died is started again.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::time::Duration;

use mcp_kernel::Time;

/// How often a server that died is started again, so that one that always dies does so in peace.
///
/// By default at most five times within a minute, with 100 ms in between, then 200 ms and so on, up to 30 s; each time a
/// random part of that, half of it at least, so that many clients do not start theirs at the same moment. When that was
/// in vain, the client is closed with the status of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// How often it is started again. With 0 it never is. Default: 5.
    pub most: usize,
    /// Within which time that is too often. Default: 60 s.
    pub within: Duration,
    /// How long to wait the first time. Default: 100 ms.
    pub first_delay: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self { most: 5, within: Duration::from_secs(60), first_delay: Duration::from_millis(100) }
    }
}

impl Restart {
    /// A server that died is not started again.
    #[must_use]
    pub fn never() -> Self {
        Self { most: 0, ..Self::default() }
    }

    /// Replaces [`most`](Self::most).
    #[must_use]
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Replaces [`within`](Self::within).
    #[must_use]
    pub fn with_within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Replaces [`first_delay`](Self::first_delay).
    #[must_use]
    pub fn with_first_delay(self, first_delay: Duration) -> Self {
        Self { first_delay, ..self }
    }
}

/// The times at which a server was started again.
pub(super) struct Restarts {
    policy: Restart,
    recent: VecDeque<Time>,
}

impl Restarts {
    pub(super) fn new(policy: Restart) -> Self {
        Self { policy, recent: VecDeque::new() }
    }

    /// How long to wait before the next one; `None` if there have been too many.
    pub(super) fn next(&mut self, now: Time) -> Option<Duration> {
        while self.recent.front().is_some_and(|first| now.duration_since(*first) >= self.policy.within) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.policy.most {
            return None;
        }
        let doublings = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).min(16);
        let longest = self.policy.first_delay.saturating_mul(1 << doublings).min(LONGEST_DELAY);
        self.recent.push_back(now);
        Some(jittered(longest))
    }
}

const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Between half of it and all of it.
fn jittered(longest: Duration) -> Duration {
    // The standard library has no other source of chance; each state has keys of its own.
    let chance = std::hash::RandomState::new().hash_one(0) as u32;
    longest.mul_f64(0.5 + 0.5 * f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that always dies is given up, and one that dies now and then is not.
    // covers: RB-67
    #[test]
    fn the_bound_is_for_a_while() {
        let start = Time::EPOCH;
        let policy = Restart::default().with_most(3).with_within(Duration::from_secs(10));
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
        assert_eq!(Restarts::new(Restart::never()).next(start), None);
    }

    #[test]
    fn delays_are_bounded() {
        let now = Time::EPOCH;
        let mut restarts = Restarts::new(Restart::default().with_most(100));
        assert!((0..100).all(|_| restarts.next(now).is_some_and(|delay| delay <= LONGEST_DELAY)));
    }
}
