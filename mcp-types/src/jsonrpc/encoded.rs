//! Serialized messages.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde_json::Error;

use super::write::{UnknownId, append, write_error, write_notification, write_request, write_result};
use crate::json::write::{join_lines, write_json, write_raw};
use crate::{ErrorObject, Method, ObjectRef, ProgressToken, RawObject, RequestId};

/// A serialized message: JSON on a single line.
///
/// Raw JSON of an application may contain line breaks, which would split the message in a transport that frames messages
/// by lines. Therefore transports accept this type only, and all constructors replace line breaks between tokens by
/// spaces; in strings they are escaped.
///
/// ```
/// use mcp_types::jsonrpc::EncodedMessage;
/// use mcp_types::{Method, RawObject, RequestId};
///
/// let params = RawObject::parse("{\n  \"name\": \"add\"\n}")?;
/// let message = EncodedMessage::request(&RequestId::from(1_i64), &Method::TOOLS_CALL, Some(&params))?;
/// assert!(!message.contains(&b'\n'));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedMessage(Vec<u8>);

impl EncodedMessage {
    /// Serializes a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters do not serialize to an object.
    pub fn request<P: Serialize + ?Sized>(id: &RequestId, method: &Method, params: Option<&P>) -> Result<Self, Error> {
        Self::write(USUAL_SIZE, |out| write_request(out, id, method, params))
    }

