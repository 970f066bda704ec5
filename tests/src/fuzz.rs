//! The bodies of the fuzz targets: each takes any bytes and panics if a promise does not hold.

#[cfg(feature = "fuzz")]
mod client;
#[cfg(feature = "fuzz")]
mod client_http;
#[cfg(feature = "fuzz")]
mod client_stdio;
#[cfg(feature = "fuzz")]
mod event_stream;
#[cfg(feature = "fuzz")]
mod header_encoding;
mod rounds;
mod sequence;
#[cfg(feature = "fuzz")]
mod server_http;
#[cfg(feature = "fuzz")]
mod session_record;
mod uri_template;

use std::fmt::Debug;

use mcp_types::jsonrpc::{
    Fault, Incoming, InvalidMessage, Limits, Message, Payload, UnknownId, parse, write_error, write_notification,
    write_request, write_result,
};
use mcp_types::{
    CallToolRequestParams, CallToolResult, CancelledNotificationParams, CompleteRequestParams, CompleteResult,
    CreateMessageRequestParams, DiscoverResult, ElicitRequestParams, ElicitResult, ErrorCode, GetPromptRequestParams,
    GetPromptResult, InitializeRequestParams, InitializeResult, ListToolsResult, LoggingMessageNotificationParams,
    ProgressNotificationParams, ReadResourceResult, RequestMeta, SetLevelRequestParams,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

#[cfg(feature = "fuzz")]
pub use client_http::client_http;
#[cfg(feature = "fuzz")]
pub use client_stdio::client_stdio;
#[cfg(feature = "fuzz")]
pub use event_stream::event_stream;
#[cfg(feature = "fuzz")]
pub use header_encoding::header_encoding;
pub use rounds::rounds;
pub use sequence::sequence;
#[cfg(feature = "fuzz")]
pub use server_http::server_http;
#[cfg(feature = "fuzz")]
pub use session_record::session_record;
pub use uri_template::uri_template;

/// A fuzz target: its name, and its body.
#[cfg(feature = "fuzz")]
pub type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
#[cfg(feature = "fuzz")]
pub const TARGETS: [Target; 10] = [
    ("client_http", client_http),
    ("client_stdio", client_stdio),
    ("envelope", envelope),
    ("event_stream", event_stream),
    ("header_encoding", header_encoding),
    ("rounds", rounds),
    ("sequence", sequence),
    ("server_http", server_http),
    ("session_record", session_record),
    ("uri_template", uri_template),
];

/// Whatever comes in, the envelope answers with a message or with a fault that can be told to the peer.
///
/// What it accepts is JSON, survives being written and read again, and decodes the way `serde_json` decodes it; what
/// it refuses as not being JSON is refused by `serde_json` as well.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn envelope(data: &[u8]) {
    let limits = Limits::default();
    let alone = Message::parse(data, &limits);
    match parse(data, &limits) {
        Ok(Incoming::Single(message)) => {
            assert_json(data);
            survives(&message, &limits);
            breaks_off(data, &message, &limits);
            assert_eq!(alone, Ok(message), "both ways to read a message agree");
        }
        Ok(Incoming::Batch(messages)) => {
            assert_json(data);
            assert!(!messages.is_empty() && messages.len() <= limits.max_batch_size, "the size of a batch is bounded");
            for message in &messages {
                match message {
                    Ok(message) => survives(message, &limits),
                    Err(fault) => can_be_told(fault, data),
                }
            }
            let refused = alone.expect_err("a batch is not a message");
            assert_eq!(refused.fault(), &Fault::BatchNotAllowed, "a batch is refused for what it is");
        }
        Err(fault) => {
            can_be_told(&fault, data);
            is_not_json(&fault, data);
            can_be_told(&alone.expect_err("both ways to read a message agree"), data);
        }
    }
}

fn assert_json(data: &[u8]) {
    assert!(serde_json::from_slice::<&RawValue>(data).is_ok(), "what is accepted is JSON");
}

/// What is refused as not being JSON is not JSON.
fn is_not_json(fault: &InvalidMessage, data: &[u8]) {
    if fault.code() != ErrorCode::PARSE_ERROR || fault.fault() == &Fault::ByteOrderMark {
        return;
    }
    let refused = if let Fault::Syntax { expected, .. } = fault.fault() {
        // What only skips a string does not mind half a surrogate pair.
        let is_half = *expected == "a surrogate pair" && serde_json::from_slice::<Value>(data).is_err();
        is_half || serde_json::from_slice::<IgnoredAny>(data).is_err()
    } else {
        std::str::from_utf8(data).is_err()
    };
    assert!(refused, "JSON is refused: {fault}");
}

