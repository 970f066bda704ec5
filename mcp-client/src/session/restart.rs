//! Connections that replace one that was lost.

use std::sync::Arc;

use crate::close_reason::CloseReason;
use crate::session::SessionLoss;

/// A connection that took the place of one that was lost; see [`ClientBuilder::on_restart`].
///
/// The state that the server kept is lost, and its requests to this client were cancelled. The client has set the log level
/// again. Subscriptions are opened again, and report everything that they cover as changed.
///
/// [`ClientBuilder::on_restart`]: crate::ClientBuilder::on_restart
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// Why there is a new connection.
    pub cause: RestartCause,
    /// The number of calls that failed with [`Error::Interrupted`](crate::Error::Interrupted), because they were in flight
    /// when the server was lost. It is 0 if only the session was lost: calls that the server refused because of that are
    /// sent again.
    pub failed_calls: usize,
}

/// Why a connection was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartCause {
    /// The server exited, and was started again.
    ServerLost(CloseReason),
    /// The session with a legacy server over HTTP was lost, and a new one was initialized.
    SessionLost(SessionLoss),
}

pub(crate) type RestartHandler = Arc<dyn Fn(Restart) + Send + Sync>;
