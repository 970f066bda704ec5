//! Queued changes.

use std::collections::VecDeque;

use mcp_kernel::Change;
use mcp_types::SubscriptionFilter;

use crate::state::memory_size;

/// Maximum number and size of queued changes; beyond that the oldest are dropped. A subscription covers all URIs below its
/// own, so a server could send any number of different changes.
const MAX_CHANGES: usize = 1024;
const MAX_BYTES: usize = 1024 * 1024;

/// Changes that the application has not taken yet, without duplicates.
#[derive(Default)]
pub(crate) struct ChangeQueue {
    queue: VecDeque<Change>,
    bytes: usize,
}

impl ChangeQueue {
    pub(crate) fn push(&mut self, change: Change) {
        let size = memory_size::of_change(&change);
        // No valid URI is that long.
        if size > MAX_BYTES || self.queue.contains(&change) {
            return;
        }
        while self.queue.len() >= MAX_CHANGES || self.bytes + size > MAX_BYTES {
            if self.pop().is_none() {
                break;
            }
        }
        self.bytes += size;
        self.queue.push_back(change);
    }

    pub(crate) fn pop(&mut self) -> Option<Change> {
        let change = self.queue.pop_front()?;
        self.bytes -= memory_size::of_change(&change);
        Some(change)
    }
}

/// Returns every change that a filter covers.
pub(crate) fn all_of(filter: &SubscriptionFilter) -> impl Iterator<Item = Change> {
    let lists = [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ];
    let lists = lists.into_iter().filter(|(wanted, _)| *wanted == Some(true)).map(|(_, change)| change);
    lists.chain(filter.resource_subscriptions.iter().flatten().cloned().map(Change::Resource))
}
