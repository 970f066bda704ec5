//! A notification of a change, serialized once for all clients.

use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{NotificationParams, RequestId, ResourceUpdatedNotificationParams, meta};

use crate::Change;

/// A [`Change`] that is serialized once for all connections and listen streams. Their copies differ in the subscription
/// id only.
#[derive(Clone, Debug)]
pub struct Announcement {
    change: Change,
    /// The notification for legacy clients.
    pub(super) legacy: EncodedMessage,
    /// The notification for listen streams, up to the subscription id.
    before_id: Vec<u8>,
}

/// What follows the subscription id: the ends of `_meta`, of the parameters, and of the message.
const AFTER_ID: &[u8] = b"}}}";

/// The room for an id, which most do not exceed.
const USUAL_ID: usize = 24;

impl Announcement {
    /// Serializes the notification of a change.
    #[must_use]
    pub fn new(change: &Change) -> Self {
        let method = change.method();
        let legacy = if let Change::Resource(uri) = change {
            EncodedMessage::notification(&method, Some(&ResourceUpdatedNotificationParams::new(uri)))
        } else {
            EncodedMessage::notification(&method, Some(&NotificationParams::default()))
        };
        // Both are plain data, which can always be serialized.
        let legacy = legacy.unwrap_or_else(|_| EncodedMessage::from_bytes(Vec::new()));
        let mut before_id = legacy.clone_with_meta(meta::key::SUBSCRIPTION_ID, &0).into_bytes();
        before_id.truncate(before_id.len().saturating_sub(AFTER_ID.len() + 1));
        Self { change: change.clone(), legacy, before_id }
    }

    /// Returns the change.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The notification for a listen stream, with the id of its request.
    // L-7
    pub(super) fn for_listen_stream(&self, id: &RequestId) -> EncodedMessage {
        let mut message = Vec::with_capacity(self.before_id.len() + AFTER_ID.len() + USUAL_ID);
        message.extend_from_slice(&self.before_id);
        // An id can always be serialized.
        let _ = serde_json::to_writer(&mut message, id);
        message.extend_from_slice(AFTER_ID);
        EncodedMessage::from_bytes(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notification of a listen stream is the one for legacy clients with the id of its request.
    // covers: L-7
    #[test]
    fn listen_streams_get_the_id_of_their_request() {
        let ids = [RequestId::from(7), RequestId::from(-12), RequestId::from("a \"quoted\" id")];
        for change in [Change::Tools, Change::Resource("file:///a".into())] {
            let announcement = Announcement::new(&change);
            for id in &ids {
                let expected = announcement.legacy.clone_with_meta(meta::key::SUBSCRIPTION_ID, id);
                assert_eq!(announcement.for_listen_stream(id), expected);
            }
        }
    }
}
