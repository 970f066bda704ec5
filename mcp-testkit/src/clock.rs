//! Virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_kernel::Time;

/// A clock that starts at [`Time::EPOCH`] and moves only when a test advances it. Clones share the time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Time>>);

impl Clock {
    /// Creates a clock at [`Time::EPOCH`].
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Time::EPOCH)))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        *self.0.lock().expect("no panic while the time changes")
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().expect("no panic while the time changes") += by;
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