/// A message that is written anew says the same.
fn survives(message: &Message<'_>, limits: &Limits) {
    let mut line = Vec::new();
    let written = match message {
        Message::Request(request) => {
            request.params.iter().for_each(decode_params);
            write_request(&mut line, &request.id, &request.method, request.params.as_ref())
        }
        Message::Notification(notification) => {
            notification.params.iter().for_each(decode_params);
            write_notification(&mut line, &notification.method, notification.params.as_ref())
        }
        Message::Response(response) => match (&response.id, &response.outcome) {
            (Some(id), Ok(result)) => {
                decode_result(result);
                write_result(&mut line, id, result)
            }
            (id, Err(error)) => write_error(&mut line, id.as_ref(), error, UnknownId::Null),
            (None, Ok(_)) => panic!("a result without an id"),
        },
    };
    written.expect("what was read can be written");
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'), "a message is one line");
    let again = Message::parse(&line, limits).expect("what was written can be read");
    assert_eq!(said(message), said(&again), "a message stays what it is");
}

/// Everything that a message says; line breaks in raw JSON become spaces when it is written.
fn said(message: &Message<'_>) -> String {
    format!("{message:?}").replace(['\n', '\r'], " ")
}

/// A message that breaks off is not JSON, and its id is known or not, but never another one.
fn breaks_off(data: &[u8], message: &Message<'_>, limits: &Limits) {
    let whole = data.trim_ascii_end();
    // Which cut it is does not matter, as long as the input decides it.
    let cut = data.iter().fold(whole.len(), |sum, byte| sum.wrapping_mul(31) + usize::from(*byte)) % whole.len();
    let fault = Message::parse(&whole[..cut], limits).expect_err("part of a message is no message");
    assert_eq!(fault.code(), ErrorCode::PARSE_ERROR, "part of a message is not JSON: {fault}");
    let id = match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification(_) => None,
        Message::Response(response) => response.id.as_ref(),
    };
    if let Some(known) = fault.request_id().or_else(|| fault.response_id()) {
        assert_eq!(Some(known), id, "the id of a message that breaks off at {cut}");
    }
}

fn decode_params(params: &Payload<'_>) {
    decode::<CallToolRequestParams>(params);
    decode::<CancelledNotificationParams>(params);
    decode::<CompleteRequestParams>(params);
    decode::<CreateMessageRequestParams>(params);
    decode::<ElicitRequestParams>(params);
    decode::<GetPromptRequestParams>(params);
    decode::<InitializeRequestParams>(params);
    decode::<LoggingMessageNotificationParams>(params);
    decode::<ProgressNotificationParams>(params);
    decode::<RequestMeta>(params);
    decode::<SetLevelRequestParams>(params);
}

fn decode_result(result: &Payload<'_>) {
    decode::<CallToolResult>(result);
    decode::<CompleteResult>(result);
    decode::<DiscoverResult>(result);
    decode::<ElicitResult>(result);
    decode::<GetPromptResult>(result);
    decode::<InitializeResult>(result);
    decode::<ListToolsResult>(result);
    decode::<ReadResourceResult>(result);
}

/// A payload decodes to what `serde_json` makes of its text, or fails with something that can be told.
fn decode<T: DeserializeOwned + PartialEq + Debug>(payload: &Payload<'_>) {
    let reference = serde_json::from_str::<T>(payload.as_str());
    match payload.decode::<T>() {
        Ok(value) => assert_eq!(value, reference.expect("both decoders accept the same"), "both decoders agree"),
        Err(fault) => {
            assert!(reference.is_err(), "both decoders refuse the same: {fault}");
            let text = fault.to_string();
            assert!(!text.is_empty() && text.len() < 3000, "a fault is short: {text}");
            assert!(!text.contains(char::is_control), "a fault carries no control characters: {text:?}");
        }
    }
}

fn can_be_told(fault: &InvalidMessage, data: &[u8]) {
    let text = fault.to_string();
    assert!(!text.is_empty() && text.len() < 500, "a fault is one short sentence: {text}");
    assert!(!text.contains(char::is_control), "a fault carries no control characters: {text:?}");
    assert!(fault.offset().is_some_and(|at| at <= data.len()), "a fault has its place: {text}");
    let codes = [ErrorCode::PARSE_ERROR, ErrorCode::INVALID_REQUEST, ErrorCode::INVALID_PARAMS];
    assert!(codes.contains(&fault.code()), "a fault has a code of JSON-RPC");
    for unknown_id in [UnknownId::Omit, UnknownId::Null] {
        let mut line = Vec::new();
        write_error(&mut line, fault.request_id(), &fault.to_error_object(), unknown_id)
            .expect("a fault can be written");
        let Ok(Message::Response(answer)) = Message::parse(&line, &Limits::default()) else {
            panic!("a fault is answered with a response");
        };
        assert_eq!(answer.id.as_ref(), fault.request_id(), "the answer is for whoever asked");
        assert_eq!(answer.outcome, Err(fault.to_error_object()), "a fault is answered with an error");
    }
}
