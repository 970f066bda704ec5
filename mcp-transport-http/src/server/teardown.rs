//! The teardown of connections that have ended.

use std::time::Duration;

use mcp_server::Connection;
use tokio::runtime::Handle;
use tokio::time::sleep;

/// How long each teardown of a handler may take.
pub(crate) const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Spawns the teardown that handlers registered, if there is any. It holds what `hold` returns until it is done, so that
/// it counts as in flight.
pub(crate) fn spawn_teardown<H: Send + 'static>(connection: &mut Connection, hold: impl FnOnce() -> H) {
    let Some(teardown) = connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT)) else { return };
    let held = hold();
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move {
            teardown.await;
            drop(held);
        });
    }
}
