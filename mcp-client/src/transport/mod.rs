//! What carries messages.

mod credentials;
mod handle;
#[cfg(feature = "memory")]
mod memory;

use std::sync::Arc;

use mcp_kernel::Time;

pub use self::credentials::{CredentialFingerprint, CredentialSource};
pub use self::handle::{Link, Lost, Order, Outgoing};
#[cfg(feature = "memory")]
pub use self::memory::Memory;

/// Carries the messages of one client to one server.
///
/// A transport is given a [`Link`] and works for it, in a task of its own, until [`Link::next`] has nothing more to do.
/// It knows how bytes travel, and nothing about what they mean.
pub trait Transport: Send + 'static {
    /// What the client has to know about the way that messages take.
    fn kind(&self) -> TransportKind;

    /// Returns the clock that the transport waits by. The client measures all timeouts with it, and asks to be woken at its
    /// times ([`Order::WakeAt`](crate::Order::WakeAt)). Transports of one process should agree on its epoch, because
    /// clients compare the times of a shared [`RevisionCache`](crate::RevisionCache).
    fn clock(&self) -> Clock;

    /// Returns where the credentials of requests come from, if they may change while the client lives. Then the transport
    /// calls [`Link::set_credentials`] before each request, too. Defaults to `None`.
    fn credentials(&self) -> Option<Arc<dyn CredentialSource>> {
        None
    }

    /// Starts to work for a client. It does not wait for anything: what goes wrong is told to the link.
    fn start(self, link: Link);
}

/// Returns the current time. See [`Transport::clock`].
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The way that messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// All messages take the same way, in order: a pipe, a socket, a queue. A call is given up by a notification, and a
    /// server that does not answer the probe is legacy.
    Pipe,
    /// Each call has a request of its own: HTTP. A call is given up by closing its stream, some parameters are repeated
    /// in headers, and a server that does not answer is not there.
    Requests,
}
