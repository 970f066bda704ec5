//! Timers, which the transport drives.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_kernel::Time;

use crate::state::{Phase, Shared};

/// The tasks that sleep, by their deadline.
#[derive(Default)]
pub(crate) struct Timers {
    sleepers: BTreeMap<(Time, u64), Waker>,
    last_key: u64,
}

impl Timers {
    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.sleepers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes all wakers, because the transport has ended.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.sleepers).into_values()
    }

    /// Takes the wakers whose deadline has passed.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Waker> {
        let later = self.sleepers.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.sleepers, later).into_values().collect()
    }
}

/// Completes after a duration, or when the client is closed.
pub(crate) struct Sleep {
    shared: Arc<Shared>,
    at: Time,
    key: Option<u64>,
}

impl Sleep {
    pub(crate) fn new(shared: &Arc<Shared>, duration: Duration) -> Self {
        Self::until(shared, shared.now() + duration)
    }

    pub(crate) fn until(shared: &Arc<Shared>, at: Time) -> Self {
        Self { shared: Arc::clone(shared), at, key: None }
    }

    pub(super) fn deadline(&self) -> Time {
        self.at
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (at, key) = (self.at, self.key);
        let registered = self.shared.with(|core, now| {
            // The transport drives the timers, so without it they would never fire.
            if now >= at || matches!(core.phase, Phase::Closing | Phase::Closed(_)) {
                return None;
            }
            let key = key.unwrap_or_else(|| {
                core.timers.last_key += 1;
                core.timers.last_key
            });
            core.timers.sleepers.insert((at, key), cx.waker().clone());
            core.wake_transport();
            Some(key)
        });
        self.key = registered.or(key);
        if registered.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let at = self.at;
            self.shared.with(|core, _| drop(core.timers.sleepers.remove(&(at, key))));
        }
    }
}
