//! The deadlines of idle sessions.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use crate::slab::shrink;

/// The deadlines of the idle sessions that have one. Others take no memory for it.
#[derive(Default)]
pub(crate) struct Deadlines {
    by_slot: HashMap<u32, Instant>,
    by_time: BTreeSet<(Instant, u32)>,
}

impl Deadlines {
    /// Sets or removes the deadline of a session.
    pub(crate) fn set(&mut self, slot: u32, deadline: Option<Instant>) {
        let before = match deadline {
            Some(deadline) => self.by_slot.insert(slot, deadline),
            None => self.by_slot.remove(&slot),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, slot));
        }
        self.by_time.extend(deadline.map(|deadline| (deadline, slot)));
    }

    pub(crate) fn get(&self, slot: u32) -> Option<Instant> {
        self.by_slot.get(&slot).copied()
    }

    pub(crate) fn first(&self) -> Option<Instant> {
        self.by_time.first().map(|(deadline, _)| *deadline)
    }

    /// Returns the sessions whose deadline has passed.
    pub(crate) fn passed(&self, now: Instant) -> impl Iterator<Item = u32> {
        self.by_time.iter().take_while(move |(deadline, _)| *deadline <= now).map(|(_, slot)| *slot)
    }

    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.by_slot);
    }
}
