//! The loss of a session, and what the client does about it.

use std::fmt;
use std::sync::Arc;

/// What to do when the session with a legacy server over HTTP is lost.
///
/// The state that the server kept in the session is lost either way. The client reports the loss to
/// [`ClientBuilder::on_event`](crate::ClientBuilder::on_event), and logs a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionLossAction {
    /// Initialize a new session and repeat, once, the calls that failed because of the loss: the server has not executed
    /// them. Revision 2025-11-25 requires this of clients, so it is the default.
    #[default]
    Renew,
    /// Close the client: all calls fail with [`CloseReason::SessionLost`](crate::CloseReason::SessionLost).
    Fail,
}

/// Describes a session that was lost.
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
        /// The HTTP status of the response.
        status: u16,
    },
    /// The credentials of the client are not those that the session was initialized with.
    #[error("the session was initialized with other credentials")]
    CredentialsChanged,
}

impl SessionLossReason {
    /// Returns the HTTP status of the server's response, if there was one.
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
        // The session id is a secret.
        f.debug_struct("SessionLoss").field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// Decides what to do when a session is lost: a [`SessionLossAction`], or a function that returns one.
pub trait SessionLossPolicy: Send + Sync + 'static {
    /// Returns what to do. It must not block.
    fn decide(&self, loss: &SessionLoss) -> SessionLossAction;
}

impl SessionLossPolicy for SessionLossAction {
    fn decide(&self, _: &SessionLoss) -> SessionLossAction {
        *self
    }
}

impl<F: Fn(&SessionLoss) -> SessionLossAction + Send + Sync + 'static> SessionLossPolicy for F {
    fn decide(&self, loss: &SessionLoss) -> SessionLossAction {
        self(loss)
    }
}

/// An event in the life of a client that does not close it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The session with a legacy server was lost, with the state that the server kept in it.
    SessionLost {
        /// The session and the reason.
        loss: SessionLoss,
        /// What the client does about it.
        action: SessionLossAction,
    },
}

pub(crate) type EventHandler = Arc<dyn Fn(ClientEvent) + Send + Sync>;
