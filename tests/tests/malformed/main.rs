//! Broken input: every fault has the right code, finds whom to answer, and says what was expected where.
//!
//! One table per theme. A row is a name, a text, and what the refusal looks like.

mod accepted;
mod batches;
mod encoding;
mod envelope;
mod hostile;
mod nesting;
mod payload;
mod syntax;
mod truncation;

use std::fmt::Display;

use mcp_types::jsonrpc::{Incoming, InvalidMessage, Limits, Message, UnknownId, parse, write_error};
use mcp_types::{ErrorCode, RequestId};

/// The codes of the answers.
const PARSE: ErrorCode = ErrorCode::PARSE_ERROR;
const REQUEST: ErrorCode = ErrorCode::INVALID_REQUEST;
const PARAMS: ErrorCode = ErrorCode::INVALID_PARAMS;

/// Whose text it was, as far as could be read.
#[derive(Debug, Clone, PartialEq)]
enum Of {
    Nobody,
    Request(RequestId),
    Response(RequestId),
}

fn request(id: i64) -> Of {
    Of::Request(id.into())
}

fn response(id: i64) -> Of {
    Of::Response(id.into())
}

fn of(invalid: &InvalidMessage) -> Of {
    match (invalid.request_id(), invalid.response_id()) {
        (Some(id), None) => Of::Request(id.clone()),
        (None, Some(id)) => Of::Response(id.clone()),
        (None, None) => Of::Nobody,
        both => panic!("nothing is both a request and a response: {both:?}"),
    }
}

/// A name, a text, the code of the answer, who gets it, and a part of what it says.
type Row<'a, N, T> = (N, T, ErrorCode, Of, &'a str);

/// Checks all rows before it complains, so that one fault does not hide another.
fn refuse_all<N: Display, T: AsRef<[u8]>>(rows: &[Row<'_, N, T>]) {
    let wrong: Vec<_> = rows.iter().filter_map(wrong_about).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn wrong_about<N: Display, T: AsRef<[u8]>>((name, text, code, party, says): &Row<'_, N, T>) -> Option<String> {
    let text = text.as_ref();
    let invalid = match parse(text, &Limits::default()) {
        Err(invalid) => invalid,
        Ok(accepted) => return Some(format!("{name}: accepted as {}", clipped(&format!("{accepted:?}")))),
    };
    if !text.trim_ascii_start().starts_with(b"[") {
        let alone = Message::parse(text, &Limits::default());
        assert_eq!(alone, Err(invalid.clone()), "{name}: both ways to read a message agree");
    }
    assert_can_be_told(&invalid, text.len());
    let (is, said) = ((invalid.code(), of(&invalid)), invalid.to_string());
    let as_expected = is == (*code, party.clone()) && said.contains(says);
    (!as_expected).then(|| format!("{name}: {is:?} {said:?}, expected {:?} {says:?}", (code, party)))
}

/// Whatever a peer sends, the answer is short, printable, in place, and a message itself.
fn assert_can_be_told(invalid: &InvalidMessage, length: usize) {
    let said = invalid.to_string();
    assert!(said.len() < 500, "{} bytes of fault: {}", said.len(), clipped(&said));
    assert!(!said.contains(char::is_control), "{said:?}");
    let at = invalid.offset().expect("every fault has its place");
    assert!(at <= length && said.ends_with(&format!(" (byte {at})")), "{said}");
    let mut line = Vec::new();
    write_error(&mut line, invalid.request_id(), &invalid.to_error_object(), UnknownId::Null)
        .expect("it can be written");
    let Ok(Message::Response(answer)) = Message::parse(&line, &Limits::default()) else { panic!("{said}") };
    assert_eq!((answer.id.as_ref(), answer.outcome), (invalid.request_id(), Err(invalid.to_error_object())));
}

fn clipped(text: &str) -> String {
    text.chars().take(200).collect()
}

fn accept(text: &[u8]) -> Result<Message<'_>, String> {
    match parse(text, &Limits::default()) {
        Ok(Incoming::Single(message)) => Ok(message),
        Ok(other) => Err(format!("{other:?} is not a single message")),
        Err(invalid) => Err(invalid.to_string()),
    }
}
