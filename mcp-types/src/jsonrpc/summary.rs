//! The kind and the id of a message that is too long to be buffered.

use crate::RequestId;

/// The kind and the id of a message, as found by an [`EnvelopeScan`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeSummary {
    /// The kind of the message.
    pub kind: EnvelopeKind,
    /// The id, if there is one of reasonable length.
    pub id: Option<RequestId>,
}

/// The kind of a message, as determined by its members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other")]
pub enum EnvelopeKind {
    /// A JSON object without the members of any message.
    #[default]
    Unknown,
    /// Neither a JSON object nor a batch.
    NotAnObject,
    /// An array that begins with a JSON object.
    Batch,
    /// A request if it has an id, and a notification otherwise.
    Call,
    /// A response.
    Response,
}

/// Finds the kind and the id of a message incrementally, in constant memory.
///
/// Transports use it for messages that exceed their size limit, so that they can send an error response with the id. The
/// grammar is checked only as far as needed to find the members of the message.
///
/// ```
/// use mcp_types::jsonrpc::{EnvelopeKind, EnvelopeScan};
///
/// let mut scan = EnvelopeScan::default();
/// for piece in [r#"{"jsonrpc":"2.0","result":{"id":"#, r#""no"},"i"#, r#"d":7}"#] {
///     scan.feed(piece.as_bytes());
/// }
/// let summary = scan.finish();
/// assert_eq!((summary.kind, summary.id), (EnvelopeKind::Response, Some(7_u32.into())));
/// ```
#[derive(Debug, Clone, Default)]
pub struct EnvelopeScan {
    at: Place,
    /// Whether the previous byte was a backslash in a string.
    is_escaped: bool,
    /// The nesting depth inside of the message.
    depth: usize,
    /// Whether the value that is being scanned is that of the id.
    is_id: bool,
    /// The name of a member or the value of the id, as far as it was scanned.
    token: Vec<u8>,
    summary: EnvelopeSummary,
}

/// The position of the next byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before the message.
    #[default]
    Start,
    /// Before the first message of a batch.
    BatchStart,
    /// Between members.
    Between,
    /// In the name of a member.
    Name,
    /// Between the name of a member and its value.
    Colon,
    /// In a number or a literal.
    Scalar,
    /// In a string.
    Text,
    /// In an object or an array inside of the message.
    Inside,
    /// In a string inside of an object or an array.
    InsideText,
    /// After everything that is needed.
    End,
}

/// The maximum number of bytes of an id, more than any other limit for ids.
const MAX_ID_LEN: usize = 4096;

/// The maximum number of bytes of a name; sufficient for `method` with all characters escaped.
const MAX_NAME_LEN: usize = 64;

