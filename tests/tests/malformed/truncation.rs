//! Messages that break off.

use std::cmp::Ordering;

use mcp_types::RequestId;
use mcp_types::jsonrpc::{Incoming, Limits, Message, parse};

use crate::{Of, PARSE, assert_can_be_told, of, response};

/// Messages, each with its id as it stands there if it has one.
const MESSAGES: [(&str, Option<&str>); 9] = [
    (
        r#"{"jsonrpc":"2.0","id":123,"method":"tools/call","params":{"name":"a\"b","arguments":{"x":[-1.5e+3,null]}}}"#,
        Some(r#""id":123"#),
    ),
    (
        r#"{"jsonrpc":"2.0","id":"req-1","method":"tools/call","params":{"_meta":{"progressToken":"\ud83d\ude00"}}}"#,
        Some(r#""id":"req-1""#),
    ),
    (
        r#"{"method":"m","params":{"id":5},"jsonrpc":"2.0","id":-9223372036854775808}"#,
        Some(r#""id":-9223372036854775808"#),
    ),
    (
        r#"{"\u0069d":"the \"first\"","jsonrpc":"2.0","method":"größe","params":{"é":"€😀"}}"#,
        Some(r#""\u0069d":"the \"first\"""#),
    ),
    (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, None),
    (
        r#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"☃"}],"isError":false},"id":7}"#,
        Some(r#""id":7"#),
    ),
    (r#"{"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"no","data":[{}]}}"#, Some(r#""id":"7""#)),
    (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#, None),
    (r#"{"id":0,"unknown":{"id":[1,{"id":2}]},"jsonrpc":"2.0","method":"m"}"#, Some(r#""id":0"#)),
];

/// The id of a message that is whole.
fn id_of(text: &str) -> Option<RequestId> {
    match Message::parse(text.as_bytes(), &Limits::default()).expect("a message") {
        Message::Request(request) => Some(request.id),
        Message::Notification(_) => None,
        Message::Response(response) => response.id,
    }
}

/// Cuts a message off: its id is known once it was read, and no part of an id is mistaken for it.
fn check(text: &str, id: Option<&str>, cut: usize) {
    let invalid = parse(&text.as_bytes()[..cut], &Limits::default()).expect_err("part of a message");
    assert_eq!(invalid.code(), PARSE, "{cut} bytes of {text}: {invalid}");
    assert_can_be_told(&invalid, cut);
    let known = match of(&invalid) {
        Of::Nobody => None,
        Of::Request(id) | Of::Response(id) => Some(id),
    };
    let end = id.map_or(text.len(), |id| text.find(id).expect("the id") + id.len());
    match cut.cmp(&end) {
        Ordering::Less => assert_eq!(known, None, "{cut} bytes of {text}"),
        // A string has ended here, but a number may have had more digits.
        Ordering::Equal if id.is_some_and(|id| id.ends_with('"')) => {}
        Ordering::Equal => assert_eq!(known, None, "{cut} bytes of {text}"),
        Ordering::Greater => assert_eq!(known, id_of(text), "{cut} bytes of {text}"),
    }
}

fn check_cuts(which: impl Fn(&str, usize) -> bool) {
    for (text, id) in MESSAGES {
        (0..text.len()).filter(|cut| which(text, *cut)).for_each(|cut| check(text, id, cut));
    }
}

#[test]
fn a_message_breaks_off_between_characters() {
    check_cuts(str::is_char_boundary);
}

#[test]
fn a_message_breaks_off_within_a_character() {
    check_cuts(|text, cut| !text.is_char_boundary(cut));
}

/// A response is never taken for a request, however little of it is there.
#[test]
fn a_response_that_began_is_no_request() {
    let text = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    for cut in text.find("result\":").unwrap() + "result\":".len()..text.len() {
        let invalid = parse(&text.as_bytes()[..cut], &Limits::default()).unwrap_err();
        assert_eq!(of(&invalid), response(7), "{cut} bytes of {text}");
    }
}

#[test]
fn a_batch_breaks_off() {
    let text = format!("[{}]", MESSAGES.map(|(text, _)| text).join(","));
    assert!(matches!(parse(text.as_bytes(), &Limits::default()), Ok(Incoming::Batch(_))));
    for cut in 0..text.len() {
        let invalid = parse(&text.as_bytes()[..cut], &Limits::default()).unwrap_err();
        assert_eq!((invalid.code(), of(&invalid)), (PARSE, Of::Nobody), "{cut} bytes");
    }
}

/// A byte is put in, replaced or taken out: whatever comes of it can be told.
#[test]
fn a_byte_is_wrong() {
    let read = |bytes: &[u8]| {
        if let Err(invalid) = parse(bytes, &Limits::default()) {
            assert_can_be_told(&invalid, bytes.len());
        }
    };
    for (text, _) in MESSAGES {
        for at in 0..text.len() {
            let (before, behind) = text.as_bytes().split_at(at);
            for byte in *b"\0\n \"\\,:{}[]0e-nz\x80\xff" {
                read(&[before, &[byte], behind].concat());
                read(&[before, &[byte], &behind[1..]].concat());
            }
            read(&[before, &behind[1..]].concat());
        }
    }
}
