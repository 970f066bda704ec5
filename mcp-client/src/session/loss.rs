//! What happens when the session with a legacy server is lost.

use std::fmt;
use std::sync::Arc;

/// What to do when the session with a legacy server over HTTP is lost.
///
/// Whatever the server kept in it is gone either way. The application hears of it by
/// [`ClientBuilder::on_event`](crate::ClientBuilder::on_event), and a warning is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionLost {
    /// Begin a new session, once, and repeat the calls that met the loss in it: the server has not seen them. Revision
    /// 2025-11-25 demands this of clients, so it is the default.
    #[default]
    Renew,
    /// Close the client: every call ends with [`Closed::SessionLost`](crate::Closed::SessionLost).
    Fail,
}

/// What is known about a session that was lost.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLoss {
    /// The id of the session, if it had one.
    pub session_id: Option<String>,
    /// Why it was lost.
    pub reason: SessionLossReason,
}

/// Why a session was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionLossReason {
    /// The server does not know the session: it expired, or the server was restarted.
    #[error("the server does not know the session any more (HTTP status {status})")]
    Unknown {
        /// What the server answered with.
        status: u16,
    },
    /// The credentials of the client are others than those that the session was begun with.
    #[error("the session was begun with other credentials")]
    CredentialsChanged,
}

impl SessionLossReason {
    /// Returns the HTTP status that the server answered with, if it did.
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Unknown { status } => Some(*status),
            Self::CredentialsChanged => None,
        }
    }
}

impl fmt::Display for SessionLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl fmt::Debug for SessionLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The session itself is not for logs.
        f.debug_struct("SessionLoss").field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// Decides what to do when a session is lost: a [`SessionLost`], or a function that returns one. It must not block.
pub trait DecideSessionLost: Send + Sync + 'static {
    /// Returns what to do.
    fn decide(&self, loss: &SessionLoss) -> SessionLost;
}

impl DecideSessionLost for SessionLost {
    fn decide(&self, _: &SessionLoss) -> SessionLost {
        *self
    }
}

impl<F: Fn(&SessionLoss) -> SessionLost + Send + Sync + 'static> DecideSessionLost for F {
    fn decide(&self, loss: &SessionLoss) -> SessionLost {
        self(loss)
    }
}

/// Something that happens to a client while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The session with a legacy server was lost, with all that the server kept in it.
    SessionLost {
        /// What is known about it.
        loss: SessionLoss,
        /// What the client does about it.
        action: SessionLost,
    },
    /// The server was started again after it had ended, and knows nothing of what was before.
    ServerRestarted,
}

pub(crate) type EventListener = Arc<dyn Fn(ClientEvent) + Send + Sync>;
