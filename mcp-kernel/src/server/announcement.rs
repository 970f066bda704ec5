//! A change, written for all who hear of it.

use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{Method, NotificationParams, RequestId, ResourceUpdatedNotificationParams, meta};

use crate::Change;

/// A [`Change`] that is written once, however many connections and listeners hear of it: their copies differ in the id
/// of the listen request alone.
#[derive(Clone, Debug)]
pub struct Announcement {
    change: Change,
    /// What a legacy client hears.
    unasked: EncodedMessage,
}

impl Announcement {
    /// Writes a change.
    #[must_use]
    pub fn new(change: &Change) -> Self {
        let method = match change {
            Change::Tools => Method::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            Change::Prompts => Method::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            Change::Resources => Method::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            Change::Resource(_) => Method::NOTIFICATIONS_RESOURCES_UPDATED,
        };
        let unasked = if let Change::Resource(uri) = change {
            EncodedMessage::notification(&method, Some(&ResourceUpdatedNotificationParams::new(uri)))
        } else {
            EncodedMessage::notification(&method, Some(&NotificationParams::default()))
        };
        // Both are plain data, which can always be written.
        let unasked = unasked.unwrap_or_else(|_| EncodedMessage::from_bytes(Vec::new()));
        Self { change: change.clone(), unasked }
    }

    /// What changed.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn unasked(&self) -> &EncodedMessage {
        &self.unasked
    }

    /// Everything on a stream carries the id of the listen request, in its kind.
    // L-7
    pub(super) fn for_listen_stream(&self, id: &RequestId) -> EncodedMessage {
        self.unasked.with_meta_member(meta::key::SUBSCRIPTION_ID, id)
    }
}
