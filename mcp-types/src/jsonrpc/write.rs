//! Serializes messages into a buffer.
//!
//! Each function appends one message on a single line, and leaves the buffer unchanged if it fails.

use serde::Serialize;
use serde_json::Error;

use crate::json::write::write_json;
use crate::{ErrorObject, Method, RequestId, Revision};

/// How an error response is serialized if the id of the request could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a member is absent or null")]
pub enum UnknownId {
    /// Omits `id`, as since revision 2025-11-25.
    Omit,
    /// Sends `null`, as in earlier revisions, whose schemas require an `id`.
    Null,
}

impl UnknownId {
    /// Returns the representation in a revision.
    #[must_use]
    pub fn for_revision(revision: Revision) -> Self {
        if revision < Revision::V2025_11_25 { Self::Null } else { Self::Omit }
    }
}

/// Appends a request.
///
/// # Errors
///
/// Returns an error if the parameters do not serialize to an object.
pub fn write_request<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &Method,
    params: Option<&P>,
) -> Result<(), Error> {
    append(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write_json(out, id)?;
        write_call(out, method, params)
    })
}

/// Appends a notification.
///
/// # Errors
///
/// Returns an error if the parameters do not serialize to an object.
pub fn write_notification<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &Method,
    params: Option<&P>,
) -> Result<(), Error> {
    append(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        write_call(out, method, params)
    })
}

/// Appends a success response.
///
/// # Errors
///
/// Returns an error if the result does not serialize to an object.
// M-5
pub fn write_result<R: Serialize + ?Sized>(out: &mut Vec<u8>, id: &RequestId, result: &R) -> Result<(), Error> {
    append(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write_json(out, id)?;
        write_object(out, "result", result)?;
        out.push(b'}');
        Ok(())
    })
}

/// Appends an error response. `id` is `None` if the id of the request could not be read; `unknown_id` applies then.
///
/// # Errors
///
/// Returns an error if serialization fails, which does not happen for a valid `ErrorObject`.
pub fn write_error(
    out: &mut Vec<u8>,
    id: Option<&RequestId>,
    error: &ErrorObject,
    unknown_id: UnknownId,
) -> Result<(), Error> {
    append(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        match (id, unknown_id) {
            (Some(id), _) => {
                out.extend_from_slice(br#","id":"#);
                write_json(out, id)?;
            }
            (None, UnknownId::Null) => out.extend_from_slice(br#","id":null"#),
            (None, UnknownId::Omit) => {}
        }
        write_object(out, "error", error)?;
        out.push(b'}');
        Ok(())
    })
}

/// Writes the members that requests and notifications share, and the closing brace.
fn write_call<P: Serialize + ?Sized>(out: &mut Vec<u8>, method: &Method, params: Option<&P>) -> Result<(), Error> {
    out.extend_from_slice(br#","method":"#);
    write_json(out, method)?;
    if let Some(params) = params {
        write_object(out, "params", params)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_object<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) -> Result<(), Error> {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    let start = out.len();
    write_json(out, value)?;
    // Whether a type is an object on the wire is known only now.
    if out.get(start) == Some(&b'{') {
        Ok(())
    } else {
        Err(serde::ser::Error::custom(format_args!("`{name}` must be an object")))
    }
}

/// Appends, or leaves the buffer unchanged.
pub(super) fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
    let start = out.len();
    let written = write(out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::RawObject;
    use crate::jsonrpc::{Limits, Message};

    fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> String {
        let mut out = b"before\n".to_vec();
        write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix("before\n").unwrap().to_owned()
    }

    // covers: AMB-15, B-13
    #[test]
    fn revisions_differ_about_unknown_ids() {
        assert_eq!(UnknownId::for_revision(Revision::V2025_06_18), UnknownId::Null);
        assert_eq!(UnknownId::for_revision(Revision::V2025_11_25), UnknownId::Omit);
        assert_eq!(UnknownId::for_revision(Revision::V2026_07_28), UnknownId::Omit);
    }

    #[test]
    fn messages_have_the_members_of_their_kind() {
        let id = RequestId::from(1_u32);
        let method = Method::from("m");
        assert_eq!(
            written(|out| write_request(out, &id, &method, Some(&json!({"a": 1})))),
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#
        );
        assert_eq!(
            written(|out| write_notification(out, &method, None::<&RawObject>)),
            r#"{"jsonrpc":"2.0","method":"m"}"#
        );
        assert_eq!(
            written(|out| write_result(out, &"x\n".into(), &RawObject::empty())),
            r#"{"jsonrpc":"2.0","id":"x\n","result":{}}"#
        );
    }

    #[test]
    fn an_unknown_id_is_written_as_the_revision_wants() {
        // AMB-15
        let error = ErrorObject::parse_error("no");
        let text = r#""error":{"code":-32700,"message":"no"}}"#;
        for (id, unknown, start) in [
            (None, UnknownId::Omit, r#"{"jsonrpc":"2.0","#),
            (None, UnknownId::Null, r#"{"jsonrpc":"2.0","id":null,"#),
            (Some(7_u32), UnknownId::Null, r#"{"jsonrpc":"2.0","id":7,"#),
        ] {
            let id = id.map(RequestId::from);
            assert_eq!(written(|out| write_error(out, id.as_ref(), &error, unknown)), format!("{start}{text}"));
        }
    }

    #[test]
    fn raw_payloads_end_up_on_one_line() {
        // IO-1
        let raw: &RawValue = serde_json::from_str("{\r\n\"a\":\n\"b\\n\"}").unwrap();
        let text = written(|out| write_result(out, &1_u32.into(), raw));
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":1,"result":{  "a": "b\n"}}"#);
    }

    #[test]
    fn failure_leaves_the_buffer_alone() {
        let mut out = b"before".to_vec();
        let id = RequestId::from(1_u32);
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert!(write_result(&mut out, &id, &unwritable).is_err());
        let error = write_request(&mut out, &id, &"m".into(), Some(&[1])).unwrap_err();
        assert_eq!(error.to_string(), "`params` must be an object");
        assert_eq!(out, b"before");
    }

    #[test]
    fn what_is_written_is_read() {
        let limits = Limits::default();
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x": [1]}}"#;
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes(), &limits) else {
            panic!("{text}");
        };
        let copy = written(|out| write_request(out, &request.id, &request.method, request.params.as_ref()));
        assert_eq!(copy, text);
    }
}
