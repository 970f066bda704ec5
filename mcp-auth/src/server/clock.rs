//! The time that tokens are judged by.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::UnixTime;

/// The wall clock, or the one of a test.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<dyn Fn() -> UnixTime + Send + Sync>>);

impl Clock {
    pub(crate) fn new(now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the expiry of tokens is wall-clock time, and a server has no driver that passes it in"
    )]
    pub(crate) fn now(&self) -> UnixTime {
        match &self.0 {
            Some(now) => now(),
            // A clock before 1970 makes every token expire.
            None => unix_time(SystemTime::now()).unwrap_or(UnixTime::from_secs(u64::MAX)),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(custom)" } else { "Clock(system)" })
    }
}

/// Returns a time in whole seconds; `None` before 1970.
pub(crate) fn unix_time(time: SystemTime) -> Option<UnixTime> {
    Some(UnixTime::from_secs(time.duration_since(UNIX_EPOCH).ok()?.as_secs()))
}

/// Returns a time as the standard library has it; `None` if it cannot express it.
pub(crate) fn system_time(time: UnixTime) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()))
}
