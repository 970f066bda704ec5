//! The headers that repeat parts of a modern request's body, for intermediaries that do not read bodies.
//!
//! They must match the body, so that a gateway that routes by them sees the same request as the server.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_types::jsonrpc::{InvalidPayload, Limits, Payload, Request};
use mcp_types::{ErrorCode, ErrorObject, ProtocolVersion, Revision};

use super::header_names::{METHOD, NAME, PARAM_PREFIX};
use super::request_headers::Occurrence;
use crate::header_encoding;

/// The error of a header that does not match the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header `{header}` {kind}")]
pub(crate) struct HeaderMismatch {
    header: Cow<'static, str>,
    kind: HeaderMismatchKind,
}

/// How a header does not match the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderMismatchKind {
    #[error("is missing: it must repeat the value of the body")]
    Missing,
    #[error("is repeated")]
    Repeated,
    /// The value has characters beyond visible ASCII, or invalid Base64.
    #[error("has invalid characters or invalid Base64")]
    Malformed,
    #[error("differs from the body")]
    Differs,
}

impl HeaderMismatch {
    fn new(header: impl Into<Cow<'static, str>>, kind: HeaderMismatchKind) -> Self {
        Self { header: header.into(), kind }
    }

    pub(super) fn of_version(kind: HeaderMismatchKind) -> Self {
        Self::new("MCP-Protocol-Version", kind)
    }

    /// Returns the JSON-RPC error for the client.
    pub(crate) fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(ErrorCode::HEADER_MISMATCH, self.to_string())
    }
}

/// Returns the trimmed value of a header that must not be repeated.
///
/// # Errors
///
/// Returns an error if the header is repeated, or has characters beyond visible ASCII, space and tab.
// H-51
pub(crate) fn single_value<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, HeaderMismatchKind> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(HeaderValue::as_bytes);
    if values.next().is_some() { Err(HeaderMismatchKind::Repeated) } else { value.map(text).transpose() }
}

impl<'a> Occurrence<'a> {
    /// Returns the value of a header that must not be repeated.
    ///
    /// # Errors
    ///
    /// Returns an error if the header is repeated.
    fn bytes(self) -> Result<Option<&'a [u8]>, HeaderMismatchKind> {
        match self {
            Self::Missing => Ok(None),
            Self::Once(value) => Ok(Some(value.as_bytes())),
            Self::Repeated => Err(HeaderMismatchKind::Repeated),
        }
    }
}

/// Returns the trimmed text of a header value.
fn text(value: &[u8]) -> Result<&str, HeaderMismatchKind> {
    // A header value has no ASCII control characters except tab.
    match std::str::from_utf8(value) {
        Ok(value) if value.is_ascii() => Ok(value.trim_ascii()),
        Ok(_) | Err(_) => Err(HeaderMismatchKind::Malformed),
    }
}

/// The [`VERSION`](super::header_names::VERSION) header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionHeader {
    /// There is none.
    Missing,
    /// A revision of the protocol.
    Known(Revision),
    /// A version that this implementation does not know.
    Unknown(Box<str>),
    /// The header is repeated, or has invalid characters.
    Invalid(HeaderMismatch),
}

impl VersionHeader {
    /// Reads the header.
    pub(crate) fn read(header: Occurrence<'_>) -> Self {
        let version = match header.bytes() {
            Ok(None) => return Self::Missing,
            Ok(Some(version)) => version,
            Err(kind) => return Self::Invalid(HeaderMismatch::of_version(kind)),
        };
        // A revision is compared as it is, the latest first: few clients send anything else.
        let known = Revision::ALL.into_iter().rev().find(|revision| revision.as_str().as_bytes() == version);
        if let Some(revision) = known {
            return Self::Known(revision);
        }
        match text(version) {
            Ok(version) => version.parse().map_or_else(|_| Self::Unknown(version.into()), Self::Known),
            Err(kind) => Self::Invalid(HeaderMismatch::of_version(kind)),
        }
    }

    /// Returns the revision, if the header names one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        if let Self::Known(revision) = self { Some(*revision) } else { None }
    }

    /// Checks that the header matches the version of a modern request.
    ///
    /// # Errors
    ///
    /// Returns an error if it is missing, invalid or differs.
    // H-41, H-42, H-45
    pub(crate) fn check(&self, version: &ProtocolVersion) -> Result<(), HeaderMismatch> {
        let kind = match self {
            Self::Known(known) if known.as_str() == version.as_str() => return Ok(()),
            Self::Unknown(unknown) if **unknown == *version.as_str() => return Ok(()),
            Self::Known(_) | Self::Unknown(_) => HeaderMismatchKind::Differs,
            Self::Missing => HeaderMismatchKind::Missing,
            Self::Invalid(fault) => return Err(fault.clone()),
        };
        Err(HeaderMismatch::of_version(kind))
    }
}

