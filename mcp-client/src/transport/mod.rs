//! Transports, and the interface between a client and its transport.

mod credentials;
mod handle;
#[cfg(feature = "memory")]
mod memory;
mod received_request;
mod responses;

use std::sync::Arc;

use mcp_kernel::Time;
use mcp_kernel::observe::Network;

pub use self::credentials::{CredentialFingerprint, CredentialSource};
pub use self::handle::{OutgoingMessage, ServerLossAction, TransportCommand, TransportHandle};
#[cfg(feature = "memory")]
pub use self::memory::MemoryTransport;
pub use self::responses::{PausedTimeouts, ResponseHandle};

/// Carries the messages of one client to one server.
///
/// [`start`](Self::start) receives a [`TransportHandle`] and spawns a task that executes the commands of
/// [`TransportHandle::next_command`] until it returns `None`. A transport does not interpret the messages.
pub trait Transport: Send + 'static {
    /// Returns how messages are carried, which the client has to know for cancellation, headers and era detection.
    fn kind(&self) -> TransportKind;

    /// Returns how messages travel, for metrics. Defaults to HTTP if each call has its own request, and to within the process
    /// otherwise.
    fn network(&self) -> Network {
        match self.kind() {
            TransportKind::Pipe => Network::InProcess,
            TransportKind::RequestPerCall => Network::Http,
        }
    }

    /// Returns the clock of the transport. The client measures all timeouts with it, and its times are those of
    /// [`TransportCommand::WakeAt`]. Transports of one process should use the same epoch, because clients compare the times
    /// of a shared [`RevisionCache`](crate::RevisionCache).
    fn clock(&self) -> Clock;

    /// Returns the source of the credentials of requests, if they may change during the lifetime of the client. The
    /// transport then also calls [`ResponseHandle::set_credentials`] and [`ResponseHandle::set_call_credentials`] before each
    /// request. Defaults to `None`.
    fn credentials(&self) -> Option<Arc<dyn CredentialSource>> {
        None
    }

    /// Starts to carry messages. Returns at once; failures are reported to the handle.
    fn start(self, handle: TransportHandle);
}

/// A function that returns the current time; see [`Transport::clock`].
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// How a transport carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// All messages share one ordered channel, such as a pipe or a socket. Calls are cancelled with a notification, and a
    /// server that does not respond to the probe is taken for a legacy one.
    Pipe,
    /// Each call has its own request, as over HTTP. Calls are cancelled by closing their stream, some parameters are
    /// repeated in headers, and a server that does not respond to the probe is unreachable.
    RequestPerCall,
}