    /// Serializes a request and adds `_meta` to its parameters, which are copied without being parsed.
    ///
    /// The parameters must not have a `_meta` member. If there is neither a token nor metadata, none is added.
    ///
    /// # Errors
    ///
    /// Returns an error only if the serializer fails, which no id, method or token causes today.
    pub fn request_with_meta<'a>(
        id: &RequestId,
        method: &Method,
        params: impl Into<ObjectRef<'a>>,
        token: Option<&ProgressToken>,
        meta: Option<&RawObject>,
    ) -> Result<Self, Error> {
        let (members, meta) = (members(params.into()), meta.map(|meta| members(meta.into())).unwrap_or_default());
        Self::write(members.len() + meta.len() + FRAME, |out| {
            append(out, |out| {
                write_request::<RawObject>(out, id, method, None)?;
                out.pop();
                out.extend_from_slice(br#","params":{"#);
                if token.is_some() || !meta.is_empty() {
                    out.extend_from_slice(br#""_meta":{"#);
                    if let Some(token) = token {
                        out.extend_from_slice(br#""progressToken":"#);
                        write_json(out, token)?;
                        out.extend_from_slice(if meta.is_empty() { b"" } else { b"," });
                    }
                    write_raw(out, meta);
                    out.extend_from_slice(if members.is_empty() { b"}" } else { b"}," });
                }
                write_raw(out, members);
                out.extend_from_slice(b"}}");
                Ok(())
            })
        })
    }

    /// Serializes a notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters do not serialize to an object.
    pub fn notification<P: Serialize + ?Sized>(method: &Method, params: Option<&P>) -> Result<Self, Error> {
        Self::write(USUAL_NOTIFICATION, |out| write_notification(out, method, params))
    }

    /// Serializes a success response.
    ///
    /// # Errors
    ///
    /// Returns an error if the result does not serialize to an object.
    pub fn result<R: Serialize + ?Sized>(id: &RequestId, result: &R) -> Result<Self, Error> {
        Self::write(USUAL_SIZE, |out| write_result(out, id, result))
    }

    /// Serializes an error response. `id` is `None` if the id of the request could not be read; `unknown_id` applies
    /// then.
    ///
    /// # Errors
    ///
    /// Returns an error if serialization fails, which does not happen for a valid `ErrorObject`.
    pub fn error(id: Option<&RequestId>, error: &ErrorObject, unknown_id: UnknownId) -> Result<Self, Error> {
        Self::write(0, |out| write_error(out, id, error, unknown_id))
    }

    /// Joins messages into a batch, which only revision 2025-03-26 allows. Returns `None` if there are no messages.
    #[must_use]
    pub fn batch<'a>(messages: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut out = Vec::new();
        for message in messages {
            out.push(if out.is_empty() { b'[' } else { b',' });
            out.extend_from_slice(message);
        }
        (!out.is_empty()).then(|| {
            out.push(b']');
            Self(out)
        })
    }

    /// Creates a message from bytes, such as those of a store; line breaks become spaces.
    #[must_use]
    pub fn from_bytes(mut bytes: Vec<u8>) -> Self {
        join_lines(&mut bytes);
        Self(bytes)
    }

    /// Adds `_meta` to the result or the parameters, which must be present and must not have it yet.
    pub fn add_meta(&mut self, meta: &RawObject) {
        self.close_with_meta(|out| {
            write_raw(out, meta.as_str());
            Ok(())
        });
    }

    /// Returns a copy with a `_meta` of one member in its result or parameters, which must be present and must not have
    /// `_meta` yet.
    #[must_use]
    pub fn clone_with_meta(&self, name: &str, value: &impl Serialize) -> Self {
        let mut out = Vec::with_capacity(self.len() + name.len() + FRAME);
        out.extend_from_slice(self);
        let mut copy = Self(out);
        copy.close_with_meta(|out| {
            out.push(b'{');
            write_json(out, name)?;
            out.push(b':');
            write_json(out, value)?;
            out.push(b'}');
            Ok(())
        });
        copy
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Converts the message into its JSON text.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Releases unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn write(capacity: usize, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<Self, Error> {
        let mut out = Vec::with_capacity(capacity);
        write(&mut out)?;
        Ok(Self(out))
    }

    /// Appends `_meta` to the object at the end; if it cannot be serialized, the message does not change.
    fn close_with_meta(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) {
        if !self.0.ends_with(b"}}") {
            return;
        }
        self.0.truncate(self.0.len() - 2);
        let is_empty = self.0.trim_ascii_end().ends_with(b"{");
        // If it fails, nothing was appended.
        let _ = append(&mut self.0, |out| {
            out.extend_from_slice(if is_empty { b"\"_meta\":" } else { b",\"_meta\":" });
            write(out)
        });
        self.0.extend_from_slice(b"}}");
    }
}

/// Returns the members of an object, without the braces and surrounding whitespace.
fn members(object: ObjectRef<'_>) -> &str {
    let inside = object.as_str().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.unwrap_or_default().trim_ascii()
}

/// The initial capacity, sufficient for most results.
const USUAL_SIZE: usize = 512;

/// The same for notifications, which are short.
const USUAL_NOTIFICATION: usize = 192;

/// The capacity for the rest of a request: member names, the method, numbers.
const FRAME: usize = 160;

impl Deref for EncodedMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Shows the length only: the content may be long or secret.
impl fmt::Debug for EncodedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedMessage({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::jsonrpc::{Limits, parse};

    const LINES: &str = "{\r\n\"a\":\n\"b\\n\"\r}";

    fn raw() -> RawObject {
        RawObject::parse(LINES).unwrap()
    }

    /// Whatever is put into a message, and by whichever way, it stays on one line and means the same.
    // covers: SEC-1, IO-1, IO-21
    #[test]
    fn sec_1_every_way_to_make_a_message_makes_one_line() {
        let (id, method) = (RequestId::from(1_i64), Method::from("m"));
        let token = ProgressToken::from(7_i64);
        let foreign: &RawValue = serde_json::from_str(LINES).unwrap();
        let error = ErrorObject::internal_error("no").raw_data(RawObject::parse(LINES).unwrap().into());
        let with_meta = |params: &RawObject, token, meta| {
            EncodedMessage::request_with_meta(&id, &method, params, token, meta).unwrap()
        };
        let mut added = EncodedMessage::result(&id, &raw()).unwrap();
        added.add_meta(&raw());
        let plain = EncodedMessage::notification(&method, Some(&RawObject::empty())).unwrap();
        let batch = EncodedMessage::batch([&added, &plain]).unwrap();
        for (message, has_lines) in [
            (EncodedMessage::request(&id, &method, Some(&raw())).unwrap(), true),
            (EncodedMessage::request(&id, &method, Some(foreign)).unwrap(), true),
            (with_meta(&raw(), Some(&token), Some(&raw())), true),
            (with_meta(&raw(), None, None), true),
            (with_meta(&RawObject::empty(), None, Some(&raw())), true),
            (EncodedMessage::notification(&method, Some(&raw())).unwrap(), true),
            (EncodedMessage::result(&id, &raw()).unwrap(), true),
            (EncodedMessage::error(Some(&id), &error, UnknownId::Omit).unwrap(), true),
            (plain.clone_with_meta("x", &raw()), true),
            (EncodedMessage::from_bytes(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{LINES}}}"#).into()), true),
            (plain, false),
            (added, true),
            (batch, true),
        ] {
            assert!(!message.contains(&b'\n') && !message.contains(&b'\r'), "{message:?}");
            assert!(parse(&message, &Limits::default()).is_ok(), "{message:?}");
            let text = String::from_utf8(message.into_bytes()).unwrap();
            assert_eq!(text.contains(r#""b\n""#), has_lines, "strings keep their line breaks: {text}");
        }
    }

    #[test]
    fn metadata_is_added_to_parameters() {
        let (id, method, token) = (RequestId::from(1_i64), Method::from("m"), ProgressToken::from(7_i64));
        let [some, none] = [r#"{ "a": 1 }"#, "{ }"].map(|text| RawObject::parse(text).unwrap());
        let meta = RawObject::parse(r#"{"b":2}"#).unwrap();
        for (params, token, meta, expected) in [
            (&some, None, None, r#"{"a": 1}"#),
            (&none, None, Some(&none), "{}"),
            (&some, Some(&token), None, r#"{"_meta":{"progressToken":7},"a": 1}"#),
            (&none, Some(&token), Some(&meta), r#"{"_meta":{"progressToken":7,"b":2}}"#),
            (&some, None, Some(&meta), r#"{"_meta":{"b":2},"a": 1}"#),
        ] {
            let message = EncodedMessage::request_with_meta(&id, &method, params, token, meta).unwrap();
            let text = String::from_utf8(message.into_bytes()).unwrap();
            assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{expected}}}"#));
        }
    }

    #[test]
    fn metadata_is_added_to_what_is_written() {
        let (id, method) = (RequestId::from(1_i64), Method::from("m"));
        let mut result = EncodedMessage::result(&id, &RawObject::empty()).unwrap();
        result.add_meta(&RawObject::parse(r#"{"a":1}"#).unwrap());
        assert_eq!(&*result, br#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1}}}"#);
        let message = EncodedMessage::notification(&method, Some(&RawObject::parse(r#"{"b":2}"#).unwrap())).unwrap();
        let message = message.clone_with_meta("c", &id);
        assert_eq!(&*message, br#"{"jsonrpc":"2.0","method":"m","params":{"b":2,"_meta":{"c":1}}}"#);
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(message.clone_with_meta("c", &unwritable), message, "what cannot be written is left out");
    }

    // covers: RB-26
    #[test]
    fn what_a_message_says_is_not_shown() {
        let message = EncodedMessage::from_bytes(br#"{"token":"secret"}"#.to_vec());
        assert_eq!(format!("{message:?}"), "EncodedMessage(18 bytes)");
    }

    // covers: B-8, B-109
    #[test]
    fn a_batch_holds_messages() {
        assert_eq!(EncodedMessage::batch([]), None);
        let message = EncodedMessage::from_bytes(b"{}".to_vec());
        assert_eq!(&*EncodedMessage::batch([&message, &message]).unwrap(), b"[{},{}]");
    }
}
