//! Approximate memory sizes of queued messages.

use mcp_kernel::Change;
use mcp_types::{JsonObject, LoggingMessageNotificationParams, NotificationMeta, ProgressNotificationParams};

/// The size of an item without its strings.
const ITEM_BYTES: usize = 128;

pub(crate) fn of_progress(progress: &ProgressNotificationParams) -> usize {
    let message = progress.message.as_ref().map_or(0, String::len);
    ITEM_BYTES + message + of_meta(progress.meta.as_ref()) + of_object(&progress.extra)
}

pub(crate) fn of_log(log: &LoggingMessageNotificationParams) -> usize {
    let logger = log.logger.as_ref().map_or(0, String::len);
    ITEM_BYTES + log.data.as_str().len() + logger + of_meta(log.meta.as_ref()) + of_object(&log.extra)
}

pub(crate) fn of_change(change: &Change) -> usize {
    if let Change::Resource(uri) = change { ITEM_BYTES + uri.len() } else { ITEM_BYTES }
}

fn of_meta(meta: Option<&NotificationMeta>) -> usize {
    meta.map_or(0, |meta| of_object(&meta.extra))
}

fn of_object(object: &JsonObject) -> usize {
    object.iter().map(|(name, value)| ITEM_BYTES + name.len() + value.as_str().len()).sum()
}
