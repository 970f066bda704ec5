//! Parses a line or a body.

use super::envelope::Envelope;
use super::fault::Fault;
use super::invalid_message::InvalidMessage;
use super::limits::Limits;
use super::message::Message;
use crate::json::scan::{ScanError, Scanner, kind};

/// A single message or a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
pub enum Incoming<'a> {
    /// A single message.
    Single(Message<'a>),
    /// An array of at least one message, which only revision 2025-03-26 allows.
    ///
    /// An invalid message does not affect the others.
    Batch(Vec<Result<Message<'a>, InvalidMessage>>),
}

/// Parses a single message or a batch.
///
/// Use [`Message::parse`] if batches are not allowed.
///
/// # Errors
///
/// Returns an error if the text is not JSON, nests too deep, is neither an object nor an array, or is an array that is
/// empty or too long. For an array the error has no id, because there is one response for the whole batch.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, InvalidMessage> {
    let text = decode_utf8(bytes, limits)?;
    let mut scanner = Scanner::new(text, limits.max_depth);
    match scanner.peek() {
        (at, Some(b'[')) => batch(&mut scanner, at, text, limits).map(Incoming::Batch),
        (at, _) => single(&mut scanner, at, text, limits).map(Incoming::Single),
    }
}

pub(super) fn parse_single<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Message<'a>, InvalidMessage> {
    let text = decode_utf8(bytes, limits)?;
    let mut scanner = Scanner::new(text, limits.max_depth);
    let (at, _) = scanner.peek();
    single(&mut scanner, at, text, limits)
}

fn single<'a>(
    scanner: &mut Scanner<'a>,
    at: usize,
    text: &'a str,
    limits: &Limits,
) -> Result<Message<'a>, InvalidMessage> {
    if scanner.peek().1 != Some(b'{') {
        // The error depends on whether the whole text is JSON.
        let fault = scanner
            .value()
            .and_then(|value| scanner.finish().map(|()| value))
            .map(|value| match kind(value) {
                "an array" => Fault::BatchNotAllowed,
                found => Fault::NotAnObject { found },
            })
            .map_err(|error| InvalidMessage::from_scan(error, text))?;
        return Err(InvalidMessage::new(fault, Some(at)));
    }
    let mut envelope = Envelope::new(at);
    let scanned = envelope.scan(scanner, limits);
    match scanned.and_then(|()| scanner.finish()) {
        Ok(()) => envelope.take_message(),
        Err(error) => Err(InvalidMessage::from_scan(error, text).about(envelope.origin_before(text, true))),
    }
}

fn batch<'a>(
    scanner: &mut Scanner<'a>,
    at: usize,
    text: &'a str,
    limits: &Limits,
) -> Result<Vec<Result<Message<'a>, InvalidMessage>>, InvalidMessage> {
    let mut messages = Vec::new();
    scanner
        .array(|scanner| {
            if messages.len() >= limits.max_batch_size {
                return Err(Stop::TooLarge);
            }
            messages.push(element(scanner, limits)?);
            Ok(())
        })
        .and_then(|_| Ok(scanner.finish()?))
        .map_err(|stop| match stop {
            Stop::Scan(error) => InvalidMessage::from_scan(error, text),
            Stop::TooLarge => {
                let limit = limits.max_batch_size;
                InvalidMessage::new(Fault::BatchTooLarge { limit }, Some(at))
            }
        })?;
    if messages.is_empty() {
        return Err(InvalidMessage::new(Fault::EmptyBatch, Some(at)));
    }
    Ok(messages)
}

fn element<'a>(scanner: &mut Scanner<'a>, limits: &Limits) -> Result<Result<Message<'a>, InvalidMessage>, ScanError> {
    let (at, first) = scanner.peek();
    if first == Some(b'{') {
        let mut envelope = Envelope::new(at);
        envelope.scan(scanner, limits)?;
        Ok(envelope.take_message())
    } else {
        let found = kind(scanner.value()?);
        Ok(Err(InvalidMessage::new(Fault::NotAnObject { found }, Some(at))))
    }
}

