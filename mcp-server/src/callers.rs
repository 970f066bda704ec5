//! Who sent the requests that are open.

use std::sync::Arc;

use mcp_kernel::RequestKey;

use crate::extensions::Extensions;

/// What the transport knows about requests, for as long as they are open: some wait for their turn, and who makes room
/// for one need not be who sent it.
///
/// Handles grow, and all requests of a batch have later ones than the batch: the last entry up to a handle is its own.
#[derive(Default)]
pub(crate) struct Callers(Vec<(RequestKey, Option<Arc<Extensions>>)>);

impl Callers {
    /// Notes who sent a request or a batch.
    pub(crate) fn note(&mut self, key: RequestKey, extensions: Option<&Arc<Extensions>>) {
        // Nothing is what is known of whom there is no entry.
        if extensions.is_some() || !self.0.is_empty() {
            self.0.push((key, extensions.cloned()));
        }
    }

    pub(crate) fn of(&self, request: RequestKey) -> Option<Arc<Extensions>> {
        let after = self.0.partition_point(|(key, _)| *key <= request);
        self.0.get(after.checked_sub(1)?)?.1.clone()
    }

    /// Forgets those whose requests are over.
    pub(crate) fn retain(&mut self, is_open: impl Fn(RequestKey) -> bool) {
        self.0.retain(|(key, _)| is_open(*key));
    }
}
