//! The open listen streams of a connection, with what predicates need to know of their requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcp_kernel::RequestKey;
use mcp_kernel::server::RequestScope;
use mcp_types::SubscriptionFilter;

use crate::extensions::Extensions;

/// A listen stream of a modern client.
pub(crate) struct ListenStream {
    pub(crate) scope: Arc<RequestScope>,
    pub(crate) extensions: Extensions,
    /// The filter that was acknowledged, once the application was told of the stream.
    pub(crate) filter: OnceLock<SubscriptionFilter>,
}

/// The open listen streams, by request. A stream is added in the critical section in which the kernel opens it, so that each
/// notification on it finds the stream here.
#[derive(Default)]
pub(crate) struct ListenStreams(BTreeMap<RequestKey, Arc<ListenStream>>);

impl ListenStreams {
    pub(crate) fn insert(&mut self, scope: &Arc<RequestScope>, extensions: Extensions) {
        let listener = ListenStream { scope: Arc::clone(scope), extensions, filter: OnceLock::new() };
        self.0.insert(scope.key(), Arc::new(listener));
    }

    pub(crate) fn get(&self, stream: RequestKey) -> Option<Arc<ListenStream>> {
        self.0.get(&stream).map(Arc::clone)
    }

    /// Removes a stream, which has to be dropped without a lock.
    #[must_use]
    pub(crate) fn remove(&mut self, stream: RequestKey) -> Option<Arc<ListenStream>> {
        self.0.remove(&stream)
    }
}
