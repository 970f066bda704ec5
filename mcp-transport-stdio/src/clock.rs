//! The clock of the transport.

use std::sync::LazyLock;

use mcp_kernel::Time;
use tokio::time::Instant;

/// Returns the time of tokio's clock, which all timers run by.
pub(crate) fn now() -> Time {
    static REFERENCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    Time::from_instant(Instant::now().into_std(), REFERENCE.into_std())
}

/// The time of one pass of a driver, which reads the clock at most once, and not at all if the pass finds nothing to do.
#[cfg(feature = "server")]
#[derive(Default)]
pub(crate) struct PassTime(Option<Time>);

#[cfg(feature = "server")]
impl PassTime {
    pub(crate) fn get(&mut self) -> Time {
        *self.0.get_or_insert_with(now)
    }
}
