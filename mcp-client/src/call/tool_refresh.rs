//! Lists the tools again after a server rejected the headers of a call.
//!
//! The server triggers this, so it is bounded: one refresh at a time, which all calls share that need it, with a limited
//! number of pages and duration, and no more than one page in memory.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};

use crate::client::Client;
use crate::context::CallExtensions;
use crate::state::Shared;
use crate::state::timers::Sleep;
use crate::state::waiters::{Waiter, Waiters};

/// Maximum number of pages.
const MAX_PAGES: usize = 100;

/// Maximum duration.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The state of the refresh.
#[derive(Default)]
pub(crate) struct ToolRefresh {
    is_running: bool,
    /// Number of refreshes that completed, successfully or not.
    completed: u64,
    /// Whether the latest one was successful.
    was_successful: bool,
    waiters: Waiters,
}

/// Lists the tools as a call with these values sees them, or waits for another call that does; returns whether it was
/// successful.
pub(crate) async fn refresh_tools(client: &Client, extensions: &CallExtensions) -> bool {
    let shared = &client.shared;
    let before = shared.read(|core| core.tool_refresh.completed);
    let mut waiter = Waiter::new(shared, |core| &mut core.tool_refresh.waiters);
    let guard = poll_fn(|cx| {
        shared.with(|core, _| {
            // Another refresh completed in the meantime, and would have the same outcome.
            if core.tool_refresh.completed != before {
                return Poll::Ready(Err(core.tool_refresh.was_successful));
            }
            if core.tool_refresh.is_running {
                waiter.wait(core, cx.waker());
                return Poll::Pending;
            }
            core.tool_refresh.is_running = true;
            Poll::Ready(Ok(RefreshGuard(Arc::clone(shared))))
        })
    });
    let _guard = match guard.await {
        Ok(guard) => guard,
        Err(was_successful) => return was_successful,
    };
    let mut pages = client.tools().extensions(extensions.clone()).skip_cache().max_pages(MAX_PAGES);
    let listing = async {
        while let Some(tool) = pages.next().await {
            if tool.is_err() {
                return false;
            }
        }
        true
    };
    let was_successful = match select(pin!(listing), Sleep::new(shared, TIMEOUT)).await {
        Either::Left((was_successful, _)) => was_successful,
        Either::Right(_) => false,
    };
    shared.with(|core, _| {
        core.tool_refresh.completed += 1;
        core.tool_refresh.was_successful = was_successful;
    });
    was_successful
}

/// Held by the call that lists the tools; dropping it wakes the waiting calls. If the call is dropped before the list is
/// complete, another call takes over.
struct RefreshGuard(Arc<Shared>);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.with(|core, _| {
            core.tool_refresh.is_running = false;
            let waiters = core.tool_refresh.waiters.all();
            core.wake_each(waiters);
        });
    }
}
