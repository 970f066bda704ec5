//! The deadlines of a connection.

use std::collections::BTreeSet;

use crate::{CallId, Time};

/// A time at which the driver has to call `handle_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Deadline {
    /// The time.
    pub at: Time,
    /// What happens then.
    pub kind: DeadlineKind,
}

/// What happens at a [`Deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeadlineKind {
    /// [`CallOptions::idle_timeout`](crate::CallOptions::idle_timeout) of a call expires.
    IdleTimeout(CallId),
    /// [`CallOptions::total_timeout`](crate::CallOptions::total_timeout) of a call expires.
    TotalTimeout(CallId),
}

/// All deadlines, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeSet<Deadline>);

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    pub(crate) fn arm(&mut self, at: Time, kind: DeadlineKind) {
        self.0.insert(Deadline { at, kind });
    }

    pub(crate) fn disarm(&mut self, at: Time, kind: DeadlineKind) {
        self.0.remove(&Deadline { at, kind });
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        self.0.first().copied()
    }

    /// Removes the earliest deadline if it is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<DeadlineKind> {
        let first = self.next().filter(|deadline| deadline.at <= now)?;
        self.0.remove(&first);
        Some(first.kind)
    }
}
