//! Any bytes as a stream of events, however they are cut.

use std::time::Duration;

use mcp_transport_http::internals::{EventStream, read_events};

/// A stream of events says the same whole and in pieces, and it says what the HTML standard says it does; an event
/// beyond the limit ends it.
///
/// The first byte chooses the limit, the second one where the stream is cut.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn event_stream(data: &[u8]) {
    let [limit, seed, stream @ ..] = data else { return };
    let limit = if *limit < 128 { usize::MAX } else { usize::from(*limit - 127) * 4 };
    let whole = read_events([stream], limit);
    assert_eq!(read_events(stream.chunks(1), limit), whole, "byte by byte");
    assert_eq!(read_events(pieces(stream, *seed), limit), whole, "in pieces");
    for (_, data) in &whole.events {
        assert!(data.len() <= limit, "an event is longer than the limit");
    }
    if limit == usize::MAX {
        assert!(!whole.is_too_long, "nothing is too long without a limit");
    }
    if !whole.is_too_long {
        assert_is_standard(&whole, stream);
    }
}

/// Cuts a stream at places that the seed decides.
fn pieces(mut stream: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u32::from(seed) | 0x100;
    let mut pieces = Vec::new();
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = usize::try_from(state >> 24).unwrap_or_default() % 23;
        let (piece, rest) = stream.split_at(length.min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

/// Compares with the algorithm as the HTML standard has it, which reads a whole stream.
///
/// There is one difference: an event whose data is empty says nothing.
fn assert_is_standard(found: &EventStream, stream: &[u8]) {
    let stream = stream.strip_prefix("\u{feff}".as_bytes()).unwrap_or(stream);
    let (mut events, mut last_id, mut retry) = (Vec::new(), None, None);
    let (mut name, mut data, mut id) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines(stream) {
        if line.is_empty() {
            last_id = (!id.is_empty()).then(|| String::from_utf8_lossy(&id).into_owned());
            let (mut name, mut data) = (std::mem::take(&mut name), std::mem::take(&mut data));
            // Each line of data has added an end.
            data.pop();
            if !data.is_empty() {
                if name.is_empty() {
                    name = b"message".to_vec();
                }
                events.push((name, data));
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => data.extend_from_slice(&[value, b"\n"].concat()),
            b"event" => name = value.to_vec(),
            b"id" if !value.contains(&0) => id = value.to_vec(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = String::from_utf8_lossy(value);
                retry = Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    assert_eq!(found.events, events, "the events are those of the standard");
    assert_eq!(found.last_id, last_id, "the id is that of the standard");
    assert_eq!(found.retry, retry, "the time is that of the standard");
}

/// The lines of a stream that have an end.
fn lines(stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = stream;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    lines
}
