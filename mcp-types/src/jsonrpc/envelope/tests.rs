use super::*;
use crate::{ErrorCode, RawJson};

fn parse(text: &str) -> Checked<Message<'_>> {
    let limits = Limits::default().max_members(3);
    Message::parse(text.as_bytes(), &limits)
}

/// Puts members behind the version.
fn message(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{members}}}"#)
}

fn refused(members: &str) -> InvalidMessage {
    parse(&message(members)).unwrap_err()
}

fn accepted(members: &str) {
    if let Err(invalid) = parse(&message(members)) {
        panic!("{members}: {invalid}");
    }
}

// covers: M-1
#[test]
fn the_version_is_two() {
    for (text, expected) in [
        (r#"{"method":"m"}"#, "`jsonrpc` is missing (byte 0)"),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, "`jsonrpc` must be \"2.0\", found \"1.0\" (byte 11)"),
        (r#"{"jsonrpc":2.0,"method":"m"}"#, "`jsonrpc` must be the string \"2.0\", found a number (byte 11)"),
    ] {
        let invalid = parse(text).unwrap_err();
        assert_eq!(invalid.to_string(), expected);
        assert_eq!(invalid.code(), ErrorCode::INVALID_REQUEST);
    }
    assert!(parse(r#"{"jsonrpc":"\u0032.0","\u006dethod":"m"}"#).is_ok());
}

// covers: M-2, M-3
#[test]
fn ids_are_strings_or_integers() {
    for (id, fault) in [
        ("null", Fault::NullId),
        ("1.0", Fault::FractionalId),
        ("1e3", Fault::FractionalId),
        ("9223372036854775808", Fault::IdOutOfRange),
    ] {
        let invalid = refused(&format!(r#""method":"m","id":{id}"#));
        assert_eq!((invalid.fault(), invalid.request_id()), (&fault, None));
        assert_eq!(invalid.offset(), Some(35));
    }
    for (id, found) in [("true", "a boolean"), ("[]", "an array"), ("{}", "an object")] {
        assert_eq!(
            refused(&format!(r#""id":{id},"result":{{}}"#)).to_string(),
            format!("`id` must be a string or an integer, found {found} (byte 22)")
        );
    }
    for id in ["0", "-9223372036854775808", "9223372036854775807", r#""""#, r#""\n""#] {
        accepted(&format!(r#""method":"m","id":{id}"#));
    }
}

#[test]
fn methods_are_names() {
    assert_eq!(refused(r#""method":"""#).fault(), &Fault::EmptyMethod);
    let invalid = refused(r#""method":5,"id":1"#);
    assert_eq!(invalid.to_string(), "`method` must be a string, found a number (byte 26)");
    assert_eq!(invalid.request_id(), Some(&1_u32.into()));
}

#[test]
fn params_are_an_object_or_nothing() {
    for (params, found) in [("[1]", "an array"), ("5", "a number"), ("\"\"", "a string")] {
        let invalid = refused(&format!(r#""id":1,"method":"m","params":{params}"#));
        assert_eq!(invalid.code(), ErrorCode::INVALID_PARAMS);
        assert_eq!(invalid.fault(), &Fault::WrongKind { member: "params", expected: "an object", found });
        assert_eq!(invalid.request_id(), Some(&1_u32.into()));
    }
}

#[test]
fn kinds_are_not_mixed() {
    for (members, fault) in [
        (r#""id":1"#, Fault::NoKind),
        (r#""id":1,"method":"m","result":{}"#, Fault::MixedKinds),
        (r#""id":1,"error":{},"method":"m""#, Fault::MixedKinds),
        (r#""id":1,"error":{},"result":{}"#, Fault::ResultAndError),
    ] {
        assert_eq!(refused(members).fault(), &fault);
    }
}

#[test]
fn results_need_an_id_and_an_object() {
    assert_eq!(refused(r#""result":{}"#).fault(), &Fault::MissingMember("id"));
    assert_eq!(refused(r#""result":{},"id":null"#).fault(), &Fault::NullId);
    // M-5
    let invalid = refused(r#""id":3,"result":null"#);
    assert_eq!(invalid.to_string(), "`result` must be an object, found null (byte 33)");
    assert_eq!((invalid.request_id(), invalid.response_id()), (None, Some(&3_u32.into())));
}

#[test]
fn errors_have_a_code_and_a_message() {
    // M-13
    accepted(r#""error":{"code":1,"message":"m"}"#);
    accepted(r#""error":{"code":1,"message":"m"},"id":null"#);
    for (error, expected) in [
        ("5", "`error` must be an object, found a number"),
        (r#"{"message":"m"}"#, "`error.code` is missing"),
        (r#"{"code":1}"#, "`error.message` is missing"),
        (r#"{"code":1.5,"message":"m"}"#, "`error.code` must be an integer of 64 bits, found a fraction"),
        (r#"{"code":"1","message":"m"}"#, "`error.code` must be an integer of 64 bits, found a string"),
        (r#"{"code":1,"message":null}"#, "`error.message` must be a string, found null"),
        (r#"{"code":1,"message":"m","code":2}"#, "`error.code` appears twice"),
    ] {
        let invalid = refused(&format!(r#""error":{error},"id":1"#));
        assert_eq!(invalid.fault().to_string(), expected);
        assert_eq!(invalid.request_id(), None);
    }
}

// covers: CG-17
#[test]
fn null_data_is_data() {
    // CG-17
    let text = message(r#""error":{"code":1,"message":"\u0061","data":null},"id":"x""#);
    let Ok(Message::Response(response)) = parse(&text) else {
        panic!("{text}");
    };
    let error = response.outcome.unwrap_err();
    assert_eq!(error.message, "a");
    assert_eq!(error.data, Some(RawJson::null()));
}

#[test]
fn known_members_appear_once() {
    for name in ["jsonrpc", "method", "params", "\\u0069d"] {
        let members = format!(r#""method":"m","id":1,"params":{{}},"{name}":"2.0""#);
        let invalid = refused(&members);
        let known = if name.ends_with('d') && name.starts_with('\\') { "id" } else { name };
        assert_eq!(invalid.fault(), &Fault::DuplicateMember(known));
        // It is ambiguous which of two ids the response should repeat.
        assert_eq!(invalid.request_id().is_some(), known != "id");
    }
    accepted(r#""method":"m","x":1,"x":2"#);
}

#[test]
fn payload_members_appear_once() {
    let invalid = refused(r#""id":1,"method":"m","params":{"name":"a","n\u0061me":"b"}"#);
    assert_eq!(invalid.code(), ErrorCode::INVALID_PARAMS);
    assert_eq!(invalid.to_string(), "`params.name` appears twice (byte 46)");
    assert_eq!(invalid.request_id(), Some(&1_u32.into()));
    let invalid = refused(r#""id":1,"result":{"a":1,"a":1}"#);
    assert_eq!(invalid.code(), ErrorCode::INVALID_REQUEST);
    assert_eq!(invalid.request_id(), None);
}

#[test]
fn payloads_have_few_members() {
    let invalid = refused(r#""method":"m","params":{"a":1,"b":1,"c":1,"d":1},"id":4"#);
    assert_eq!(invalid.to_string(), "`params` may have 3 members at most (byte 39)");
    assert_eq!(invalid.request_id(), Some(&4_u32.into()));
}

#[test]
fn the_id_survives_broken_text() {
    let id = |text: &str| {
        let invalid = parse(text).unwrap_err();
        assert_eq!(invalid.code(), ErrorCode::PARSE_ERROR, "{text}");
        (invalid.request_id().cloned(), invalid.response_id().cloned())
    };
    let one = || Some(RequestId::from(1_u32));
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"#), (one(), None));
    assert_eq!(id(r#"{"id":1,"method":"m"} x"#), (one(), None));
    assert_eq!(id(r#"{"id":1,"result":{"#), (None, one()));
    assert_eq!(id(r#"{"error":5,"id":1,"#), (None, one()));
    // The number may have been cut.
    assert_eq!(id(r#"{"method":"m","id":1"#), (None, None));
    assert_eq!(id(r#"{"method":"m","id":"1"#), (None, None));
    let text = Some(RequestId::from("1"));
    assert_eq!(id(r#"{"method":"m","id":"1""#), (text, None));
}

#[test]
fn foreign_text_is_bounded() {
    let long = "\\u001b".repeat(100_000);
    for members in [format!(r#""method":"m","params":{{"{long}":1,"{long}":1}}"#), format!(r#""jsonrpc":"{long}""#)] {
        let invalid = refused(&members).to_string();
        assert!(invalid.len() < 500 && !invalid.contains('\u{1b}'), "{invalid}");
    }
    let text = format!(r#"{{"jsonrpc":"{long}"}}"#);
    assert!(parse(&text).unwrap_err().to_string().len() < 500);
}

#[test]
fn every_cut_is_noticed() {
    let text = message(r#""id":"\u00e4","error":{"code":-1,"message":"\ud83d\ude00","data":[1.5e3]}"#);
    assert!(parse(&text).is_ok());
    for end in 0..text.len() {
        let cut = text.get(..end).expect("the text is ASCII");
        let invalid = parse(cut).unwrap_err();
        assert_eq!(invalid.code(), ErrorCode::PARSE_ERROR, "{cut}");
        assert!(invalid.offset() <= Some(end), "{cut}: {invalid}");
    }
}
