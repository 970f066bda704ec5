//! The filters of listen streams.

use std::collections::{BTreeMap, BTreeSet};

use mcp_types::SubscriptionFilter;

use crate::Change;

/// The filters of listen streams, indexed by the changes that they include: a change costs as much as there are streams
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
    /// Adds a stream, or replaces its filter.
    pub fn insert(&mut self, stream: K, filter: &SubscriptionFilter) {
        self.remove(stream);
        for (asked, set) in [
            (filter.tools_list_changed, &mut self.tools),
            (filter.prompts_list_changed, &mut self.prompts),
            (filter.resources_list_changed, &mut self.resources),
        ] {
            if asked == Some(true) {
                set.insert(stream);
            }
        }
        let uris = filter.resource_subscriptions.clone().unwrap_or_default();
        for uri in &uris {
            self.by_uri.entry(uri.clone()).or_default().insert(stream);
        }
        self.uris_of.insert(stream, uris);
    }

    /// Removes a stream; returns whether it was there.
    pub fn remove(&mut self, stream: K) -> bool {
        let Some(uris) = self.uris_of.remove(&stream) else { return false };
        for set in [&mut self.tools, &mut self.prompts, &mut self.resources] {
            set.remove(&stream);
        }
        for uri in uris {
            if let Some(set) = self.by_uri.get_mut(&uri) {
                set.remove(&stream);
                if set.is_empty() {
                    self.by_uri.remove(&uri);
                }
            }
        }
        true
    }

    /// Returns the streams whose filter includes a change.
    pub fn of(&self, change: &Change) -> impl Iterator<Item = K> + '_ + use<'_, K> {
        self.set(change).into_iter().flatten().copied()
    }

    /// Returns whether the filter of a stream includes a change.
    pub fn includes(&self, stream: K, change: &Change) -> bool {
        self.set(change).is_some_and(|set| set.contains(&stream))
    }

    /// Returns the URIs that the filters include.
    pub fn uris(&self) -> impl Iterator<Item = &String> {
        self.by_uri.keys()
    }

    fn set(&self, change: &Change) -> Option<&BTreeSet<K>> {
        match change {
            Change::Tools => Some(&self.tools),
            Change::Prompts => Some(&self.prompts),
            Change::Resources => Some(&self.resources),
            Change::Resource(uri) => self.by_uri.get(uri),
        }
    }

    /// Returns whether there are no streams.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uris_of.is_empty()
    }
}

impl<K: Copy + Ord> Default for ListenStreams<K> {
    fn default() -> Self {
        let [tools, prompts, resources] = [const { BTreeSet::new() }; 3];
        Self { tools, prompts, resources, by_uri: BTreeMap::new(), uris_of: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream gets only what it asked for, and nothing after its end.
    // covers: L-1, L-2
    #[test]
    fn streams_get_what_they_asked_for() {
        let mut streams = ListenStreams::default();
        streams.insert(1, &SubscriptionFilter::default().tools_list_changed(true));
        streams.insert(
            2,
            &SubscriptionFilter::default().tools_list_changed(false).resource_subscriptions(vec!["a:b".into()]),
        );
        streams.insert(
            3,
            &SubscriptionFilter::default().tools_list_changed(true).resource_subscriptions(vec!["a:b".into()]),
        );
        let of = |streams: &ListenStreams<i32>, change| streams.of(&change).collect::<Vec<_>>();
        assert_eq!(of(&streams, Change::Tools), [1, 3]);
        assert_eq!(of(&streams, Change::Resource("a:b".into())), [2, 3]);
        assert!(of(&streams, Change::Prompts).is_empty());
        assert!(streams.remove(3) && !streams.remove(3));
        assert_eq!(of(&streams, Change::Resource("a:b".into())), [2]);
        streams.remove(1);
        streams.remove(2);
        assert!(streams.is_empty() && streams.by_uri.is_empty() && streams.tools.is_empty());
    }
}
