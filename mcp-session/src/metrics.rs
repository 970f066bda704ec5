//! Metrics of sessions, and the reasons that they count.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The client sent `DELETE`.
    Deleted,
    /// The idle timeout expired.
    Idle,
    /// It was evicted, because there were too many idle sessions or too many bytes in them.
    Evicted,
    /// The idle timeout expired, and the session was never used after its handshake.
    NeverUsed,
    /// The server shut down.
    Shutdown,
    /// The application refused to resume it in this process.
    NotResumed,
    /// Its [deadline](crate::SessionManager::with_deadlines) has passed: its access token has expired.
    Expired,
}

impl EndReason {
    /// All reasons.
    pub const ALL: &'static [Self] =
        &[Self::Deleted, Self::Idle, Self::Evicted, Self::NeverUsed, Self::Shutdown, Self::NotResumed, Self::Expired];

    /// Returns the name of the reason in snake case, as for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Idle => "idle",
            Self::Evicted => "evicted",
            Self::NeverUsed => "never_used",
            Self::Shutdown => "shutdown",
            Self::NotResumed => "not_resumed",
            Self::Expired => "expired",
        }
    }
}

/// The error of creating or entering a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has ended, or never existed.
    #[error("there is no such session")]
    Unknown,
    /// The session belongs to another principal.
    #[error("the session belongs to another principal")]
    WrongOwner,
    /// The principal has the maximum number of sessions, and all of them are active.
    #[error("there are too many active sessions of this principal")]
    TooMany,
    /// The operating system's random source failed, so no session id can be created.
    #[error("the operating system's random source failed")]
    NoRandomness,
    /// The server is shutting down.
    #[error("the server is shutting down and accepts no new sessions")]
    Closed,
}

impl SessionError {
    /// All errors.
    pub const ALL: &'static [Self] =
        &[Self::Unknown, Self::WrongOwner, Self::TooMany, Self::NoRandomness, Self::Closed];

    /// Returns the name of the error in snake case, as for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::WrongOwner => "wrong_owner",
            Self::TooMany => "too_many",
            Self::NoRandomness => "no_randomness",
            Self::Closed => "closed",
        }
    }
}

/// Counters of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionMetrics {
    /// The number of sessions.
    pub live: usize,
    /// The number of idle sessions.
    pub idle: usize,
    /// The number of bytes in idle sessions, as far as the transport measures them.
    pub idle_bytes: usize,
    /// The number of active sessions.
    pub active: usize,
    /// The number of sessions that were created in this process.
    pub created: u64,
    /// The number of sessions that were adopted from a store.
    pub adopted: u64,
    /// The number of events that were replayed to clients; counted by the transport.
    pub replayed: u64,
    /// The number of messages that were dropped because there was no stream for them; counted by the transport.
    pub dropped_messages: u64,
    pub(crate) ended: [u64; EndReason::ALL.len()],
    pub(crate) refused: [u64; SessionError::ALL.len()],
}

impl SessionMetrics {
    /// Returns the number of sessions that ended for this reason.
    #[must_use]
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.ended.get(reason as usize).copied().unwrap_or(0)
    }

    /// Returns the number of refusals for this reason; hidden refusals count under the actual reason.
    #[must_use]
    pub fn refused(&self, reason: SessionError) -> u64 {
        self.refused.get(reason as usize).copied().unwrap_or(0)
    }
}
