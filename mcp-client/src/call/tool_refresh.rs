//! Fetching the tools again, because a server says that headers do not fit them.
//!
//! It is the server who starts this, so it is bounded: one at a time, which all calls share that wait for it; so many
//! pages, so long, and no more than one page is kept.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};

use crate::client::Client;
use crate::state::Shared;
use crate::state::timers::Sleep;
use crate::state::waiters::{Place, Waiters};

/// How many pages are fetched.
const MOST_PAGES: usize = 100;

/// How long all of them may take.
const TIME: Duration = Duration::from_secs(60);

/// Whether the tools are being fetched.
#[derive(Default)]
pub(crate) struct Relisting {
    is_running: bool,
    /// How many times it came to an end, well or not.
    ended: u64,
    /// Whether the latest time was a success.
    is_complete: bool,
    waiting: Waiters,
}

/// Fetches the tools, or waits for another call that does; returns whether they were fetched.
pub(crate) async fn relist(client: &Client) -> bool {
    let shared = &client.shared;
    let before = shared.look(|core| core.relisting.ended);
    let mut place = Place::new(shared, |core| &mut core.relisting.waiting);
    let turn = poll_fn(|cx| {
        shared.with(|core, _| {
            // What another call met, this one would meet, too.
            if core.relisting.ended != before {
                return Poll::Ready(Err(core.relisting.is_complete));
            }
            if core.relisting.is_running {
                place.wait(core, cx.waker());
                return Poll::Pending;
            }
            core.relisting.is_running = true;
            Poll::Ready(Ok(Turn(Arc::clone(shared))))
        })
    });
    let _turn = match turn.await {
        Ok(turn) => turn,
        Err(is_complete) => return is_complete,
    };
    let mut pages = client.tools().fresh().at_most(MOST_PAGES);
    let listing = async {
        while let Some(tool) = pages.next().await {
            if tool.is_err() {
                return false;
            }
        }
        true
    };
    let is_complete = match select(pin!(listing), Sleep::new(shared, TIME)).await {
        Either::Left((is_complete, _)) => is_complete,
        Either::Right(_) => false,
    };
    shared.with(|core, _| {
        core.relisting.ended += 1;
        core.relisting.is_complete = is_complete;
    });
    is_complete
}

/// The turn of a call to fetch the tools; whoever waits is woken when it ends, however that happens. If the call is dropped
/// before it has come to an end with them, it is the turn of another.
struct Turn(Arc<Shared>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.with(|core, _| {
            core.relisting.is_running = false;
            let waiting = core.relisting.waiting.all();
            core.wake_each(waiting);
        });
    }
}
