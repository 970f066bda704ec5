//! All connections of a server, to tell them of changes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcp_kernel::Change;
use mcp_kernel::server::Announcement;

use crate::shared::Shared;

/// The connections that may want to hear of changes.
#[derive(Default)]
pub(crate) struct Hub(Mutex<Vec<Weak<Shared>>>);

impl Hub {
    /// Adds a connection, unless it is there already; it leaves by being dropped.
    pub(crate) fn join(&self, connection: &Arc<Shared>) {
        if connection.has_joined.swap(true, Ordering::Relaxed) {
            return;
        }
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
        let announcement = Announcement::new(change);
        for member in members {
            let has_news = {
                let mut state = member.lock();
                state.kernel.announce(&announcement);
                state.kernel.has_transmit()
            };
            if has_news {
                member.driver.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_kernel::server::{Connection, ServerConfig};
    use mcp_types::{Implementation, ServerCapabilities};

    use super::*;

    /// S0.20: a client that subscribes again and again is told once, and costs no more than one that does so once.
    #[test]
    fn a_connection_is_there_once() {
        let config = ServerConfig::new(Implementation::new("demo", "1.0"), ServerCapabilities::default());
        let connection = Arc::new(Shared::new(Connection::for_loop(Arc::new(config))));
        let hub = Hub::default();
        for _ in 0..10 {
            hub.join(&connection);
        }
        assert_eq!(hub.0.lock().unwrap().len(), 1);
    }
}
