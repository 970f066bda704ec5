//! Any text in a header.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_transport_http::rules::header_encoding::{decode, encode};
use mcp_transport_http::rules::header_names::{METHOD, NAME, VERSION};
use mcp_transport_http::rules::headers::{
    HeaderMismatchKind, VersionHeader, check_method_and_name, check_param, single_value,
};
use mcp_types::ProtocolVersion;
use mcp_types::jsonrpc::{Limits, Message};

/// Any text can be put into a header, where it is visible ASCII without space at its ends, and comes out as it was; a
/// header agrees with a body that says the same, and with no other.
///
/// The lines are a text, another text, and the value of a header as it is; the rest is the object of arguments.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn header_encoding(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (text, other) = (String::from_utf8_lossy(next()), String::from_utf8_lossy(next()));
    let (value, arguments) = (next(), String::from_utf8_lossy(next()));
    survives(&text);
    agrees(&text, &text);
    agrees(&text, &other);
    is_read(value, &text, &arguments);
}

fn survives(text: &str) {
    let encoded = encode(text);
    assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{encoded:?} is not visible ASCII");
    assert_eq!(encoded.trim_ascii(), encoded, "space at the ends gets lost on the way");
    assert_eq!(decode(&encoded).as_deref(), Some(text), "decoding inverts encoding");
    if let Some(decoded) = decode(text) {
        assert_eq!(decode(&encode(&decoded)).as_ref(), Some(&decoded), "what was decoded can be encoded");
    }
}

/// A header that holds one text agrees with a body that holds another one if they are the same.
fn agrees(said: &str, held: &str) {
    let value = HeaderValue::from_str(&encode(held)).expect("what was encoded fits into a header");
    let json = serde_json::to_string(said).expect("a text is JSON");
    let is_same = |checked: Result<(), HeaderMismatchKind>| {
        let expected = if said == held { Ok(()) } else { Err(HeaderMismatchKind::Differs) };
        assert_eq!(checked, expected, "{said:?} in the body, {held:?} in the header");
    };
    let mut headers = HeaderMap::new();
    headers.insert(METHOD, HeaderValue::from_static("tools/call"));
    headers.insert(NAME, value.clone());
    headers.insert(HeaderName::from_static("mcp-param-region"), value);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{json}}}}}"#);
    let Ok(Message::Request(request)) = Message::parse(line.as_bytes(), &Limits::default()) else {
        panic!("{line} is a request");
    };
    is_same(check_method_and_name(&headers, &request).map_err(|fault| fault.kind));
    for (path, arguments) in
        [(&["a"][..], format!(r#"{{"a":{json}}}"#)), (&["b", "a"], format!(r#"{{"b":{{"a":{json}}}}}"#))]
    {
        let path: Vec<_> = path.iter().map(|name| (*name).to_owned()).collect();
        is_same(check_param(&headers, "Region", &path, &arguments).map_err(|fault| fault.kind));
    }
}

/// Whatever a header holds, it is judged; it agrees with nothing but what it says.
fn is_read(value: &[u8], name: &str, arguments: &str) {
    let Ok(value) = HeaderValue::from_bytes(value) else { return };
    let headers: HeaderMap = [METHOD, NAME, VERSION, HeaderName::from_static("mcp-param-region")]
        .into_iter()
        .map(|name| (name, value.clone()))
        .collect();
    let said = single_value(&headers, &NAME).ok().flatten();
    let decoded = said.and_then(decode);
    if check_param(&headers, "Region", &["a".to_owned()], arguments).is_ok() {
        assert!(decoded.is_some() || !arguments.starts_with('{'), "a header that cannot be read agrees with nothing");
    }
    let _ = check_param(&headers, name, &["a".to_owned(), "b".to_owned()], arguments);
    let json = serde_json::to_string(name).expect("a text is JSON");
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{json},{meta}}}}}"#);
    if let Ok(Message::Request(request)) = Message::parse(line.as_bytes(), &Limits::default()) {
        assert!(check_method_and_name(&headers, &request).is_err() || said == Some("tools/call"), "the method differs");
        let version = VersionHeader::read(&headers).check(&ProtocolVersion::V2026_07_28);
        assert_eq!(version.is_ok(), said == Some("2026-07-28"), "the version is compared");
        let mut headers = headers.clone();
        headers.insert(METHOD, HeaderValue::from_static("tools/call"));
        let is_same = decoded.as_deref() == Some(name);
        assert_eq!(check_method_and_name(&headers, &request).is_ok(), is_same, "the name is compared");
    }
}