/// Checks that [`METHOD`] and [`NAME`] match the body, of which `name` is the [name](requested_name).
///
/// # Errors
///
/// Returns an error for the first header that is missing or differs.
// H-46, H-47, H-52, H-55
pub(crate) fn check_method_and_name(
    headers: &HeaderMap,
    request: &Request<'_>,
    name: Option<&str>,
) -> Result<(), HeaderMismatch> {
    let (mut method, mut repeated_name) = (Occurrence::Missing, Occurrence::Missing);
    // One pass costs less than to look up both.
    for (header, value) in headers {
        if *header == METHOD {
            method.add(value);
        } else if *header == NAME {
            repeated_name.add(value);
        }
    }
    let method = method.bytes().and_then(|value| compare_method(value, request.method.as_str()));
    method.map_err(|kind| HeaderMismatch::new("Mcp-Method", kind))?;
    let Some(json) = name else { return Ok(()) };
    let name = repeated_name.bytes().and_then(|value| compare_name(value, json));
    name.map_err(|kind| HeaderMismatch::new("Mcp-Name", kind))
}

fn compare_method(value: Option<&[u8]>, method: &str) -> Result<(), HeaderMismatchKind> {
    let value = value.ok_or(HeaderMismatchKind::Missing)?;
    // A value that is equal needs no decoding.
    if (value == method.as_bytes() && value.is_ascii()) || text(value)? == method {
        return Ok(());
    }
    Err(HeaderMismatchKind::Differs)
}

fn compare_name(value: Option<&[u8]>, json: &str) -> Result<(), HeaderMismatchKind> {
    let value = value.ok_or(HeaderMismatchKind::Missing)?;
    // A name that needs neither an encoding in the header nor an escape in the body is compared as it is.
    let is_plain_byte = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-'..=b'/' | b':');
    let name = json.as_bytes().strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\""));
    if name == Some(value) && value.iter().all(is_plain_byte) { Ok(()) } else { compare(text(value)?, json) }
}

/// Returns the JSON string that [`NAME`] has to repeat, if the request has one.
pub(crate) fn requested_name<'a>(request: &'a Request<'_>) -> Option<&'a str> {
    let member = request.method.name_member()?;
    let json = request.params.as_ref()?.get(member)?.get();
    json.starts_with('"').then_some(json)
}

/// Checks that the `Mcp-Param-*` header of a parameter matches the tool arguments.
///
/// `path` leads to the value in `arguments`, which is a JSON object.
///
/// # Errors
///
/// Returns an error if the header is missing or differs, or if it is present and the argument is not.
// H-53, H-54, H-77..H-79
pub(crate) fn check_param(
    headers: &HeaderMap,
    name: &str,
    path: &[String],
    arguments: &str,
) -> Result<(), HeaderMismatch> {
    let check = || {
        // The header name was checked when the tool was registered.
        let header = format!("{PARAM_PREFIX}{name}").try_into().map_err(|_| HeaderMismatchKind::Malformed)?;
        // An ambiguous argument must not count as absent.
        let argument = value_at(path, arguments).map_err(|_| HeaderMismatchKind::Differs)?;
        match (single_value(headers, &header)?, argument.filter(|argument| *argument != "null")) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(HeaderMismatchKind::Missing),
            (Some(_), None) => Err(HeaderMismatchKind::Differs),
            (Some(value), Some(argument)) => compare(value, argument),
        }
    };
    check().map_err(|kind| HeaderMismatch::new(format!("Mcp-Param-{name}"), kind))
}

/// Compares the encoded value of a header with a JSON value.
fn compare(value: &str, json: &str) -> Result<(), HeaderMismatchKind> {
    let text = header_encoding::decode(value).ok_or(HeaderMismatchKind::Malformed)?;
    if is_same(&text, json) { Ok(()) } else { Err(HeaderMismatchKind::Differs) }
}

/// Whether text equals a JSON value.
fn is_same(text: &str, json: &str) -> bool {
    if let Some(inner) = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        // A string without escapes is compared as it is.
        return if inner.contains('\\') {
            serde_json::from_str::<String>(json).is_ok_and(|string| string == text)
        } else {
            inner == text
        };
    }
    text == json || is_same_integer(text, json)
}

