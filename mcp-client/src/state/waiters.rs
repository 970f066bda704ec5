//! Those who wait for a connection, or for its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use crate::state::{Core, Shared};

/// Those who wait for the same thing, in the order in which they came.
#[derive(Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    started: u64,
}

impl Waiters {
    /// All of them, to be woken.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }
}

/// A place among those who wait. Whoever drops it is forgotten.
pub(crate) struct Place {
    shared: Arc<Shared>,
    among: fn(&mut Core) -> &mut Waiters,
    key: Option<u64>,
}

impl Place {
    pub(crate) fn new(shared: &Arc<Shared>, among: fn(&mut Core) -> &mut Waiters) -> Self {
        Self { shared: Arc::clone(shared), among, key: None }
    }

    /// Wakes somebody when it has come.
    pub(crate) fn wait(&mut self, core: &mut Core, waker: &Waker) {
        let waiters = (self.among)(core);
        let key = *self.key.get_or_insert_with(|| {
            waiters.started += 1;
            waiters.started
        });
        waiters.wakers.insert(key, waker.clone());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            drop(self.shared.with(|core, _| (self.among)(core).wakers.remove(&key)));
        }
    }
}
