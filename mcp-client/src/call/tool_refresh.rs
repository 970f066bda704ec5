//! Lists the tools again after a server rejected the headers of a call.
//!
//! The server triggers this, so it is bounded: one refresh at a time for each user, which all calls of the user share that
//! need it, with a limited number of pages and duration, and no more than one page in memory.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::cache::Owner;
use crate::client::Client;
use crate::context::CallExtensions;
use crate::state::pauses::Timeout;
use crate::state::waiters::{Waiter, Waiters};
use crate::state::{Core, Shared};

/// Maximum number of pages.
const MAX_PAGES: usize = 100;

/// Maximum duration.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The refreshes that calls take part in, by the credentials of the calls: a server may list other tools for each user.
#[derive(Default)]
pub(crate) struct ToolRefresh {
    by_owner: BTreeMap<Owner, Refresh>,
    waiters: Waiters,
}

/// The state of the refresh for one user.
#[derive(Default)]
struct Refresh {
    /// Number of calls that take part; without any, there is no state.
    calls: usize,
    is_running: bool,
    /// Number of refreshes that completed, successfully or not.
    completed: u64,
    /// Whether the latest one was successful.
    was_successful: bool,
}

/// Lists the tools with the credentials of a call with these values, or waits for another call with the same credentials that
/// does; returns whether it was successful.
pub(crate) async fn refresh_tools(client: &Client, extensions: &CallExtensions) -> bool {
    let shared = &client.shared;
    let Ok(owner) = shared.owner_of(extensions).await else { return false };
    let mut waiter = Waiter::new(shared, |core| &mut core.tool_refresh.waiters);
    let (mut participant, before) = Participant::join(shared, owner);
    let starting = poll_fn(|cx| {
        shared.with(|core, _| {
            let refresh = participant.refresh(core);
            // Another refresh completed in the meantime, and would have the same outcome.
            if refresh.completed != before {
                return Poll::Ready(Some(refresh.was_successful));
            }
            if refresh.is_running {
                waiter.wait(core, cx.waker());
                return Poll::Pending;
            }
            refresh.is_running = true;
            Poll::Ready(None)
        })
    });
    if let Some(was_successful) = starting.await {
        return was_successful;
    }
    participant.is_running = true;
    let mut pages = client.tools().extensions(extensions.clone()).skip_cache().max_pages(MAX_PAGES);
    let listing = async {
        while let Some(tool) = pages.next().await {
            if tool.is_err() {
                return false;
            }
        }
        true
    };
    let was_successful = match select(pin!(listing), Timeout::new(shared, TIMEOUT)).await {
        Either::Left((was_successful, _)) => was_successful,
        Either::Right(_) => false,
    };
    shared.with(|core, _| {
        let refresh = participant.refresh(core);
        refresh.completed += 1;
        refresh.was_successful = was_successful;
    });
    was_successful
}

/// A call that takes part in a refresh. If the call that lists the tools is dropped before the list is complete, another one
/// takes over.
struct Participant {
    shared: Arc<Shared>,
    owner: Owner,
    /// Whether this call lists the tools.
    is_running: bool,
}

impl Participant {
    /// Returns a participant, and the number of refreshes that completed before.
    fn join(shared: &Arc<Shared>, owner: Owner) -> (Self, u64) {
        let participant = Self { shared: Arc::clone(shared), owner, is_running: false };
        let before = shared.with(|core, _| {
            let refresh = participant.refresh(core);
            refresh.calls += 1;
            refresh.completed
        });
        (participant, before)
    }

    fn refresh<'a>(&self, core: &'a mut Core) -> &'a mut Refresh {
        core.tool_refresh.by_owner.entry(self.owner).or_default()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.shared.with(|core, _| {
            let refresh = self.refresh(core);
            refresh.calls -= 1;
            if self.is_running {
                refresh.is_running = false;
            }
            if refresh.calls == 0 {
                core.tool_refresh.by_owner.remove(&self.owner);
            }
            if self.is_running {
                let waiters = core.tool_refresh.waiters.all();
                core.wake_each(waiters);
            }
        });
    }
}