/// Compares integers by value: `42` equals `42.0`, within the exact range of a double.
// H-54, H-65
fn is_same_integer(one: &str, other: &str) -> bool {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    let read = |text: &str| serde_json::from_str::<f64>(text).ok().filter(|number| number.abs() <= MAX_SAFE_INTEGER);
    // JSON allows white space around a number, a header value does not.
    let is_bare = |text: &str| text.trim_ascii() == text;
    is_bare(one) && is_bare(other) && read(one).is_some_and(|one| read(other).is_some_and(|other| one == other))
}

/// Returns the JSON text at a path of members, or an error if a member on the path is repeated.
fn value_at<'a>(path: &[String], object: &'a str) -> Result<Option<&'a str>, InvalidPayload> {
    let limits = Limits::default().max_members(usize::MAX);
    let mut at = object;
    for name in path {
        if !at.starts_with('{') {
            return Ok(None);
        }
        match Payload::parse(at, &limits)?.get(name) {
            Some(value) => at = value.get(),
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::Message;

    use super::*;
    use crate::rules::request_headers::RequestHeaders;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).unwrap();
        all.iter().map(|(name, text)| (HeaderName::from_bytes(name.as_bytes()).unwrap(), value(text))).collect()
    }

    fn with_request<R>(method: &str, params: &str, test: impl FnOnce(&Request<'_>) -> R) -> R {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes(), &Limits::default()) else {
            panic!("{text}")
        };
        test(&request)
    }

    fn names(method: &str, params: &str, all: &[(&'static str, &str)]) -> Option<(String, HeaderMismatchKind)> {
        let checked = with_request(method, params, |request| {
            check_method_and_name(&headers(all), request, requested_name(request))
        });
        checked.err().map(|fault| (fault.header.into_owned(), fault.kind))
    }

    /// The header is there, once, and says the same.
    // covers: H-41, H-42, H-45, S3.6, S3.7
    #[test]
    fn versions_agree() {
        use HeaderMismatchKind as Kind;
        for (version, all, expected) in [
            ("2026-07-28", &[("MCP-Protocol-Version", "2026-07-28")][..], None),
            ("2026-07-28", &[("mcp-protocol-version", " 2026-07-28\t")], None),
            ("2026-07-28", &[], Some(Kind::Missing)),
            ("2026-07-28", &[("MCP-Protocol-Version", "2025-11-25")], Some(Kind::Differs)),
            ("v999", &[("MCP-Protocol-Version", "2026-07-28")], Some(Kind::Differs)),
            ("2026-07-28", &[("MCP-Protocol-Version", "2026-07-28"); 2], Some(Kind::Repeated)),
            ("2026-07-28", &[("MCP-Protocol-Version", "ü")], Some(Kind::Malformed)),
            ("2026-07-28", &[("MCP-Protocol-Version", "=?base64?MjAyNi0wNy0yOA==?=")], Some(Kind::Differs)),
            ("v999", &[("MCP-Protocol-Version", "v999")], None),
        ] {
            let checked = VersionHeader::read(RequestHeaders::read(&headers(all)).version).check(&version.into());
            assert_eq!(checked.err().map(|fault| fault.kind), expected, "{version} {all:?}");
        }
    }

    /// Method and name repeat the body, in plain text or in Base64.
    // covers: H-46, H-47, H-50..H-53, H-55, S3.F2, T-2
    #[test]
    fn names_agree() {
        use HeaderMismatchKind as Kind;
        let call = [("Mcp-Method", "tools/call")];
        let with = |name: &'static str| [call[0], ("Mcp-Name", name)];
        let fault = |header: &str, kind| Some((header.to_owned(), kind));
        assert_eq!(names("tools/list", "{}", &[("MCP-METHOD", "tools/list")]), None);
        assert_eq!(names("tools/list", "{}", &[]), fault("Mcp-Method", Kind::Missing));
        assert_eq!(names("tools/list", "{}", &[("Mcp-Method", "TOOLS/LIST")]), fault("Mcp-Method", Kind::Differs));
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("a")), None);
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("  a ")), None);
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("=?base64?YQ==?=")), None);
        assert_eq!(names("tools/call", r#"{"name":"gr\u00fc\u00df"}"#, &with("=?base64?Z3LDvMOf?=")), None);
        assert_eq!(names("tools/call", r#"{"name":"a\"b"}"#, &with("a\"b")), None);
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("A")), fault("Mcp-Name", Kind::Differs));
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("=?base64?YQ?=")), fault("Mcp-Name", Kind::Malformed));
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &with("ä")), fault("Mcp-Name", Kind::Malformed));
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &call), fault("Mcp-Name", Kind::Missing));
        let twice = [call[0], ("Mcp-Name", "a"), ("Mcp-Name", "b")];
        assert_eq!(names("tools/call", r#"{"name":"a"}"#, &twice), fault("Mcp-Name", Kind::Repeated));
        // A call without a name, or with one that is no text, is wrong in another way.
        assert_eq!(names("tools/call", "{}", &call), None);
        assert_eq!(names("tools/call", r#"{"name":5}"#, &call), None);
        let read = [("Mcp-Method", "resources/read"), ("Mcp-Name", "a:b")];
        assert_eq!(names("resources/read", r#"{"uri":"a:b"}"#, &read), None);
        assert_eq!(names("resources/read", r#"{"uri":"a:c"}"#, &read), fault("Mcp-Name", Kind::Differs));
        let task = [("Mcp-Method", "tasks/get"), ("Mcp-Name", "t")];
        assert_eq!(names("tasks/get", r#"{"taskId":"u"}"#, &task), fault("Mcp-Name", Kind::Differs));
        assert_eq!(names("tools/list", "{}", &[("Mcp-Method", "tools/list"), ("Mcp-Name", "x")]), None);
    }

    /// Parameters repeat the arguments, integers by their value.
    // covers: H-53, H-54, H-70, H-75..H-79, S3.F3
    #[test]
    fn parameters_agree() {
        use HeaderMismatchKind as Kind;
        let param = |path: &str, arguments: &str, value: &[&str]| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let all: Vec<_> = value.iter().map(|value| ("Mcp-Param-Region", *value)).collect();
            check_param(&headers(&all), "Region", &path, arguments).err().map(|fault| fault.kind)
        };
        let others: String = (0..5000).map(|number| format!("\"{number}\":0,")).collect();
        let crowded = format!(r#"{{{others}"region":"eu"}}"#);
        for (path, arguments, value, expected) in [
            ("region", r#"{"region":"eu"}"#, &["eu"][..], None),
            ("region", r#"{"region":"eu"}"#, &["=?base64?ZXU=?="], None),
            ("region", r#"{"region":"eu"}"#, &["EU"], Some(Kind::Differs)),
            ("region", r#"{"region":"eu"}"#, &["=?base64?ZXU?="], Some(Kind::Malformed)),
            ("region", r#"{"region":"eu"}"#, &["eu", "eu"], Some(Kind::Repeated)),
            ("region", r#"{"region":"eu"}"#, &[], Some(Kind::Missing)),
            ("region", r#"{"region":""}"#, &[""], None),
            ("region", r#"{"region":""}"#, &[], Some(Kind::Missing)),
            ("region", r#"{"region":null}"#, &[], None),
            ("region", "{}", &[], None),
            ("region", "{}", &["eu"], Some(Kind::Differs)),
            ("region", r#"{"region":null}"#, &["null"], Some(Kind::Differs)),
            ("region", r#"{"region":"null"}"#, &["null"], None),
            ("a.region", r#"{"region":"x","a":{"region":"eu"}}"#, &["eu"], None),
            ("a.region", r#"{"region":"eu","a":7}"#, &[], None),
            ("n", r#"{"n":42}"#, &["42"], None),
            ("n", r#"{"n":42}"#, &["42.0"], None),
            ("n", r#"{"n":42.0}"#, &["42"], None),
            ("n", r#"{"n":-7}"#, &["-7"], None),
            ("n", r#"{"n":42}"#, &["43"], Some(Kind::Differs)),
            ("n", r#"{"n":42}"#, &["0x2a"], Some(Kind::Differs)),
            ("n", r#"{"n":42}"#, &["\"42\""], Some(Kind::Differs)),
            ("n", r#"{"n":"42"}"#, &["42.0"], Some(Kind::Differs)),
            ("n", r#"{"n":9007199254740993}"#, &["9007199254740992"], Some(Kind::Differs)),
            ("n", r#"{"n":9007199254740993}"#, &["9007199254740993"], None),
            ("region", r#"{"region":"eu","region":"eu"}"#, &["eu"], Some(Kind::Differs)),
            ("a.region", r#"{"a":{"region":"eu"},"a":{}}"#, &[], Some(Kind::Differs)),
            ("a.region", r#"{"a":{"region":"eu","region":"us"}}"#, &["us"], Some(Kind::Differs)),
            ("region", &crowded, &[], Some(Kind::Missing)),
            ("region", &crowded, &["eu"], None),
            ("b", r#"{"b":true}"#, &["true"], None),
            ("b", r#"{"b":true}"#, &["TRUE"], Some(Kind::Differs)),
            ("b", r#"{"b":false}"#, &["0"], Some(Kind::Differs)),
        ] {
            assert_eq!(param(path, arguments, value), expected, "{path} {arguments} {value:?}");
        }
    }
}
