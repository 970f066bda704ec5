//! The time of clocks that machines share.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, as whole seconds since 1970-01-01 00:00 UTC.
///
/// Expiry of tokens is compared across machines, so it is wall-clock time. This crate reads no clock: drivers pass the time in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Creates a point in time from the seconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Returns the seconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// Returns the time this long after this one, or the latest that can be expressed.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }

    /// Returns how long after `earlier` this is, or zero if it is before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}
