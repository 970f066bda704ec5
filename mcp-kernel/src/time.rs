//! Time as a plain number.

use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant};

/// A moment, as the [`Duration`] since an epoch that the driver chooses.
///
/// The state machines read no clock: every input comes with its time. All times given to one connection must have the same
/// epoch and must not run backwards. Unlike an [`Instant`], a `Time` can be made on every target, also where
/// the standard library has no clock (`wasm32-unknown-unknown`). Arithmetic saturates.
///
/// ```
/// use std::time::Duration;
///
/// use mcp_kernel::Time;
///
/// let now = Time::since_epoch(Duration::from_millis(1500));
/// let deadline = now + Duration::from_secs(2);
/// assert_eq!(deadline.duration_since(now), Duration::from_secs(2));
/// assert_eq!(now.duration_since(deadline), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

/// The time of the reference instant in [`Time::from_instant`]: far enough from zero for instants before it.
const REFERENCE: Time = Time(Duration::from_secs(1 << 32));

impl Time {
    /// The epoch itself.
    pub const EPOCH: Self = Self(Duration::ZERO);

    /// Creates the time that is `elapsed` after the epoch.
    #[must_use]
    pub const fn since_epoch(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Converts an [`Instant`] that the driver has read, by its distance to a reference instant that is the same for all
    /// times of a connection. Instants before the reference are converted, too.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use mcp_kernel::Time;
    ///
    /// let reference = Instant::now();
    /// let later = reference + Duration::from_secs(1);
    /// let elapsed = Time::from_instant(later, reference).duration_since(Time::from_instant(reference, reference));
    /// assert_eq!(elapsed, Duration::from_secs(1));
    /// ```
    #[must_use]
    pub fn from_instant(instant: Instant, reference: Instant) -> Self {
        match instant.checked_duration_since(reference) {
            Some(after) => REFERENCE + after,
            None => REFERENCE - reference.duration_since(instant),
        }
    }

    /// Returns the time that has passed since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn arithmetic_saturates() {
        let latest = Time::since_epoch(Duration::MAX);
        assert_eq!(latest + SECOND, latest);
        assert_eq!(Time::EPOCH - SECOND, Time::EPOCH);
        assert_eq!(Time::EPOCH.duration_since(latest), Duration::ZERO);
    }

    #[test]
    fn instants_keep_their_distances() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let earlier = Instant::now();
        let (reference, later) = (earlier + SECOND, earlier + 3 * SECOND);
        let time = |instant| Time::from_instant(instant, reference);
        assert_eq!(time(later).duration_since(time(earlier)), 3 * SECOND);
        assert_eq!(time(reference).duration_since(time(earlier)), SECOND);
    }
}
