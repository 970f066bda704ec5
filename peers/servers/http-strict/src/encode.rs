//! Writes responses: once, into a buffer that need not grow.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::strict::reply::{CallResult, Reply};

/// Writes a response to a request of so many bytes, which is about how long an echo is.
pub(crate) fn json(reply: &impl Serialize, room: usize) -> Option<Vec<u8>> {
    let mut buffer = Vec::with_capacity(room + FRAME);
    serde_json::to_writer(&mut buffer, reply).ok()?;
    Some(buffer)
}

/// Writes a response as an event.
pub(crate) fn event(reply: &impl Serialize, room: usize) -> Option<Vec<u8>> {
    let mut buffer = Vec::with_capacity(room + FRAME);
    write_event(&mut buffer, reply)?;
    Some(buffer)
}

/// Writes three notifications and the response. The tool has all of them at once, so that is one buffer.
pub(crate) fn with_progress(token: &RawValue, reply: &Reply<'_, CallResult<'_>>, room: usize) -> Option<Vec<u8>> {
    const NOTIFICATION: usize = 128;
    let mut buffer = Vec::with_capacity(room + 4 * NOTIFICATION);
    for progress in 1..=3 {
        let params = Progress { token, progress, total: 3 };
        write_event(&mut buffer, &Notification { jsonrpc: "2.0", method: "notifications/progress", params })?;
    }
    write_event(&mut buffer, reply)?;
    Some(buffer)
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Progress<'a>,
}

#[derive(Serialize)]
struct Progress<'a> {
    #[serde(rename = "progressToken")]
    token: &'a RawValue,
    progress: u32,
    total: u32,
}

fn write_event(buffer: &mut Vec<u8>, message: &impl Serialize) -> Option<()> {
    buffer.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *buffer, message).ok()?;
    buffer.extend_from_slice(b"\n\n");
    Some(())
}

/// More than a response has besides what it repeats of its request.
const FRAME: usize = 64;
