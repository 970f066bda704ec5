//! Who sent the requests that wait.

use mcp_kernel::RequestKey;

use crate::extensions::Extensions;

/// What the transport knows about requests that wait for their turn: who makes room for one need not be who sent it.
///
/// Handles grow, and all requests of a batch have later ones than the batch: the last entry up to a handle is its own.
#[derive(Default)]
pub(crate) struct RequestOrigins(Vec<(RequestKey, Extensions)>);

impl RequestOrigins {
    /// Notes who sent a request or a batch.
    pub(crate) fn note(&mut self, key: RequestKey, extensions: &Extensions) {
        // Nothing is what is known of whom there is no entry.
        if !extensions.is_empty() || !self.0.is_empty() {
            self.0.push((key, extensions.clone()));
        }
    }

    /// Finds who sent a request whose turn it is; only an entry of a batch is needed again.
    pub(crate) fn take(&mut self, request: RequestKey) -> Extensions {
        let after = self.0.partition_point(|(key, _)| *key <= request);
        let Some(index) = after.checked_sub(1) else { return Extensions::default() };
        match self.0.get(index) {
            Some((key, _)) if *key == request => self.0.remove(index).1,
            Some((_, extensions)) => extensions.clone(),
            None => Extensions::default(),
        }
    }

    /// Takes out those whose requests are over. They are the transport's values, to be dropped without a lock.
    #[must_use]
    pub(crate) fn take_closed(&mut self, is_open: impl Fn(RequestKey) -> bool) -> Vec<(RequestKey, Extensions)> {
        self.0.extract_if(.., |(key, _)| !is_open(*key)).collect()
    }
}
