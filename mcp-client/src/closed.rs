//! Why a connection is over.

use mcp_kernel::client::ConnectError;

use crate::session::SessionLoss;

/// Why a client has no server any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// The client was closed, or its last handle was dropped.
    #[error("the client was closed")]
    ByClient,
    /// The process of the server ended.
    #[error("the server ended: {status}")]
    Exited {
        /// How it ended: an exit code, or a signal.
        status: String,
    },
    /// The server cannot be talked to.
    #[error("{0}")]
    Refused(#[from] ConnectError),
    /// The session with a legacy server is lost, and is not to be renewed, or could not be.
    #[error("the session is lost: {0}")]
    SessionLost(SessionLoss),
    /// The way to the server is cut.
    #[error("the connection is lost: {0}")]
    Lost(String),
}

impl Closed {
    /// Returns the HTTP status that made the client close, if there was one.
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::SessionLost(loss) => loss.reason.http_status(),
            Self::Refused(ConnectError::Status { status, .. }) => Some(*status),
            Self::ByClient | Self::Exited { .. } | Self::Refused(_) | Self::Lost(_) => None,
        }
    }
}