/// The reason why the scan of a batch stopped.
enum Stop {
    Scan(ScanError),
    TooLarge,
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Self::Scan(error)
    }
}

fn decode_utf8<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, InvalidMessage> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to(), limits))?;
    if text.starts_with('\u{feff}') {
        return Err(InvalidMessage::new(Fault::ByteOrderMark, Some(0)));
    }
    Ok(text)
}

/// Attributes bytes that are not UTF-8 to the message in front of them, if it can be identified.
// M-11
fn not_utf8(bytes: &[u8], valid: usize, limits: &Limits) -> InvalidMessage {
    let invalid = InvalidMessage::new(Fault::NotUtf8, Some(valid));
    let Some(Ok(text)) = bytes.get(..valid).map(std::str::from_utf8) else { return invalid };
    let mut scanner = Scanner::new(text, limits.max_depth);
    let (at, _) = scanner.peek();
    let mut envelope = Envelope::new(at);
    // The text is incomplete, so the scan fails, but it has recorded the members before that. In a batch, which is not an
    // object, there are none.
    let _ = envelope.scan(&mut scanner, limits);
    invalid.about(envelope.origin_before(text, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"m"}"#;

    fn refused(bytes: &[u8]) -> (ErrorCode, String) {
        let limits = Limits::default().max_batch_size(2).max_depth(4);
        let invalid = parse(bytes, &limits).unwrap_err();
        assert_eq!(invalid.request_id(), None);
        (invalid.code(), invalid.to_string())
    }

    fn batch_of(text: &str) -> Vec<Result<Message<'_>, InvalidMessage>> {
        match parse(text.as_bytes(), &Limits::default()).unwrap() {
            Incoming::Batch(messages) => messages,
            Incoming::Single(message) => panic!("{message:?} is not a batch"),
        }
    }

    #[test]
    fn a_batch_keeps_its_messages_apart() {
        let text = format!(r#" [ {NOTE} , 5, {{"jsonrpc":"2.0","id":7}} ] "#);
        let messages = batch_of(&text);
        assert!(matches!(messages[0], Ok(Message::Notification(_))));
        let number = messages[1].as_ref().unwrap_err();
        assert_eq!(number.fault(), &Fault::NotAnObject { found: "a number" });
        let request = messages[2].as_ref().unwrap_err();
        assert_eq!(request.fault(), &Fault::NoKind);
        assert_eq!(request.request_id(), Some(&7_u32.into()));
    }

    #[test]
    fn a_batch_fails_as_a_whole() {
        assert_eq!(refused(b"[]"), (ErrorCode::INVALID_REQUEST, "a batch must hold a message (byte 0)".into()));
        assert_eq!(
            refused(format!("[{NOTE},{NOTE},{NOTE}]").as_bytes()),
            (ErrorCode::INVALID_REQUEST, "a batch may hold 2 messages at most (byte 0)".into())
        );
        let broken = format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"m"}},{NOTE}"#);
        assert_eq!(refused(broken.as_bytes()).0, ErrorCode::PARSE_ERROR);
        let deep = r#"[{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[]]}}]"#;
        assert_eq!(refused(deep.as_bytes()).0, ErrorCode::INVALID_REQUEST);
    }

    #[test]
    fn other_texts_say_what_they_are() {
        for (bytes, code, message) in [
            (&b""[..], -32700, "expected a value, found the end of the text (byte 0)"),
            (b"x", -32700, "expected a value, found `x` (byte 0)"),
            (b" 5 ", -32600, "a message must be an object, found a number (byte 1)"),
            (b"null x", -32700, "expected the end of the text, found `x` (byte 5)"),
            (b"{\"a\":\"\xff\"}", -32700, "the text is not UTF-8 (byte 6)"),
            (b"\xef\xbb\xbf{}", -32700, "the text begins with a byte order mark (byte 0)"),
            (b"{\"a\":[[[[]]]]}", -32600, "the text nests deeper than 4 levels (byte 8)"),
        ] {
            assert_eq!(refused(bytes), (ErrorCode::new(code), message.to_owned()));
        }
    }
}
