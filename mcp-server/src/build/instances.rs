//! What the instances of a server have in common.

use std::sync::Arc;

use crate::build::builder::ServerBuilder;
use crate::bus::ChangeBus;
use crate::visibility::predicate::Predicate;
use crate::visibility::viewer::Viewer;

impl ServerBuilder {
    /// Sets the bus that carries changes between the instances of the server: what is published at one of them reaches the
    /// clients of all. See [`bus`](crate::bus).
    ///
    /// [`Server::update`](crate::Server::update) changes the lists of this instance only, and notifies the clients of all. So
    /// let every instance do the same update, as a client may list at any of them.
    pub fn change_bus(mut self, bus: impl ChangeBus) -> Self {
        self.bus = Some(Arc::new(bus));
        self
    }

    /// Adds an audience by a name, for [`Audience::named`](crate::Audience::named): the clients for which `predicate` returns
    /// `true`. A second one of the same name replaces the first. All instances should have the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::{Audience, Change, Server};
    ///
    /// struct Admin;
    ///
    /// let server = Server::builder("shop", "1.0")
    ///     .audience("admins", |viewer| viewer.extension::<Admin>().is_some())
    ///     .build()?;
    /// server.publish_to(&Audience::named("admins"), &Change::Tools);
    /// # Ok::<(), mcp_server::BuildError>(())
    /// ```
    pub fn audience(
        mut self,
        name: impl Into<Box<str>>,
        predicate: impl Fn(&Viewer<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.audiences.insert(name.into(), Predicate::new(predicate));
        self
    }
}
