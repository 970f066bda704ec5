//! Event streams: `text/event-stream` of the HTML standard.

#[cfg(feature = "client")]
pub(crate) mod decode;
#[cfg(feature = "server")]
pub(crate) mod encode;

#[cfg(all(feature = "client", feature = "server"))]
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_types::Method;
    use mcp_types::jsonrpc::EncodedMessage;

    use super::decode::EventParser;
    use super::encode::{
        KEEP_ALIVE, write_empty_event, write_event, write_event_with_id, write_named_event, write_retry,
    };

    /// A name and data.
    type Event = (Vec<u8>, Vec<u8>);

    /// Decodes a stream in chunks of `size` bytes: the names and data of its events, the last id and the retry value.
    fn decode(stream: &[u8], size: usize) -> (Vec<Event>, Option<String>, Option<Duration>) {
        let mut parser = EventParser::new(1 << 10);
        let mut events = Vec::new();
        for mut chunk in stream.chunks(size) {
            while let Some(event) = parser.read(&mut chunk).expect("events are small") {
                events.push((event.name, event.data));
            }
        }
        (events, parser.last_id, parser.retry)
    }

    /// Everything that a server writes is read by a client as it was written.
    // covers: H-22, B-103, B-104, AMB-14
    #[test]
    fn decoding_inverts_encoding() {
        let params = serde_json::json!({ "text": "gr\u{fc}\u{df}\r\n\r\ndata: x\u{2028}\u{feff}" });
        let message = EncodedMessage::notification(&Method::NOTIFICATIONS_MESSAGE, Some(&params)).unwrap();
        let event = |name: &str, data: &[u8]| (name.as_bytes().to_vec(), data.to_vec());
        let second = Duration::from_secs(1);
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        let mut check = |stream: &[u8], new: Option<Event>, id: Option<&str>, retry: Option<Duration>| {
            expected.extend(new);
            for size in [1, 7, usize::MAX] {
                assert_eq!(decode(stream, size), (expected.clone(), id.map(str::to_owned), retry));
            }
        };
        write_event(&mut stream, &message);
        check(&stream, Some(event("message", &message)), None, None);
        stream.extend_from_slice(KEEP_ALIVE);
        check(&stream, None, None, None);
        write_empty_event(&mut stream, |out| out.extend_from_slice(b"1-0"), second);
        check(&stream, None, Some("1-0"), Some(second));
        write_event_with_id(&mut stream, |out| out.extend_from_slice(b"1-1"), &message);
        check(&stream, Some(event("message", &message)), Some("1-1"), Some(second));
        write_named_event(&mut stream, "endpoint", b"/messages?sessionId=1");
        check(&stream, Some(event("endpoint", b"/messages?sessionId=1")), Some("1-1"), Some(second));
        write_retry(&mut stream, Duration::from_millis(5));
        check(&stream, None, Some("1-1"), Some(Duration::from_millis(5)));
    }
}
