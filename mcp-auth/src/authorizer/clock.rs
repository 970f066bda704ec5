//! The time.

use std::time::{Duration, SystemTime};

use crate::UnixTime;

/// Returns the time since 1970-01-01 00:00 UTC.
pub(super) fn since_epoch() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "drivers read the clock for the machines")]
    let now = SystemTime::now();
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns the current time in whole seconds.
pub(super) fn now() -> UnixTime {
    UnixTime::from_secs(since_epoch().as_secs())
}
