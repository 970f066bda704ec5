//! The filters of listen streams.

use std::collections::{BTreeMap, BTreeSet};

use mcp_types::SubscriptionFilter;

use crate::Change;

/// The filters of listen streams, indexed by the changes that they ask for: a change costs as much as there are streams
/// for it.
#[derive(Clone, Debug)]
pub struct ListenStreams<K> {
    tools: BTreeSet<K>,
    prompts: BTreeSet<K>,
    resources: BTreeSet<K>,
    by_uri: BTreeMap<String, BTreeSet<K>>,
    uris_of: BTreeMap<K, Vec<String>>,
}

impl<K: Copy + Ord> ListenStreams<K> {
    /// Creates an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: BTreeSet::new(),
            prompts: BTreeSet::new(),
            resources: BTreeSet::new(),
            by_uri: BTreeMap::new(),
            uris_of: BTreeMap::new(),
        }
    }

    /// Adds a stream, or replaces its filter.
    pub fn insert(&mut self, listener: K, filter: &SubscriptionFilter) {
        self.remove(listener);
        for (asked, set) in [
            (filter.tools_list_changed, &mut self.tools),
            (filter.prompts_list_changed, &mut self.prompts),
            (filter.resources_list_changed, &mut self.resources),
        ] {
            if asked == Some(true) {
                set.insert(listener);
            }
        }
        let uris = filter.resource_subscriptions.clone().unwrap_or_default();
        for uri in &uris {
            self.by_uri.entry(uri.clone()).or_default().insert(listener);
        }
        self.uris_of.insert(listener, uris);
    }

    /// Removes a stream; returns whether it was there.
    pub fn remove(&mut self, listener: K) -> bool {
        let Some(uris) = self.uris_of.remove(&listener) else { return false };
        for set in [&mut self.tools, &mut self.prompts, &mut self.resources] {
            set.remove(&listener);
        }
        for uri in uris {
            if let Some(set) = self.by_uri.get_mut(&uri) {
                set.remove(&listener);
                if set.is_empty() {
                    self.by_uri.remove(&uri);
                }
            }
        }
        true
    }

    /// Returns the streams that asked for a change.
    pub fn of(&self, change: &Change) -> impl Iterator<Item = K> + '_ {
        let set = match change {
            Change::Tools => Some(&self.tools),
            Change::Prompts => Some(&self.prompts),
            Change::Resources => Some(&self.resources),
            Change::Resource(uri) => self.by_uri.get(uri),
        };
        set.into_iter().flatten().copied()
    }

    /// Returns the number of streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.uris_of.len()
    }

    /// Returns whether there are no streams.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uris_of.is_empty()
    }
}

impl<K: Copy + Ord> Default for ListenStreams<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what was asked for, and nothing once it is over.
    // covers: L-1, L-2
    #[test]
    fn listeners_hear_what_they_asked_for() {
        let mut listeners = ListenStreams::new();
        listeners.insert(1, &SubscriptionFilter::default().tools_list_changed(true));
        listeners.insert(
            2,
            &SubscriptionFilter::default().tools_list_changed(false).resource_subscriptions(vec!["a:b".into()]),
        );
        listeners.insert(
            3,
            &SubscriptionFilter::default().tools_list_changed(true).resource_subscriptions(vec!["a:b".into()]),
        );
        let of = |listeners: &ListenStreams<i32>, change| listeners.of(&change).collect::<Vec<_>>();
        assert_eq!(of(&listeners, Change::Tools), [1, 3]);
        assert_eq!(of(&listeners, Change::Resource("a:b".into())), [2, 3]);
        assert!(of(&listeners, Change::Prompts).is_empty());
        assert!(listeners.remove(3) && !listeners.remove(3));
        assert_eq!(of(&listeners, Change::Resource("a:b".into())), [2]);
        listeners.remove(1);
        listeners.remove(2);
        assert!(listeners.is_empty() && listeners.by_uri.is_empty() && listeners.tools.is_empty());
    }
}
