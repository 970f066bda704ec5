//! A notification of a change, serialized once for all clients.

use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{Method, NotificationParams, RequestId, ResourceUpdatedNotificationParams, meta};

use crate::Change;

/// A [`Change`] that is serialized once for all connections and listen streams. Their copies differ in the subscription
/// id only.
#[derive(Clone, Debug)]
pub struct Announcement {
    change: Change,
    /// The notification for legacy clients.
    pub(super) legacy: EncodedMessage,
}

impl Announcement {
    /// Serializes the notification of a change.
    #[must_use]
    pub fn new(change: &Change) -> Self {
        let method = match change {
            Change::Tools => Method::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            Change::Prompts => Method::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            Change::Resources => Method::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            Change::Resource(_) => Method::NOTIFICATIONS_RESOURCES_UPDATED,
        };
        let legacy = if let Change::Resource(uri) = change {
            EncodedMessage::notification(&method, Some(&ResourceUpdatedNotificationParams::new(uri)))
        } else {
            EncodedMessage::notification(&method, Some(&NotificationParams::default()))
        };
        // Both are plain data, which can always be serialized.
        let legacy = legacy.unwrap_or_else(|_| EncodedMessage::from_bytes(Vec::new()));
        Self { change: change.clone(), legacy }
    }

    /// Returns the change.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The notification for a listen stream, with the id of its request.
    // L-7
    pub(super) fn for_listen_stream(&self, id: &RequestId) -> EncodedMessage {
        self.legacy.clone_with_meta(meta::key::SUBSCRIPTION_ID, id)
    }
}
