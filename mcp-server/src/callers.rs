//! Who sent the requests that wait.

use mcp_kernel::RequestKey;

use crate::extensions::Extensions;

/// What the transport knows about requests that wait for their turn: who makes room for one need not be who sent it.
///
/// Handles grow, and all requests of a batch have later ones than the batch: the last entry up to a handle is its own.
#[derive(Default)]
pub(crate) struct Callers(Vec<(RequestKey, Extensions)>);

impl Callers {
    /// Notes who sent a request or a batch.
    pub(crate) fn note(&mut self, key: RequestKey, extensions: &Extensions) {
        // Nothing is what is known of whom there is no entry.
        if !extensions.is_empty() || !self.0.is_empty() {
            self.0.push((key, extensions.clone()));
        }
    }

    pub(crate) fn of(&self, request: RequestKey) -> Extensions {
        let after = self.0.partition_point(|(key, _)| *key <= request);
        let found = after.checked_sub(1).and_then(|index| self.0.get(index));
        found.map(|(_, extensions)| extensions.clone()).unwrap_or_default()
    }

    /// Forgets those whose requests are over.
    pub(crate) fn retain(&mut self, is_open: impl Fn(RequestKey) -> bool) {
        self.0.retain(|(key, _)| is_open(*key));
    }
}
