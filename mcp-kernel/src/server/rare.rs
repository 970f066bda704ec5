//! The state that few connections have.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;

use super::connection::Batch;
use super::event::Event;
use crate::RequestKey;
use crate::calls::Calls;
use crate::deadlines::Deadlines;

/// The state that few connections have. There are many idle sessions, and many connections for one request.
pub(crate) struct Rare {
    /// Requests beyond the limit of concurrent ones.
    pub(super) queued: VecDeque<Event>,
    pub(super) batches: BTreeMap<RequestKey, Batch>,
    pub(super) calls: Calls,
    pub(super) deadlines: Deadlines,
    pub(super) subscriptions: BTreeSet<String>,
}

impl Rare {
    const fn new() -> Self {
        Self {
            queued: VecDeque::new(),
            batches: BTreeMap::new(),
            calls: Calls::new(),
            deadlines: Deadlines::new(),
            subscriptions: BTreeSet::new(),
        }
    }
}

/// Allocates the state when there is something to add to it. Until then it reads as empty.
#[derive(Default)]
pub(crate) struct LazyRare(Option<Box<Rare>>);

impl LazyRare {
    /// Returns the state, and allocates it if necessary.
    pub(super) fn make_mut(&mut self) -> &mut Rare {
        self.0.get_or_insert_with(|| Box::new(Rare::new()))
    }

    /// Returns the state, if there may be something to remove from it.
    pub(super) fn get_mut(&mut self) -> Option<&mut Rare> {
        self.0.as_deref_mut()
    }
}

impl Deref for LazyRare {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        static EMPTY: Rare = Rare::new();
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is only read takes no memory, and neither does removing what is not there.
    #[test]
    fn nothing_takes_no_memory() {
        let mut rare = LazyRare::default();
        assert!(rare.subscriptions.is_empty() && rare.calls.len() == 0 && rare.deadlines.next().is_none());
        assert!(rare.get_mut().is_none() && rare.0.is_none());
        rare.make_mut().subscriptions.insert("a:b".to_owned());
        assert!(rare.subscriptions.contains("a:b") && rare.get_mut().is_some());
    }
}
