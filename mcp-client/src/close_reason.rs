//! Why a client is closed.

use mcp_kernel::client::ConnectError;

use crate::AuthorizationError;
use crate::session::SessionLoss;

/// The reason why a client is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// [`Client::close`](crate::Client::close) was called, or the last handle was dropped.
    #[error("the client was closed")]
    ByClient,
    /// The server process exited.
    #[error("the server exited: {status}")]
    Exited {
        /// The exit code or signal.
        status: String,
    },
    /// The connection could not be established.
    #[error(transparent)]
    ConnectFailed(#[from] ConnectError),
    /// The transport could not obtain the credentials to connect with.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// The certificate of the server is not valid: it has expired, or its issuer is not trusted, for example.
    #[error("the certificate of the server is not valid: {0}")]
    InvalidCertificate(String),
    /// The session with a legacy server was lost, and was not renewed.
    #[error("the session is lost: {0}")]
    SessionLost(SessionLoss),
    /// The connection to the server was lost.
    #[error("the connection is lost: {0}")]
    Disconnected(String),
}

impl CloseReason {
    /// Returns the HTTP status that caused the client to close, if there was one.
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::SessionLost(loss) => loss.reason.http_status(),
            Self::ConnectFailed(ConnectError::Status { status, .. }) => Some(*status),
            Self::ByClient
            | Self::Exited { .. }
            | Self::ConnectFailed(_)
            | Self::Authorization(_)
            | Self::InvalidCertificate(_)
            | Self::Disconnected(_) => None,
        }
    }
}
