//! Counts by principal.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mcp_server::Principal;

/// Counts what principals have in flight. A principal without anything in flight takes no room.
#[derive(Default)]
pub(super) struct PrincipalCounts {
    /// A few principals, which are found by comparing: for these that costs less than a hash that clients cannot predict.
    few: Vec<(Principal, usize)>,
    /// All others.
    others: HashMap<Principal, usize>,
}

/// The maximum number of principals that are found by comparing.
const FEW: usize = 8;

impl PrincipalCounts {
    /// Adds to the count of a principal, unless that would exceed the maximum; returns whether it was added.
    pub(super) fn try_add(&mut self, principal: &Principal, count: usize, most: usize) -> bool {
        let more = |taken: usize| taken.checked_add(count).filter(|taken| *taken <= most);
        let taken = match self.few.iter_mut().find(|(there, _)| there == principal) {
            Some((_, taken)) => Some(taken),
            None if self.others.is_empty() => None,
            None => self.others.get_mut(principal),
        };
        match taken {
            Some(taken) => more(*taken).map(|more| *taken = more).is_some(),
            None => more(0).map(|taken| self.insert(principal.clone(), taken)).is_some(),
        }
    }

    fn insert(&mut self, principal: Principal, count: usize) {
        if self.few.len() < FEW {
            self.few.push((principal, count));
        } else {
            self.others.insert(principal, count);
        }
    }

    /// Subtracts what was added to the count of a principal.
    pub(super) fn subtract(&mut self, principal: &Principal, count: usize) {
        if let Some(index) = self.few.iter().position(|(there, _)| there == principal) {
            let taken = &mut self.few[index].1;
            *taken = taken.saturating_sub(count);
            if *taken == 0 {
                self.few.swap_remove(index);
            }
        } else if let Entry::Occupied(mut taken) = self.others.entry(principal.clone()) {
            *taken.get_mut() = taken.get().saturating_sub(count);
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits hold for each principal, however many there are and in whichever order they come and go.
    #[test]
    fn principals_are_counted_wherever_they_are_kept() {
        let mut counts = PrincipalCounts::default();
        let all: Vec<Principal> = (0..3 * FEW).map(|number| Principal::new(None, &number.to_string())).collect();
        for round in 0..3 {
            assert!(all.iter().all(|principal| counts.try_add(principal, 1, 3)), "{round}");
        }
        assert!(!all.iter().any(|principal| counts.try_add(principal, 1, 3)), "three are enough");
        assert_eq!((counts.few.len(), counts.others.len()), (FEW, 2 * FEW));
        // The first ones make room, which those that are kept elsewhere do not count anew in.
        for principal in &all[..FEW] {
            counts.subtract(principal, 3);
        }
        assert!(counts.few.is_empty() && !all[FEW..].iter().any(|principal| counts.try_add(principal, 1, 3)));
        assert!(!counts.try_add(&all[0], 4, 3) && counts.few.is_empty(), "what is refused takes no room");
        assert!(!counts.try_add(&Principal::new(Some("other"), "9"), usize::MAX, 3));
        assert!(counts.try_add(&all[0], 2, 3) && !counts.try_add(&all[0], 2, 3));
        counts.subtract(&all[0], 2);
        for principal in &all[FEW..] {
            counts.subtract(principal, 1);
            assert!(counts.try_add(principal, 1, 3) && !counts.try_add(principal, 1, 3));
            counts.subtract(principal, 3);
        }
        assert!(counts.is_empty());
    }
}
