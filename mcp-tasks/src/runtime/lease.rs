//! The lease of a run.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::runtime::Shared;
use crate::{TaskStoreError, TaskTicket};

/// A time by two clocks: one that does not jump, and one that goes on while the machine is suspended.
#[derive(Clone, Copy)]
pub(crate) struct LeaseTime {
    pub(crate) at: Instant,
    unix: u64,
}

impl LeaseTime {
    pub(crate) fn now(shared: &Shared) -> Self {
        Self { at: Instant::now(), unix: shared.now() }
    }
}

/// The lease of a run, which begins at the earliest when the store is asked for it. Another process may take the task over as soon
/// as it has expired.
pub(crate) struct Lease {
    /// When the store was last asked for a lease that it granted.
    asked: Mutex<LeaseTime>,
}

impl Lease {
    pub(crate) fn new(asked: LeaseTime) -> Self {
        Self { asked: Mutex::new(asked) }
    }

    /// Returns whether no other process can have the task now, without asking the store.
    pub(crate) fn is_certain(&self, shared: &Shared) -> bool {
        let (now, asked, most) = (LeaseTime::now(shared), *self.asked(), shared.settings.lease / 2);
        now.at.duration_since(asked.at) < most && Duration::from_millis(now.unix.abs_diff(asked.unix)) < most
    }

    /// Extends the lease; returns whether it was not lost before.
    pub(crate) async fn renew(&self, shared: &Shared, ticket: TaskTicket) -> Result<bool, TaskStoreError> {
        let asked = LeaseTime::now(shared);
        let is_renewed = shared.store.renew(shared.now(), ticket, shared.settings.lease).await?;
        if is_renewed {
            *self.asked() = asked;
        }
        Ok(is_renewed)
    }

    /// Renews the lease until it is lost.
    pub(crate) async fn keep(&self, shared: &Shared, ticket: TaskTicket) {
        let lease = shared.settings.lease;
        loop {
            let expires = self.asked().at + lease;
            let renewed = timeout_at(expires, async {
                sleep(lease / 3).await;
                self.renew(shared, ticket).await
            });
            match renewed.await {
                Ok(Ok(true)) => {}
                Ok(Err(error)) => tracing::warn!(target: "mcp", %error, "the lease of a task cannot be renewed"),
                Ok(Ok(false)) | Err(_) => return,
            }
        }
    }

    fn asked(&self) -> MutexGuard<'_, LeaseTime> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
