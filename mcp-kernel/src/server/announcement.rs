//! A change, written for all who hear of it.

use mcp_types::jsonrpc::write_notification;
use mcp_types::{Method, NotificationParams, RequestId, ResourceUpdatedNotificationParams, meta};

use super::commands::add_meta;
use crate::Change;

/// A [`Change`] that is written once, however many connections and listeners hear of it: their copies differ in the id
/// of the listen request alone.
#[derive(Clone, Debug)]
pub struct Announcement {
    change: Change,
    /// What a legacy client hears.
    unasked: Vec<u8>,
    /// What a listener hears, up to the id of its request.
    head: Vec<u8>,
}

impl Announcement {
    /// Writes a change.
    #[must_use]
    pub fn new(change: &Change) -> Self {
        let mut unasked = Vec::new();
        let method = match change {
            Change::Tools => Method::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            Change::Prompts => Method::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            Change::Resources => Method::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            Change::Resource(_) => Method::NOTIFICATIONS_RESOURCES_UPDATED,
        };
        // Both are plain data, which can always be written.
        let _ = if let Change::Resource(uri) = change {
            write_notification(&mut unasked, &method, Some(&ResourceUpdatedNotificationParams::new(uri)))
        } else {
            write_notification(&mut unasked, &method, Some(&NotificationParams::default()))
        };
        let mut head = unasked.clone();
        add_meta(&mut head, format!("{{\"{}\":", meta::key::SUBSCRIPTION_ID).as_bytes());
        head.truncate(head.len().saturating_sub(END.len() - 1));
        Self { change: change.clone(), unasked, head }
    }

    /// What changed.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn unasked(&self) -> &[u8] {
        &self.unasked
    }

    /// L-7: everything on a stream carries the id of the listen request, in its kind.
    pub(super) fn for_listener(&self, id: &RequestId) -> Option<Vec<u8>> {
        let mut message = Vec::with_capacity(self.head.len() + USUAL_ID + END.len());
        message.extend_from_slice(&self.head);
        serde_json::to_writer(&mut message, id).ok()?;
        message.extend_from_slice(END);
        Some(message)
    }
}

/// What closes the metadata, the parameters and the message.
const END: &[u8] = b"}}}";

/// How many bytes are set aside for an id.
const USUAL_ID: usize = 24;
