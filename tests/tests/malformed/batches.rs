//! Arrays of messages.

use mcp_types::jsonrpc::{Incoming, Limits, Message, parse};

use crate::{Of, PARAMS, PARSE, REQUEST, of, refuse_all, request, response};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"m"}"#;

#[test]
fn whole_batches() {
    let many = |count| format!("[{}]", vec![NOTE; count].join(","));
    assert!(parse(many(100).as_bytes(), &Limits::default()).is_ok());
    let syntax = |behind: &str| format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"m"}}{behind}"#);
    refuse_all(&[
        ("no message", "[]".to_owned(), REQUEST, Of::Nobody, "a batch must hold a message"),
        ("only whitespace", " [ \n ] ".to_owned(), REQUEST, Of::Nobody, "a batch must hold a message (byte 1)"),
        ("one too many", many(101), REQUEST, Of::Nobody, "a batch may hold 100 messages at most"),
        ("far too many", many(100_000), REQUEST, Of::Nobody, "a batch may hold 100 messages at most"),
        ("numbers, too many", format!("[{}0]", "0,".repeat(100)), REQUEST, Of::Nobody, "a batch may hold 100 messages"),
        ("no end", syntax(""), PARSE, Of::Nobody, "expected `,` or `]`, found the end of the text"),
        ("a comma behind the last", syntax(",]"), PARSE, Of::Nobody, "expected a value, found `]`"),
        ("a comma in front", format!("[,{NOTE}]"), PARSE, Of::Nobody, "expected a value, found `,`"),
        ("the wrong bracket", syntax("}"), PARSE, Of::Nobody, "expected `,` or `]`, found `}`"),
        ("text behind it", syntax("] x"), PARSE, Of::Nobody, "expected the end of the text, found `x`"),
        ("two batches", syntax("][]"), PARSE, Of::Nobody, "expected the end of the text, found `[`"),
        ("no comma", syntax(NOTE), PARSE, Of::Nobody, "expected `,` or `]`, found `{`"),
        ("an element that breaks off", format!("[{NOTE},{{]"), PARSE, Of::Nobody, "expected the name of a member"),
        ("an element that is not JSON", format!("[{NOTE},nope]"), PARSE, Of::Nobody, "expected null"),
    ]);
}

#[test]
fn elements_fail_alone() {
    let elements = [
        ("5", REQUEST, Of::Nobody, "a message must be an object, found a number"),
        ("null", REQUEST, Of::Nobody, "a message must be an object, found null"),
        ("\"text\"", REQUEST, Of::Nobody, "a message must be an object, found a string"),
        ("[]", REQUEST, Of::Nobody, "a message must be an object, found an array"),
        ("[{}]", REQUEST, Of::Nobody, "a message must be an object, found an array"),
        ("{}", REQUEST, Of::Nobody, "`jsonrpc` is missing"),
        (r#"{"jsonrpc":"2.0","id":1}"#, REQUEST, request(1), "one of `method`, `result` and `error` is required"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, REQUEST, Of::Nobody, "`id` must be"),
        (r#"{"jsonrpc":"2.0","id":2,"method":"m","params":[]}"#, PARAMS, request(2), "`params` must be an object"),
        (r#"{"jsonrpc":"2.0","id":3,"result":[]}"#, REQUEST, response(3), "`result` must be an object"),
        (r#"{"jsonrpc":"2.0","id":4,"id":4,"method":"m"}"#, REQUEST, Of::Nobody, "`id` appears twice"),
    ];
    let texts: Vec<_> = elements.iter().flat_map(|(text, ..)| [NOTE, text]).collect();
    let text = format!("[{}]", texts.join(" , "));
    let Ok(Incoming::Batch(messages)) = parse(text.as_bytes(), &Limits::default()) else { panic!("{text}") };
    assert_eq!(messages.len(), 2 * elements.len());
    for (pair, (element, code, party, says)) in messages.chunks(2).zip(elements) {
        let [Ok(Message::Notification(_)), Err(invalid)] = pair else { panic!("{element}: {pair:?}") };
        assert_eq!((invalid.code(), of(invalid)), (code, party), "{element}");
        assert!(invalid.to_string().contains(says), "{element}: {invalid}");
    }
}

#[test]
fn batches_where_none_are_allowed() {
    let request = r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#;
    for (text, code, says) in [
        ("[]", REQUEST, "a batch is not allowed here (byte 0)"),
        (" [1,2]", REQUEST, "a batch is not allowed here (byte 1)"),
        (request, REQUEST, "a batch is not allowed here (byte 0)"),
        ("[[[]]]", REQUEST, "a batch is not allowed here (byte 0)"),
        ("[1", PARSE, "expected `,` or `]`, found the end of the text (byte 2)"),
        ("[1]]", PARSE, "expected the end of the text, found `]` (byte 3)"),
    ] {
        let invalid = Message::parse(text.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!((invalid.code(), of(&invalid)), (code, Of::Nobody), "{text}");
        assert_eq!(invalid.to_string(), says, "{text}");
    }
}
