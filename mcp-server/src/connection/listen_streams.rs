//! The open listen streams of a connection, with what predicates need to know of their requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcp_kernel::RequestKey;
use mcp_kernel::observe::Observer;
use mcp_kernel::server::RequestScope;
use mcp_types::SubscriptionFilter;
use tracing::Span;

use crate::extensions::Extensions;
use crate::serve::telemetry::Stopwatch;

/// A listen stream of a modern client.
pub(crate) struct ListenStream {
    pub(crate) scope: Arc<RequestScope>,
    pub(crate) extensions: Extensions,
    /// The filter that was acknowledged, once the application was told of the stream.
    pub(crate) filter: OnceLock<SubscriptionFilter>,
    /// The observer that knows of the stream, and how long it is open.
    pub(crate) observed: OnceLock<(Arc<dyn Observer>, Stopwatch)>,
    /// The span of the request, which lasts as long as the stream.
    pub(crate) span: OnceLock<Span>,
}

/// The open listen streams, by request. A stream is added in the critical section in which the kernel opens it, so that each
/// notification on it finds the stream here.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "few connections have any, and there is one in each session")]
pub(crate) struct ListenStreams(Option<Box<BTreeMap<RequestKey, Arc<ListenStream>>>>);

impl ListenStreams {
    pub(crate) fn insert(&mut self, scope: &Arc<RequestScope>, extensions: Extensions) {
        let (scope, filter, observed, span) = (Arc::clone(scope), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (key, listener) = (scope.key(), ListenStream { scope, extensions, filter, observed, span });
        self.0.get_or_insert_default().insert(key, Arc::new(listener));
    }

    pub(crate) fn get(&self, stream: RequestKey) -> Option<Arc<ListenStream>> {
        self.0.as_ref()?.get(&stream).map(Arc::clone)
    }

    /// Removes a stream, which has to be dropped without a lock.
    #[must_use]
    pub(crate) fn remove(&mut self, stream: RequestKey) -> Option<Arc<ListenStream>> {
        self.0.as_mut()?.remove(&stream)
    }
}
