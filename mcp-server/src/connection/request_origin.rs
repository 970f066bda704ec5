//! The extensions of requests that wait to be admitted.

use mcp_kernel::RequestKey;

use crate::extensions::Extensions;

/// What the transport attached to requests that wait for other requests to end.
///
/// Keys increase, and all requests of a batch have greater keys than the batch: the last entry up to a key belongs to it.
#[derive(Default)]
pub(crate) struct RequestOrigins(Vec<(RequestKey, Extensions)>);

impl RequestOrigins {
    /// Stores the extensions of a request or a batch.
    pub(crate) fn insert(&mut self, key: RequestKey, extensions: Extensions) {
        // Requests without an entry have no extensions.
        if !extensions.is_empty() || !self.0.is_empty() {
            self.0.push((key, extensions));
        }
    }

    /// Returns the extensions of a request that is admitted; the entry of a batch stays for its other requests.
    pub(crate) fn take(&mut self, request: RequestKey) -> Extensions {
        let after = self.0.partition_point(|(key, _)| *key <= request);
        let Some(index) = after.checked_sub(1) else { return Extensions::default() };
        match self.0.get(index) {
            Some((key, _)) if *key == request => self.0.remove(index).1,
            Some((_, extensions)) => extensions.clone(),
            None => Extensions::default(),
        }
    }

    /// Removes the entries of requests that have ended. The values are the transport's, to be dropped without a lock.
    #[must_use]
    pub(crate) fn take_closed(&mut self, is_open: impl Fn(RequestKey) -> bool) -> Vec<(RequestKey, Extensions)> {
        self.0.extract_if(.., |(key, _)| !is_open(*key)).collect()
    }
}
