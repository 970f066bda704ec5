//! The connections of a server that changes are published to.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcp_kernel::Change;
use mcp_kernel::server::{Announcement, Route};

use crate::connection::shared::Shared;

/// The connections that may have subscribed to changes.
#[derive(Default)]
pub(crate) struct Broadcast(Mutex<BTreeMap<usize, Weak<Shared>>>);

impl Broadcast {
    /// Adds a connection, unless it was added before.
    pub(crate) fn join(&self, connection: &Arc<Shared>) {
        if connection.has_joined.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.insert(address(connection), Arc::downgrade(connection));
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, connection: &Arc<Shared>) {
        if connection.has_joined.load(Ordering::Relaxed) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&address(connection));
        }
    }

    pub(crate) fn publish(&self, change: &Change) {
        let members: Vec<Arc<Shared>> = {
            let members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            members.values().filter_map(Weak::upgrade).collect()
        };
        let announcement = Announcement::new(change);
        for member in members {
            let (has_transmit, is_legacy) = {
                let mut state = member.lock();
                state.kernel.announce(&announcement);
                (state.kernel.has_transmit(), state.kernel.negotiated().is_some())
            };
            if has_transmit {
                // A legacy client gets notifications of changes outside of any request.
                member.wake(is_legacy.then_some(Route::Standalone));
            }
        }
    }
}

/// Identifies a connection as long as it is a member.
fn address(connection: &Arc<Shared>) -> usize {
    Arc::as_ptr(connection).addr()
}

#[cfg(test)]
mod tests {
    use mcp_kernel::server::{Connection, ServerConfig};
    use mcp_types::{Implementation, ServerCapabilities};

    use super::*;

    /// A client that subscribes repeatedly is a member once.
    // covers: S0.20
    #[test]
    fn a_connection_is_there_once() {
        let config = ServerConfig::new(Implementation::new("demo", "1.0"), ServerCapabilities::default());
        let connection = Arc::new(Shared::new(Connection::long_lived(Arc::new(config))));
        let broadcast = Broadcast::default();
        for _ in 0..10 {
            broadcast.join(&connection);
        }
        assert_eq!(broadcast.0.lock().unwrap().len(), 1);
    }

    /// Connections that leave are removed.
    #[test]
    fn connections_that_leave_are_removed() {
        let config = ServerConfig::new(Implementation::new("demo", "1.0"), ServerCapabilities::default());
        let config = Arc::new(config);
        let connect = || Arc::new(Shared::new(Connection::long_lived(Arc::clone(&config))));
        let broadcast = Broadcast::default();
        let mut connections: Vec<_> = (0..100).map(|_| connect()).collect();
        for connection in &connections {
            broadcast.join(connection);
        }
        broadcast.leave(&connect());
        let last = connections.split_off(99);
        for connection in connections {
            broadcast.leave(&connection);
            assert_eq!(Arc::weak_count(&connection), 0);
        }
        let members = broadcast.0.lock().unwrap();
        assert!(members.len() == 1 && Arc::weak_count(&last[0]) == 1);
    }
}
