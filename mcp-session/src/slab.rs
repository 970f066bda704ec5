//! A slab, and doubly linked lists through its values.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Values in numbered slots; a free slot is used again.
pub(crate) struct Slab<V> {
    slots: Vec<Option<Box<V>>>,
    free: Vec<u32>,
}

/// The neighbours of a value in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    older: u32,
    younger: u32,
}

/// A doubly linked list of values, from the oldest to the youngest. Adding and removing take constant time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    oldest: u32,
    youngest: u32,
}

/// Selects the link of a value, which may be in several lists.
pub(crate) type LinkOf<V> = fn(&mut V) -> &mut Link;

impl<V> Slab<V> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: V) -> u32 {
        let value = Some(Box::new(value));
        if let Some(slot) = self.free.pop()
            && let Some(free) = self.slots.get_mut(slot as usize)
        {
            *free = value;
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).ok().filter(|slot| *slot != NO_SLOT);
        self.slots.push(value);
        slot.expect("there is no memory for 2^32 values")
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&V> {
        self.slots.get(slot as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut V> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Removes a value, which must be in no list.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<V> {
        let value = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        if self.free.len() == self.slots.len() {
            // Returns the memory of the busiest time.
            *self = Self::new();
        }
        Some(*value)
    }

    /// Returns all occupied slots.
    pub(crate) fn occupied(&self) -> Vec<u32> {
        (0..).zip(&self.slots).filter(|(_, value)| value.is_some()).map(|(slot, _)| slot).collect()
    }
}

impl Link {
    /// The link of a value that is in no list.
    pub(crate) const UNLINKED: Self = Self { older: NO_SLOT, younger: NO_SLOT };

    /// Returns the next younger value.
    pub(crate) fn younger(self) -> Option<u32> {
        Some(self.younger).filter(|slot| *slot != NO_SLOT)
    }
}

impl List {
    pub(crate) const EMPTY: Self = Self { oldest: NO_SLOT, youngest: NO_SLOT };

    pub(crate) fn oldest(self) -> Option<u32> {
        Some(self.oldest).filter(|slot| *slot != NO_SLOT)
    }

    pub(crate) fn youngest(self) -> Option<u32> {
        Some(self.youngest).filter(|slot| *slot != NO_SLOT)
    }

    /// Adds a value as the youngest.
    pub(crate) fn push<V>(&mut self, values: &mut Slab<V>, slot: u32, link_of: LinkOf<V>) {
        let Some(value) = values.get_mut(slot) else { return };
        *link_of(value) = Link { older: self.youngest, younger: NO_SLOT };
        match values.get_mut(self.youngest) {
            Some(youngest) => link_of(youngest).younger = slot,
            None => self.oldest = slot,
        }
        self.youngest = slot;
    }

    /// Removes a value, which must be in this list.
    pub(crate) fn remove<V>(&mut self, values: &mut Slab<V>, slot: u32, link_of: LinkOf<V>) {
        let Some(value) = values.get_mut(slot) else { return };
        let Link { older, younger } = std::mem::replace(link_of(value), Link::UNLINKED);
        match values.get_mut(older) {
            Some(value) => link_of(value).younger = younger,
            None => self.oldest = younger,
        }
        match values.get_mut(younger) {
            Some(value) => link_of(value).older = older,
            None => self.youngest = older,
        }
    }
}

const NO_SLOT: u32 = u32::MAX;

/// Returns memory of a map that is mostly unused; the cost is amortised over the removals.
pub(crate) fn shrink<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() / 4 > map.len() + 16 {
        map.shrink_to(map.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(list: List, values: &mut Slab<(char, Link)>) -> String {
        let (mut text, mut next) = (String::new(), list.oldest());
        while let Some(value) = next.and_then(|slot| values.get_mut(slot)) {
            text.push(value.0);
            next = value.1.younger();
        }
        text
    }

    /// The list stays in order when values are removed.
    #[test]
    fn lists_stay_in_order() {
        let (mut values, mut list) = (Slab::new(), List::EMPTY);
        let slots: Vec<_> = "abcde".chars().map(|name| values.insert((name, Link::UNLINKED))).collect();
        let link_of: LinkOf<(char, Link)> = |value| &mut value.1;
        for slot in &slots {
            list.push(&mut values, *slot, link_of);
        }
        assert_eq!(walk(list, &mut values), "abcde");
        for (slot, left) in [(2, "abde"), (0, "bde"), (4, "bd")] {
            list.remove(&mut values, slots[slot], link_of);
            assert_eq!(walk(list, &mut values), left);
        }
        list.push(&mut values, slots[0], link_of);
        assert_eq!(walk(list, &mut values), "bda");
        for slot in [3, 1, 0] {
            list.remove(&mut values, slots[slot], link_of);
        }
        assert_eq!((list.oldest(), list.youngest()), (None, None));
        for slot in slots {
            assert!(values.remove(slot).is_some());
            assert!(values.remove(slot).is_none());
        }
        assert_eq!((values.slots.capacity(), values.occupied()), (0, vec![]));
    }
}
