//! What is known of requests that wait to be admitted.

use mcp_kernel::RequestKey;
use mcp_kernel::server::Connection;

use crate::extensions::Extensions;
use crate::serve::telemetry::Stopwatch;

/// What is known of a message besides its content.
#[derive(Clone, Default)]
pub(crate) struct RequestOrigin {
    /// What the transport attached to it.
    pub(crate) extensions: Extensions,
    /// Measures the time since it was received, if that is reported.
    pub(crate) received: Option<Stopwatch>,
}

/// The origins of requests that wait for other requests to end.
///
/// Keys increase, and all requests of a batch have greater keys than the batch: the last entry up to a key belongs to it.
#[derive(Default)]
pub(crate) struct RequestOrigins(Vec<(RequestKey, RequestOrigin)>);

impl RequestOrigins {
    /// Stores the origin of a request or a batch.
    pub(crate) fn insert(&mut self, key: RequestKey, origin: RequestOrigin) {
        // Requests without an entry have no extensions, and are not measured.
        if !origin.extensions.is_empty() || origin.received.is_some() || !self.0.is_empty() {
            self.0.push((key, origin));
        }
    }

    /// Returns the origin of a request that is admitted; the entry of a batch stays for its other requests.
    pub(crate) fn take(&mut self, request: RequestKey) -> RequestOrigin {
        let after = self.0.partition_point(|(key, _)| *key <= request);
        let Some(index) = after.checked_sub(1) else { return RequestOrigin::default() };
        match self.0.get(index) {
            Some((key, _)) if *key == request => self.0.remove(index).1,
            Some((_, origin)) => origin.clone(),
            None => RequestOrigin::default(),
        }
    }

    /// Feeds a message, and removes the entries of requests that have ended; those of requests that are reported when they end
    /// stay until the next message. The removed values are the transport's, to be dropped without a lock.
    pub(crate) fn feed(
        &mut self,
        kernel: &mut Connection,
        is_observed: bool,
        feed: impl FnOnce(&mut Connection) -> Option<RequestKey>,
    ) -> (Option<RequestKey>, Vec<(RequestKey, RequestOrigin)>) {
        if is_observed {
            let closed = self.take_closed(|key| kernel.is_open(key));
            return (feed(kernel), closed);
        }
        let key = feed(kernel);
        (key, self.take_closed(|key| kernel.is_open(key)))
    }

    fn take_closed(&mut self, is_open: impl Fn(RequestKey) -> bool) -> Vec<(RequestKey, RequestOrigin)> {
        self.0.extract_if(.., |(key, _)| !is_open(*key)).collect()
    }
}
