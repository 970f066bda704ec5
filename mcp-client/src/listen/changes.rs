//! Changes that wait for those who want to hear of them.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use mcp_kernel::Change;
use mcp_types::SubscriptionFilter;

use crate::state::memory_size;

/// How many changes wait for somebody who does not look, and how much they may weigh. A server decides what lies below an
/// address that is subscribed to, so it could name any number; beyond this the oldest are forgotten.
const MOST: usize = 1024;
const MOST_BYTES: usize = 1024 * 1024;

/// What changed and was not looked at yet; what changed twice is there once.
#[derive(Default)]
pub(crate) struct Changes {
    queue: VecDeque<Change>,
    bytes: usize,
}

impl Changes {
    pub(crate) fn add(&mut self, change: Change) {
        let weight = memory_size::of_change(&change);
        // No address is that long.
        if weight > MOST_BYTES || self.queue.contains(&change) {
            return;
        }
        while self.queue.len() >= MOST || self.bytes + weight > MOST_BYTES {
            if self.next().is_none() {
                break;
            }
        }
        self.bytes += weight;
        self.queue.push_back(change);
    }

    pub(crate) fn next(&mut self) -> Option<Change> {
        let change = self.queue.pop_front()?;
        self.bytes -= memory_size::of_change(&change);
        Some(change)
    }
}

/// All that a filter lets pass: nobody knows what happened while nobody listened.
pub(crate) fn all_of(filter: &SubscriptionFilter) -> impl Iterator<Item = Change> {
    let lists = [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ];
    let lists = lists.into_iter().filter(|(wanted, _)| *wanted == Some(true)).map(|(_, change)| change);
    lists.chain(filter.resource_subscriptions.iter().flatten().cloned().map(Change::Resource))
}

/// Those who listen to a legacy server: it tells all changes on one stream.
#[derive(Default)]
pub(crate) struct LegacyListeners {
    all: BTreeMap<u64, LegacyListener>,
    started: u64,
}

pub(crate) struct LegacyListener {
    filter: SubscriptionFilter,
    changes: Changes,
    waker: Option<Waker>,
}

impl LegacyListeners {
    pub(crate) fn add(&mut self, filter: SubscriptionFilter) -> u64 {
        self.started += 1;
        self.all.insert(self.started, LegacyListener { filter, changes: Changes::default(), waker: None });
        self.started
    }

    /// Forgets a listener; returns the addresses that nobody else listens to.
    pub(crate) fn remove(&mut self, listener: u64) -> Vec<String> {
        let Some(removed) = self.all.remove(&listener) else { return Vec::new() };
        let mut uris = removed.filter.resource_subscriptions.unwrap_or_default();
        uris.retain(|uri| !self.all.values().any(|other| names(&other.filter, uri)));
        uris
    }

    pub(crate) fn next(&mut self, listener: u64, waker: &Waker) -> Option<Change> {
        let listener = self.all.get_mut(&listener)?;
        let change = listener.changes.next();
        if change.is_none() {
            listener.waker = Some(waker.clone());
        }
        change
    }

    /// Tells one of them.
    pub(crate) fn tell(&mut self, listener: u64, change: Change) {
        if let Some(listener) = self.all.get_mut(&listener) {
            listener.changes.add(change);
        }
    }

    /// Tells each of all that it listens to; returns those to be woken.
    pub(crate) fn assume_all(&mut self) -> Vec<Waker> {
        let told = self.all.values_mut().filter_map(|listener| {
            all_of(&listener.filter).for_each(|change| listener.changes.add(change));
            listener.waker.take()
        });
        told.collect()
    }

    /// Tells all who want to know; returns those to be woken.
    pub(crate) fn changed(&mut self, change: &Change) -> Vec<Waker> {
        let interested = self.all.values_mut().filter(|listener| wants(&listener.filter, change));
        let told = interested.filter_map(|listener| {
            listener.changes.add(change.clone());
            listener.waker.take()
        });
        told.collect()
    }
}

fn wants(filter: &SubscriptionFilter, change: &Change) -> bool {
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

/// What changed may lie below what was subscribed to.
// L-15
fn is_below(uri: &str, wanted: &str) -> bool {
    uri.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '#', '?']))
}
