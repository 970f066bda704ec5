//! The clock of the transport.

use std::sync::LazyLock;

use mcp_kernel::Time;
use tokio::time::Instant;

/// Returns the time of tokio's clock, which all timers run by.
pub(crate) fn now() -> Time {
    static REFERENCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    Time::from_instant(Instant::now().into_std(), REFERENCE.into_std())
}
