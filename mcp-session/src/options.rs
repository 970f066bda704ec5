//! How long sessions live, how many there may be, and how much memory they may take.

use std::time::Duration;

use crate::metrics::Refused;

/// What somebody hears who asks for the session of somebody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongOwner {
    /// That it is not theirs: helps whoever mixed up their tokens. Ids cannot be guessed, so it gives little away.
    #[default]
    Forbidden,
    /// That there is no such session.
    Hidden,
}

/// How long sessions live, how many there may be, and how much memory they may take.
///
/// A session that was never used after its handshake lives as long as any other while there is room. Where there is not,
/// by count or by bytes, such sessions end first: clients that only shake hands, however often, do not end what others
/// use. The last tenth of the room is shared by age, so that new clients can begin where all others are in use.
///
/// | setting | default | more of it |
/// |---|---|---|
/// | [`idle_time`](Self::idle_time) | 2 h | lets clients pause for longer, and keeps what was left behind for as long |
/// | [`sweep_interval`](Self::sweep_interval) | 5 s | wakes the process less often; sessions end that much later |
/// | [`idle_limit`](Self::idle_limit) | 10,000 | keeps more idle sessions |
/// | [`idle_bytes_limit`](Self::idle_bytes_limit) | 256 MiB | takes more memory for them |
/// | [`limit_per_principal`](Self::limit_per_principal) | 64 | lets one user take more of these |
/// | [`wrong_owner`](Self::wrong_owner) | [`Forbidden`](WrongOwner::Forbidden) | |
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub(crate) idle_time: Option<Duration>,
    pub(crate) sweep_interval: Duration,
    pub(crate) idle_limit: usize,
    pub(crate) idle_bytes_limit: usize,
    pub(crate) limit_per_principal: usize,
    pub(crate) wrong_owner: WrongOwner,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle_time: Some(Duration::from_secs(2 * 60 * 60)),
            sweep_interval: Duration::from_secs(5),
            idle_limit: 10_000,
            idle_bytes_limit: 256 << 20,
            limit_per_principal: 64,
            wrong_owner: WrongOwner::Forbidden,
        }
    }
}

impl SessionOptions {
    /// How long a session may be idle before it ends; `None` is for ever, which is for those who count their clients.
    #[must_use]
    pub fn idle_time(mut self, time: Option<Duration>) -> Self {
        self.idle_time = time;
        self
    }

    /// How much time is between two sweeps, at least.
    #[must_use]
    pub fn sweep_interval(mut self, time: Duration) -> Self {
        self.sweep_interval = time;
        self
    }

    /// Sets the maximum number of idle sessions. Beyond that, sessions end before their time: those that were never used
    /// first, as long as they are more than a tenth of this, then the oldest. Active ones never do, and do not count.
    #[must_use]
    pub fn idle_limit(mut self, count: usize) -> Self {
        self.idle_limit = count;
        self
    }

    /// Sets the maximum number of bytes that idle sessions keep together, as far as their transport
    /// [measures](crate::SessionManager::measured) them. Beyond that, sessions end before their time, as they do beyond
    /// [`idle_limit`](Self::idle_limit).
    #[must_use]
    pub fn idle_bytes_limit(mut self, bytes: usize) -> Self {
        self.idle_bytes_limit = bytes;
        self
    }

    /// How many sessions one principal may have, idle or not. Its oldest idle one makes room for a new one; if all are
    /// active there is none.
    #[must_use]
    pub fn limit_per_principal(mut self, count: usize) -> Self {
        self.limit_per_principal = count;
        self
    }

    /// What somebody hears who asks for the session of somebody else.
    #[must_use]
    pub fn wrong_owner(mut self, answer: WrongOwner) -> Self {
        self.wrong_owner = answer;
        self
    }

    /// What somebody hears who asks for the session of somebody else, wherever that is kept.
    #[must_use]
    pub fn answer_to_stranger(&self) -> Refused {
        match self.wrong_owner {
            WrongOwner::Forbidden => Refused::WrongOwner,
            WrongOwner::Hidden => Refused::Unknown,
        }
    }
}
