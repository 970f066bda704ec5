//! Tasks that wait for a condition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use crate::state::{Core, Shared};

/// The tasks that wait for one condition, in the order in which they registered.
#[derive(Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    last_key: u64,
}

impl Waiters {
    /// Takes all wakers.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }
}

/// The registration of a task in [`Waiters`], which is removed when it is dropped.
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    waiters: fn(&mut Core) -> &mut Waiters,
    key: Option<u64>,
}

impl Waiter {
    pub(crate) fn new(shared: &Arc<Shared>, waiters: fn(&mut Core) -> &mut Waiters) -> Self {
        Self { shared: Arc::clone(shared), waiters, key: None }
    }

    /// Registers the waker, or replaces it.
    pub(crate) fn wait(&mut self, core: &mut Core, waker: &Waker) {
        let waiters = (self.waiters)(core);
        let key = *self.key.get_or_insert_with(|| {
            waiters.last_key += 1;
            waiters.last_key
        });
        waiters.wakers.insert(key, waker.clone());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            drop(self.shared.with(|core, _| (self.waiters)(core).wakers.remove(&key)));
        }
    }
}
