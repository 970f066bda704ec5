//! Subscriptions to legacy servers.

use std::collections::BTreeMap;
use std::task::Waker;

use mcp_kernel::Change;
use mcp_types::SubscriptionFilter;

use super::changes::{ChangeQueue, all_of};

/// The subscriptions to a legacy server, which sends all changes on the one stream of the connection.
#[derive(Default)]
pub(crate) struct LegacySubscriptions {
    all: BTreeMap<u64, LegacySubscription>,
    last_id: u64,
}

pub(crate) struct LegacySubscription {
    filter: SubscriptionFilter,
    changes: ChangeQueue,
    waker: Option<Waker>,
}

impl LegacySubscriptions {
    pub(crate) fn add(&mut self, filter: SubscriptionFilter) -> u64 {
        self.last_id += 1;
        self.all.insert(self.last_id, LegacySubscription { filter, changes: ChangeQueue::default(), waker: None });
        self.last_id
    }

    /// Removes a subscription; returns the URIs that no other subscription covers.
    pub(crate) fn remove(&mut self, id: u64) -> Vec<String> {
        let Some(removed) = self.all.remove(&id) else { return Vec::new() };
        let mut uris = removed.filter.resource_subscriptions.unwrap_or_default();
        uris.retain(|uri| !self.all.values().any(|other| names(&other.filter, uri)));
        uris
    }

    pub(crate) fn next(&mut self, id: u64, waker: &Waker) -> Option<Change> {
        let subscription = self.all.get_mut(&id)?;
        let change = subscription.changes.pop();
        if change.is_none() {
            subscription.waker = Some(waker.clone());
        }
        change
    }

    /// Queues a change for one subscription.
    pub(crate) fn push_to(&mut self, id: u64, change: Change) {
        if let Some(subscription) = self.all.get_mut(&id) {
            subscription.changes.push(change);
        }
    }

    /// Queues every change that a subscription covers, for each of them; returns the tasks to wake.
    pub(crate) fn assume_all_changed(&mut self) -> Vec<Waker> {
        let wakers = self.all.values_mut().filter_map(|subscription| {
            all_of(&subscription.filter).for_each(|change| subscription.changes.push(change));
            subscription.waker.take()
        });
        wakers.collect()
    }

    /// Queues a change for all subscriptions that cover it; returns the tasks to wake.
    pub(crate) fn push_change(&mut self, change: &Change) -> Vec<Waker> {
        let subscribed = self.all.values_mut().filter(|subscription| covers(&subscription.filter, change));
        let wakers = subscribed.filter_map(|subscription| {
            subscription.changes.push(change.clone());
            subscription.waker.take()
        });
        wakers.collect()
    }
}

fn covers(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        Change::Resource(uri) => filter.resource_subscriptions.iter().flatten().any(|wanted| is_below(uri, wanted)),
        _ => false,
    }
}

fn names(filter: &SubscriptionFilter, uri: &str) -> bool {
    filter.resource_subscriptions.iter().flatten().any(|other| other == uri)
}

/// Returns whether `uri` is `wanted` or below it.
// L-15
fn is_below(uri: &str, wanted: &str) -> bool {
    uri.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '#', '?']))
}
