//! What has to happen when nothing else does.

use std::collections::BTreeSet;

use crate::{CallId, Time};

/// Why the driver has to call `handle_timeout`, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Deadline {
    /// When.
    pub at: Time,
    /// Why.
    pub wake: Wake,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Wake {
    /// The peer has been silent about a call for too long.
    CallIdle(CallId),
    /// A call has taken too long, whatever the peer says about it.
    CallLimit(CallId),
}

/// All deadlines, soonest first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeSet<Deadline>);

impl Deadlines {
    pub(crate) fn arm(&mut self, at: Time, wake: Wake) {
        self.0.insert(Deadline { at, wake });
    }

    pub(crate) fn disarm(&mut self, at: Time, wake: Wake) {
        self.0.remove(&Deadline { at, wake });
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        self.0.first().copied()
    }

    /// Takes out the soonest deadline that is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<Wake> {
        let first = self.next().filter(|deadline| deadline.at <= now)?;
        self.0.remove(&first);
        Some(first.wake)
    }
}
