//! Changes that reach the clients of all instances of a server.
//!
//! [`Server::publish`](crate::Server::publish) and [`Server::update`](crate::Server::update) notify the clients that are
//! subscribed at this instance. With a [`ChangeBus`], set by [`ServerBuilder::change_bus`](crate::ServerBuilder::change_bus),
//! they also notify those of all other instances with the same bus and the same
//! [name](crate::Server::info). [`MemoryChangeBus`] connects servers of one process; `mcp-redis` has one for several machines.
//!
//! A bus delivers each message at least once to the members that are connected. When it cannot tell whether a member missed
//! one, it reports a [gap](BusEvent::Gap), and the clients of that instance are notified that everything may have changed: all
//! lists and all resources that they subscribed to.
//!
//! # Examples
//!
//! ```
//! use mcp_server::bus::MemoryChangeBus;
//! use mcp_server::{Change, Server};
//!
//! let bus = MemoryChangeBus::default();
//! let build = || Server::builder("shop", "1.0").offers_tools().change_bus(bus.clone()).build();
//! let (here, there) = (build()?, build()?);
//! here.publish(&Change::Tools); // Reaches the clients of both.
//! # drop(there);
//! # Ok::<(), mcp_server::BuildError>(())
//! ```

#[cfg(any(test, feature = "store-tests"))]
pub mod bus_tests;
mod change_bus;
pub(crate) mod link;
mod memory;
pub(crate) mod message;

pub use change_bus::{BusEvent, BusMember, BusReceiver, ChangeBus};
pub use memory::MemoryChangeBus;
