//! The connections of a server that changes are published to.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcp_kernel::Change;
use mcp_kernel::server::{Announcement, Route};

use crate::connection::handle::ConnectionHandle;
use crate::connection::listen_streams::ListenStream;
use crate::connection::shared::Shared;
use crate::server::Server;
use crate::visibility::audience::{Audience, Members};
use crate::visibility::guard::Guard;
use crate::visibility::viewer::Viewer;

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

    pub(crate) fn publish(&self, notice: &Notice<'_>) {
        if let Members::Connection(connection) = &notice.audience.0 {
            if connection.0.is_served_by(notice.server) {
                notice.deliver(&connection.0);
            }
            return;
        }
        if let Members::Named(name) = &notice.audience.0
            && notice.server.settings().audience(name).is_none()
        {
            tracing::warn!(target: "mcp", name = &**name, "there is no audience of this name: no client is notified");
            return;
        }
        for member in self.members() {
            notice.deliver(&member);
        }
    }

    /// Notifies each client of all changes that it subscribed to, as each of them may have happened.
    pub(crate) fn publish_everything(&self, server: &Server) {
        let all = Audience::all();
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        let lists = lists.map(|list| Notice::new(server, &list, &all, None));
        for member in self.members() {
            lists.iter().for_each(|notice| notice.deliver(&member));
            let subscribed = member.lock().kernel.subscribed_resources();
            for change in subscribed.into_iter().map(Change::Resource) {
                Notice::new(server, &change, &all, server.guards_of(&change)).deliver(&member);
            }
        }
    }

    fn members(&self) -> Vec<Arc<Shared>> {
        let members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.values().filter_map(Weak::upgrade).collect()
    }
}

/// A change, and who is notified of it.
pub(crate) struct Notice<'a> {
    server: &'a Server,
    announcement: Announcement,
    audience: &'a Audience,
    /// The items that have changed, of which one has to admit the viewer; `None` if all may see it.
    guards: Option<Vec<Guard>>,
}

impl<'a> Notice<'a> {
    pub(crate) fn new(server: &'a Server, change: &Change, audience: &'a Audience, guards: Option<Vec<Guard>>) -> Self {
        Self { server, announcement: Announcement::new(change), audience, guards }
    }

    /// Notifies one client, if it subscribed to the change and belongs to the audience.
    fn deliver(&self, member: &Arc<Shared>) {
        let is_for_all = matches!(self.audience.0, Members::All | Members::Connection(_)) && self.guards.is_none();
        let recipients = if is_for_all { None } else { Some(self.recipients(member)) };
        if recipients.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        let (has_transmit, is_legacy) = {
            let mut state = member.lock();
            match recipients {
                None => state.kernel.announce(&self.announcement),
                Some(routes) => {
                    routes.into_iter().for_each(|route| state.kernel.announce_on(route, &self.announcement));
                }
            }
            (state.kernel.has_transmit(), state.kernel.negotiated().is_some())
        };
        if has_transmit {
            // A legacy client gets notifications of changes outside of any request.
            member.wake(is_legacy.then_some(Route::Standalone));
        }
    }

    /// The routes of a connection whose viewers belong to the audience. The predicates run without the lock.
    fn recipients(&self, member: &Arc<Shared>) -> Vec<Route> {
        let state = member.lock();
        let subscribed = state.kernel.recipients(self.announcement.change());
        let subscribed: Vec<(Route, Option<Arc<ListenStream>>)> = subscribed
            .map(|route| match route {
                Route::Listen(stream) => (route, state.listen_streams.get(stream)),
                Route::Standalone | Route::Reply(_) | Route::Related(_) => (route, None),
            })
            .collect();
        if subscribed.is_empty() {
            return Vec::new();
        }
        let (principal, auth) = (state.principal.clone(), state.auth.clone());
        drop(state);
        let connection = ConnectionHandle(Arc::clone(member));
        let is_recipient = |(route, listener): (Route, Option<Arc<ListenStream>>)| {
            let viewer = match &listener {
                Some(listener) => Viewer::of_listen_stream(self.server, &connection, listener),
                None if route == Route::Standalone => {
                    Viewer::of_connection(self.server, &connection, principal.as_ref(), auth.as_ref())
                }
                // The stream ended meanwhile.
                None => return None,
            };
            self.is_for(&viewer).then_some(route)
        };
        subscribed.into_iter().filter_map(is_recipient).collect()
    }

    fn is_for(&self, viewer: &Viewer<'_>) -> bool {
        // As for a request, the first item that is visible decides.
        let may_see = |guards: &Vec<Guard>| {
            guards.iter().find(|guard| guard.is_visible(viewer)).is_some_and(|guard| guard.has_scopes(viewer))
        };
        self.audience.includes(viewer) && self.guards.as_ref().is_none_or(may_see)
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
