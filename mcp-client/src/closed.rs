//! Why a connection is over.

use mcp_kernel::client::ConnectError;

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
    /// The way to the server is cut.
    #[error("the connection is lost: {0}")]
    Lost(String),
}
