//! Writes event streams. Each function appends one event to a buffer.

use std::io::Write as _;
use std::time::Duration;

use mcp_session::EventIdKey;
use mcp_types::jsonrpc::EncodedMessage;

/// A comment, which clients ignore.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Why a stream ends, as a comment for people who look at it.
pub(crate) const TOKEN_EXPIRED: &[u8] = b": the access token has expired\n\n";

/// Appends a message, which is one line of JSON.
// AMB-14
pub(crate) fn write_event(out: &mut Vec<u8>, message: &EncodedMessage) {
    write_data(out, message);
}

/// Appends a message with an id, after which a client may resume the stream.
pub(crate) fn write_event_with_id(out: &mut Vec<u8>, id: impl FnOnce(&mut Vec<u8>), message: &EncodedMessage) {
    out.reserve(EventIdKey::ID_LENGTH + message.len() + 16);
    write_id(out, id);
    write_data(out, message);
}

/// Appends an event with a name. Neither the name nor the data may contain line breaks.
pub(crate) fn write_named_event(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    write_field(out, "event", name);
    write_data(out, data);
}

/// Appends an event without data, after which a client may resume the stream once `retry` has passed.
// B-104
pub(crate) fn write_empty_event(out: &mut Vec<u8>, id: impl FnOnce(&mut Vec<u8>), retry: Duration) {
    write_id(out, id);
    write_retry_field(out, retry);
    write_data(out, b"");
}

/// Appends how long a client waits before it reconnects.
pub(crate) fn write_retry(out: &mut Vec<u8>, retry: Duration) {
    write_retry_field(out, retry);
    out.push(b'\n');
}

fn write_retry_field(out: &mut Vec<u8>, retry: Duration) {
    // Writing to a vector does not fail.
    let _ = writeln!(out, "retry: {}", retry.as_millis());
}

fn write_id(out: &mut Vec<u8>, id: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"id: ");
    id(out);
    out.push(b'\n');
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends the data of an event, and ends it.
fn write_data(out: &mut Vec<u8>, data: &[u8]) {
    out.reserve(data.len() + 8);
    for part in [&b"data: "[..], data, b"\n\n"] {
        out.extend_from_slice(part);
    }
}
