//! How long sessions live, and how many there may be.

use std::time::Duration;

use crate::metrics::Refused;

/// What somebody hears who asks for the session of somebody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongOwner {
    /// That it is not theirs (S4.71): helps whoever mixed up their tokens. Ids cannot be guessed, so it gives little away.
    #[default]
    Forbidden,
    /// That there is no such session.
    Hidden,
}

/// How long sessions live, and how many there may be.
///
/// | setting | default | more of it |
/// |---|---|---|
/// | [`idle_time`](Self::idle_time) | 2 h | lets clients pause for longer, and keeps what was left behind for as long |
/// | [`unused_time`](Self::unused_time) | 60 s | lets whoever only shakes hands take memory for longer |
/// | [`sweep_interval`](Self::sweep_interval) | 5 s | wakes the process less often; sessions end that much later |
/// | [`idle_limit`](Self::idle_limit) | 10,000 | takes more memory: that of a session, times this |
/// | [`limit_per_principal`](Self::limit_per_principal) | 64 | lets one user take more of these |
/// | [`wrong_owner`](Self::wrong_owner) | [`Forbidden`](WrongOwner::Forbidden) | |
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub(crate) idle_time: Option<Duration>,
    pub(crate) unused_time: Option<Duration>,
    pub(crate) sweep_interval: Duration,
    pub(crate) idle_limit: usize,
    pub(crate) limit_per_principal: usize,
    pub(crate) wrong_owner: WrongOwner,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle_time: Some(Duration::from_secs(2 * 60 * 60)),
            unused_time: Some(Duration::from_secs(60)),
            sweep_interval: Duration::from_secs(5),
            idle_limit: 10_000,
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

    /// How long a session may be idle that was never entered after it was created: most of those are never used.
    /// `None` treats them like all others.
    #[must_use]
    pub fn unused_time(mut self, time: Option<Duration>) -> Self {
        self.unused_time = time;
        self
    }

    /// How much time is between two sweeps, at least.
    #[must_use]
    pub fn sweep_interval(mut self, time: Duration) -> Self {
        self.sweep_interval = time;
        self
    }

    /// How many sessions may be idle. Beyond that the oldest of them end before their time; active ones never do, and
    /// do not count (S4.41). If more than half of this were never used, the oldest of those end first.
    #[must_use]
    pub fn idle_limit(mut self, count: usize) -> Self {
        self.idle_limit = count;
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

    /// How long unused sessions live: never longer than used ones. `None` is for ever.
    #[must_use]
    pub fn time_of_unused(&self) -> Option<Duration> {
        self.unused_time.into_iter().chain(self.idle_time).min()
    }
}
