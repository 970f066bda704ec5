//! The clients that are notified of a change.

use std::sync::Arc;

use mcp_kernel::server::Principal;

use crate::connection::handle::ConnectionHandle;
use crate::visibility::predicate::Predicate;
use crate::visibility::viewer::Viewer;

/// The clients that are notified of a change, among those that subscribed to it: see
/// [`Server::publish_to`](crate::Server::publish_to) and [`Server::update_for`](crate::Server::update_for).
///
/// # Examples
///
/// ```
/// use mcp_server::{Audience, Change, Principal, Server};
///
/// struct Admin;
///
/// let server = Server::builder("inbox", "1.0").resource_subscriptions().build()?;
/// let inbox = Change::Resource("inbox://unread".into());
/// server.publish_to(&Audience::principal(Principal::new(None, "alice")), &inbox);
/// server.publish_to(&Audience::matching(|viewer| viewer.extension::<Admin>().is_some()), &inbox);
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Audience(pub(crate) Members);

#[derive(Clone)]
pub(crate) enum Members {
    All,
    Principal(Principal),
    Connection(ConnectionHandle),
    Named(Arc<str>),
    Matching(Predicate),
}

impl Audience {
    /// All clients.
    #[must_use]
    pub fn all() -> Self {
        Self(Members::All)
    }

    /// The clients of one user.
    #[must_use]
    pub fn principal(principal: Principal) -> Self {
        Self(Members::Principal(principal))
    }

    /// The client of one connection, which belongs to one instance.
    #[must_use]
    pub fn connection(connection: &ConnectionHandle) -> Self {
        Self(Members::Connection(connection.clone()))
    }

    /// The clients for which the predicate of this name returns `true`, which each instance of the server has
    /// ([`ServerBuilder::audience`](crate::ServerBuilder::audience)). At an instance without one, no client is notified.
    #[must_use]
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self(Members::Named(name.into()))
    }

    /// The clients for which `predicate` returns `true`. It is called without a lock; if it panics, the client is not
    /// notified.
    ///
    /// A function cannot travel over a [bus](crate::bus), so clients of other instances are not notified. Use
    /// [`named`](Self::named) for them.
    #[must_use]
    pub fn matching(predicate: impl Fn(&Viewer<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Members::Matching(Predicate::new(predicate)))
    }

    pub(crate) fn includes(&self, viewer: &Viewer<'_>) -> bool {
        match &self.0 {
            Members::All => true,
            Members::Principal(principal) => viewer.principal() == Some(principal),
            Members::Connection(connection) => viewer.connection().is_same(connection),
            Members::Named(name) => viewer.server().settings().audience(name).is_some_and(|it| it.admits(viewer)),
            Members::Matching(predicate) => predicate.admits(viewer),
        }
    }
}

impl std::fmt::Debug for Audience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Members::All => f.write_str("Audience::all"),
            Members::Principal(principal) => f.debug_tuple("Audience::principal").field(principal).finish(),
            Members::Connection(connection) => f.debug_tuple("Audience::connection").field(connection).finish(),
            Members::Named(name) => f.debug_tuple("Audience::named").field(name).finish(),
            Members::Matching(_) => f.write_str("Audience::matching"),
        }
    }
}
