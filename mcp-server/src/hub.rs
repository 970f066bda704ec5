//! All connections of a server, to tell them of changes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcp_kernel::Change;

use crate::shared::Shared;

/// The connections that may want to hear of changes.
#[derive(Default)]
pub(crate) struct Hub(Mutex<Vec<Weak<Shared>>>);

impl Hub {
    /// Adds a connection; it leaves by being dropped.
    pub(crate) fn join(&self, connection: &Arc<Shared>) {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if members.len() == members.capacity() {
            // Those who left make room before the list grows, so what they cost is bounded by those who are there.
            members.retain(|member| member.strong_count() > 0);
        }
        members.push(Arc::downgrade(connection));
    }

    pub(crate) fn publish(&self, change: &Change) {
        let members: Vec<Arc<Shared>> = {
            let members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            members.iter().filter_map(Weak::upgrade).collect()
        };
        for member in members {
            member.tell(|kernel| kernel.publish(change));
        }
    }
}
