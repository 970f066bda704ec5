//! The begin and the end of subscriptions.

use std::sync::Arc;

use mcp_types::SubscriptionFilter;

use crate::visibility::viewer::Viewer;

/// The begin or the end of a subscription, for [`ServerBuilder::on_subscription`](crate::ServerBuilder::on_subscription).
///
/// Each begin has exactly one end, also if the client disconnects.
#[derive(Debug)]
#[non_exhaustive]
pub struct SubscriptionEvent<'a> {
    /// The client.
    pub viewer: &'a Viewer<'a>,
    /// The changes that the client subscribed to: those of a listen stream, or one resource for a legacy client.
    pub filter: &'a SubscriptionFilter,
    /// Whether the subscription begins; otherwise it ends.
    pub is_active: bool,
}

impl SubscriptionEvent<'_> {
    /// Returns the URIs of the resources that the client subscribed to.
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.filter.resource_subscriptions.iter().flatten().map(String::as_str)
    }
}

pub(crate) type SubscriptionHandler = Arc<dyn Fn(&SubscriptionEvent<'_>) + Send + Sync>;
