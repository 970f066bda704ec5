//! Options of sessions.

use std::time::Duration;

use crate::metrics::SessionError;

/// The error of a request for the session of another principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongOwnerPolicy {
    /// [`SessionError::WrongOwner`], which helps clients that mixed up their tokens. Session ids cannot be guessed, so it
    /// reveals little.
    #[default]
    Forbidden,
    /// [`SessionError::Unknown`], as if there were no such session.
    Hidden,
}

/// The limits of sessions: their idle timeout, number and memory.
///
/// If there are too many idle sessions, or too many bytes in them, sessions that were never used after their handshake are
/// evicted first, so that clients that only send `initialize` do not evict sessions that others use. Within the last tenth
/// of the limit the oldest session is evicted, used or not, so that new clients can begin when all other sessions are used.
///
/// | setting | default | a greater value |
/// |---|---|---|
/// | [`idle_timeout`](Self::idle_timeout) | 2 h | keeps sessions of inactive clients longer |
/// | [`sweep_interval`](Self::sweep_interval) | 5 s | expires sessions later, and wakes the process less often |
/// | [`idle_limit`](Self::idle_limit) | 10,000 | keeps more idle sessions |
/// | [`idle_bytes_limit`](Self::idle_bytes_limit) | 256 MiB | takes more memory for idle sessions |
/// | [`limit_per_principal`](Self::limit_per_principal) | 64 | lets one user have more of the sessions |
/// | [`wrong_owner`](Self::wrong_owner) | [`Forbidden`](WrongOwnerPolicy::Forbidden) | |
#[derive(Clone, Debug)]
#[must_use]
pub struct SessionOptions {
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) sweep_interval: Duration,
    pub(crate) idle_limit: usize,
    pub(crate) idle_bytes_limit: usize,
    pub(crate) limit_per_principal: usize,
    pub(crate) wrong_owner: WrongOwnerPolicy,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Some(Duration::from_secs(2 * 60 * 60)),
            sweep_interval: Duration::from_secs(5),
            idle_limit: 10_000,
            idle_bytes_limit: 256 << 20,
            limit_per_principal: 64,
            wrong_owner: WrongOwnerPolicy::Forbidden,
        }
    }
}

impl SessionOptions {
    /// Sets how long a session may be idle before it expires. Defaults to 2 hours; `None` disables expiry.
    pub fn idle_timeout(mut self, time: Option<Duration>) -> Self {
        self.idle_timeout = time;
        self
    }

    /// Sets the minimum time between two sweeps. Defaults to 5 seconds.
    pub fn sweep_interval(mut self, time: Duration) -> Self {
        self.sweep_interval = time;
        self
    }

    /// Sets the maximum number of idle sessions. Beyond that, idle sessions are evicted: those that were never used first, as
    /// long as they are more than a tenth of this, then the oldest. Active sessions do not count. Defaults to 10,000.
    pub fn idle_limit(mut self, count: usize) -> Self {
        self.idle_limit = count;
        self
    }

    /// Sets the maximum number of bytes in all idle sessions, as far as the transport
    /// [measures](crate::SessionManager::measured) them. Beyond that, sessions are evicted as for
    /// [`idle_limit`](Self::idle_limit). Defaults to 256 MiB.
    pub fn idle_bytes_limit(mut self, bytes: usize) -> Self {
        self.idle_bytes_limit = bytes;
        self
    }

    /// Sets the maximum number of sessions of one principal, idle or active. A new session evicts its oldest idle one, and is
    /// refused if all are active. Defaults to 64.
    pub fn limit_per_principal(mut self, count: usize) -> Self {
        self.limit_per_principal = count;
        self
    }

    /// Sets the error of requests for the session of another principal. Defaults to [`WrongOwnerPolicy::Forbidden`].
    pub fn wrong_owner(mut self, policy: WrongOwnerPolicy) -> Self {
        self.wrong_owner = policy;
        self
    }

    /// Returns the error of a request for the session of another principal.
    #[must_use]
    pub fn wrong_owner_error(&self) -> SessionError {
        match self.wrong_owner {
            WrongOwnerPolicy::Forbidden => SessionError::WrongOwner,
            WrongOwnerPolicy::Hidden => SessionError::Unknown,
        }
    }
}
