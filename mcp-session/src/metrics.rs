//! What happened to sessions, in numbers.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Its client said so.
    Deleted,
    /// Nobody used it for too long.
    Idle,
    /// The idle sessions were too many, or kept too many bytes, and it was the first to go.
    Cap,
    /// Nobody used it for too long, nor ever after the handshake.
    NeverUsed,
    /// The server ended.
    Shutdown,
}

/// Why there is no session for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It has ended, or there never was one.
    #[error("there is no such session")]
    Unknown,
    /// It is somebody else's.
    #[error("the session belongs to somebody else")]
    WrongOwner,
    /// The principal has as many as it may, and all of them are active.
    #[error("there are too many active sessions of this principal")]
    TooMany,
    /// No id can be made up that nobody can guess.
    #[error("the system's source of randomness does not answer")]
    NoRandomness,
    /// The server ends; there are no new sessions.
    #[error("the server takes on no more sessions")]
    Closed,
}

/// How many sessions there are, and what happened to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionMetrics {
    /// How many there are.
    pub live: usize,
    /// How many of them nobody uses at the moment.
    pub idle: usize,
    /// How many bytes the idle ones keep, as far as their transport measures them.
    pub idle_bytes: usize,
    /// How many of them are in use.
    pub active: usize,
    /// How many were created here.
    pub created: u64,
    /// How many came from a store.
    pub adopted: u64,
    /// How many events clients came back for, and got. Whoever serves the streams of sessions counts them.
    pub replayed: u64,
    /// How many messages were said to nobody, because there was no stream for them; counted by the same.
    pub unheard: u64,
    pub(crate) ended: [u64; 5],
    pub(crate) refused: [u64; 5],
}

impl SessionMetrics {
    /// How many ended for this reason.
    #[must_use]
    pub fn ended(&self, reason: Reason) -> u64 {
        self.ended.get(reason as usize).copied().unwrap_or(0)
    }

    /// How often somebody got none for this reason; what was hidden from them is counted as what it was.
    #[must_use]
    pub fn refused(&self, reason: Refused) -> u64 {
        self.refused.get(reason as usize).copied().unwrap_or(0)
    }

    pub(crate) fn count_ended(&mut self, reason: Reason) {
        count(&mut self.ended, reason as usize);
    }

    pub(crate) fn count_refused(&mut self, reason: Refused) {
        count(&mut self.refused, reason as usize);
    }
}

fn count(counters: &mut [u64], index: usize) {
    if let Some(counter) = counters.get_mut(index) {
        *counter += 1;
    }
}