impl EnvelopeScan {
    /// Scans the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while self.at != Place::End
            && let Some((&byte, rest)) = bytes.split_first()
        {
            if self.at == Place::Inside {
                bytes = self.skip(bytes, b"\"{}[]");
            } else if self.at == Place::InsideText || (self.at == Place::Text && !self.is_id) {
                bytes = self.skip(bytes, b"\"\\");
            } else {
                self.step(byte);
                bytes = rest;
            }
        }
    }

    /// Returns whether further bytes cannot change the result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.at == Place::End
    }

    /// Returns the result at the end of the message.
    #[must_use]
    pub fn finish(mut self) -> EnvelopeSummary {
        if matches!(self.at, Place::Start | Place::BatchStart) {
            self.summary.kind = EnvelopeKind::NotAnObject;
        }
        self.summary
    }

    /// Skips to the byte after the next one of `stops`.
    fn skip<'a>(&mut self, bytes: &'a [u8], stops: &[u8]) -> &'a [u8] {
        // The byte after a backslash is part of the string.
        if std::mem::take(&mut self.is_escaped) {
            return bytes.get(1..).unwrap_or_default();
        }
        let Some(stop) = bytes.iter().position(|byte| stops.contains(byte)) else { return &[] };
        match (bytes.get(stop), self.at) {
            (Some(b'\\'), _) => self.is_escaped = true,
            (Some(b'"'), Place::Inside) => self.at = Place::InsideText,
            (Some(b'"'), Place::InsideText) => self.at = Place::Inside,
            (Some(b'"'), _) => self.at = Place::Between,
            (Some(b'{' | b'['), _) => self.depth += 1,
            _ => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.at = Place::Between;
                }
            }
        }
        bytes.get(stop + 1..).unwrap_or_default()
    }

    fn step(&mut self, byte: u8) {
        let is_blank = byte.is_ascii_whitespace();
        match (self.at, byte) {
            (Place::Start | Place::BatchStart | Place::Between | Place::Colon, _) if is_blank => {}
            (Place::Start, b'{') => self.at = Place::Between,
            (Place::Start, b'[') => self.at = Place::BatchStart,
            (Place::Start | Place::BatchStart, _) => {
                let is_batch = (self.at, byte) == (Place::BatchStart, b'{');
                self.summary.kind = if is_batch { EnvelopeKind::Batch } else { EnvelopeKind::NotAnObject };
                self.at = Place::End;
            }
            (Place::Between, b',') | (Place::Colon, b':') => {}
            (Place::Between, b'"') => self.begin(byte, Place::Name),
            // The end of the object, or not JSON.
            (Place::Between, _) => self.at = Place::End,
            (Place::Name, _) => {
                if self.takes_end_of_text(byte, MAX_NAME_LEN) {
                    self.named();
                }
            }
            (Place::Colon, b'"') => self.begin(byte, Place::Text),
            (Place::Colon, b'{' | b'[') => (self.at, self.depth) = (Place::Inside, 1),
            (Place::Colon, _) => self.begin(byte, Place::Scalar),
            (Place::Text, _) => {
                if self.takes_end_of_text(byte, MAX_ID_LEN) {
                    self.at = Place::Between;
                    self.identified();
                }
            }
            (Place::Scalar, _) if is_blank || matches!(byte, b',' | b'}') => {
                self.at = if byte == b'}' { Place::End } else { Place::Between };
                self.identified();
            }
            (Place::Scalar, _) => self.keep(byte, MAX_ID_LEN),
            (Place::Inside | Place::InsideText | Place::End, _) => {}
        }
    }

    fn begin(&mut self, byte: u8, at: Place) {
        self.token.clear();
        self.token.push(byte);
        self.at = at;
    }

    /// Stores a byte of a string; returns whether it is the last one.
    fn takes_end_of_text(&mut self, byte: u8, most: usize) -> bool {
        self.keep(byte, most);
        if std::mem::take(&mut self.is_escaped) {
            return false;
        }
        self.is_escaped = byte == b'\\';
        byte == b'"'
    }

    fn keep(&mut self, byte: u8, most: usize) {
        // One byte more than the maximum marks the token as too long.
        if self.token.len() <= most {
            self.token.push(byte);
        }
    }

    /// Handles the name of a member.
    fn named(&mut self) {
        self.at = Place::Colon;
        self.is_id = false;
        if self.token.len() > MAX_NAME_LEN {
            return;
        }
        let Ok(name) = serde_json::from_slice::<String>(&self.token) else { return };
        let kind = match name.as_str() {
            "id" => return self.is_id = true,
            "method" | "params" => EnvelopeKind::Call,
            "result" | "error" => EnvelopeKind::Response,
            _ => return,
        };
        if self.summary.kind == EnvelopeKind::Unknown {
            self.summary.kind = kind;
        }
        self.decide();
    }

    /// Handles a value, if it is that of the id.
    fn identified(&mut self) {
        if std::mem::take(&mut self.is_id) && self.summary.id.is_none() && self.token.len() <= MAX_ID_LEN {
            self.summary.id = serde_json::from_slice(&self.token).ok();
            self.decide();
        }
    }

    fn decide(&mut self) {
        if self.summary.id.is_some() && self.summary.kind != EnvelopeKind::Unknown {
            self.at = Place::End;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in pieces of each length, which must not matter.
    fn summary(text: &str) -> (EnvelopeKind, Option<RequestId>) {
        let read = |size: usize| {
            let mut scan = EnvelopeScan::default();
            for piece in text.as_bytes().chunks(size) {
                scan.feed(piece);
                assert!(scan.token.capacity() <= 2 * MAX_ID_LEN, "{}", scan.token.capacity());
            }
            scan.finish()
        };
        let whole = read(text.len().max(1));
        for size in 1..text.len().min(20) {
            assert_eq!(read(size), whole, "{size}: {text}");
        }
        (whole.kind, whole.id)
    }

    fn id(id: u32) -> Option<RequestId> {
        Some(id.into())
    }

    #[test]
    fn the_id_is_found_before_and_behind_other_members() {
        use EnvelopeKind::{Call, Response};
        for (text, kind, found) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, Call, id(1)),
            (r#" { "method" : "m" , "params" : { "id" : 2 , "a" : [ { "id" : 3 } ] } , "id" : 4 } "#, Call, id(4)),
            (r#"{"result":{"id":5,"text":"\"id\":6,{[\\"},"id":"x\"y"}"#, Response, Some("x\"y".into())),
            (r#"{"error":{"code":1},"id":7}"#, Response, id(7)),
            (r#"{"\u0069d":8,"m\u0065thod":"x"}"#, Call, id(8)),
            (r#"{"id":"a","id":"b","result":1}"#, Response, Some("a".into())),
            (r#"{"params":[],"id":-9}"#, Call, Some((-9).into())),
        ] {
            assert_eq!(summary(text), (kind, found), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_made_up() {
        use EnvelopeKind::{Batch, Call, NotAnObject, Response, Unknown};
        for (text, kind) in [
            ("", NotAnObject),
            ("   ", NotAnObject),
            ("xxx", NotAnObject),
            (r#"[{"id":1,"method":"m"}]"#, Batch),
            (" [ {", Batch),
            ("[", NotAnObject),
            ("[]", NotAnObject),
            ("[[{", NotAnObject),
            ("[INFO] {", NotAnObject),
            ("{}", Unknown),
            ("{", Unknown),
            (r#"{x"id":1,"method":"m"}"#, Unknown),
            (r#"{"a":{"id":1,"method":"m"}}"#, Unknown),
            (r#"{"method":"m","params":{"id":1}}"#, Call),
            (r#"{"method":"id","a":"method"}"#, Call),
            (r#"{"id":null,"error":{}}"#, Response),
            (r#"{"id":1.5,"result":{}}"#, Response),
            (r#"{"id":{"id":1},"result":{}}"#, Response),
            (r#"{"result":{}} {"id":1}"#, Response),
            (r#"{"result":{"#, Response),
            // The rest of the number may be missing.
            (r#"{"result":{},"id":12"#, Response),
        ] {
            assert_eq!(summary(text), (kind, None), "{text}");
        }
        assert_eq!(summary(&format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(MAX_ID_LEN))), (Call, None));
        assert_eq!(summary(&format!(r#"{{"{}":1,"method":"m"}}"#, "x".repeat(100_000))), (Call, None));
    }

    #[test]
    fn it_is_complete_as_soon_as_it_can_be() {
        for (text, is_complete) in [
            ("x", true),
            ("[", false),
            ("[{", true),
            ("[1", true),
            (r#"{"id":1"#, false),
            (r#"{"id":1,"resul"#, false),
            (r#"{"id":1,"result""#, true),
            (r#"{"params":{"a":"#, false),
            (r#"{"params":{"a":1},"id":2"#, false),
            (r#"{"params":{"a":1},"id":2}"#, true),
            (r#"{"a":1}"#, true),
        ] {
            let mut scan = EnvelopeScan::default();
            scan.feed(text.as_bytes());
            assert_eq!(scan.is_complete(), is_complete, "{text}");
        }
    }
}
