//! The trait of buses, which several processes can share.

use std::fmt;
use std::sync::Arc;

/// Carries messages between the instances of a server; for [`ServerBuilder::change_bus`](crate::ServerBuilder::change_bus).
///
/// The messages are opaque. They contain URIs of resources, names of tools and users, and instances trust them, so only the
/// instances should have access to the bus.
///
/// Implementations can be tested with `mcp_server::bus::bus_tests` (feature `store-tests`).
pub trait ChangeBus: Send + Sync + 'static {
    /// Adds a member, until the value that this returns is dropped. The receiver gets what other members publish from now on.
    fn join(&self, receiver: BusReceiver) -> Box<dyn BusMember>;
}

/// A member of a bus. Dropping it ends the membership.
pub trait BusMember: Send + Sync + 'static {
    /// Sends a message to all other members, also to those of the same process.
    ///
    /// It must neither block nor fail. A message that cannot be sent is queued, within limits; if it is lost, all other members
    /// get a [gap](BusEvent::Gap) as soon as possible. A member may get a message more than once and in any order, but never
    /// its own.
    fn publish(&self, message: &[u8]);
}

/// What a member of a bus gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else that a bus could report")]
pub enum BusEvent<'a> {
    /// A message of another member.
    Message(&'a [u8]),
    /// Messages may have been lost since the last event, for example because the bus was not connected.
    ///
    /// It is reported once the bus is connected again: what is published afterwards reaches the member.
    Gap,
}

/// The function that receives the events of a member. Clones call the same function.
///
/// A bus must not hold a lock while it [calls](Self::receive) it, as it runs code of the application.
#[derive(Clone)]
pub struct BusReceiver(Arc<Receive>);

type Receive = dyn Fn(BusEvent<'_>) + Send + Sync;

impl BusReceiver {
    /// Creates a receiver from a function, which must not block.
    pub fn new(receive: impl Fn(BusEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Calls the function.
    pub fn receive(&self, event: BusEvent<'_>) {
        (self.0)(event);
    }
}

impl fmt::Debug for BusReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BusReceiver")
    }
}
