//! Input that aims at whoever reads the error.

use mcp_types::jsonrpc::{Limits, Message, Payload, parse};
use mcp_types::{CallToolRequestParams, ElicitRequestParams, GetPromptRequestParams, SetLevelRequestParams};
use serde::Deserialize;

use crate::{Of, PARAMS, PARSE, REQUEST, accept, refuse_all, request};

/// What must not reach a terminal: control characters, and those that reorder or hide text.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

const HARM: [&str; 10] = [
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{9b}31m",
    "\u{202e}txt",
    "\u{2066}",
    "\u{2028}",
    "\u{200b}",
    "\u{feff}",
    "\u{1b}]0;title\u{7}",
];

/// The text of a JSON string, with only those characters escaped that have to be.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

#[test]
fn size_does_not_show() {
    let long = "x".repeat(1 << 20);
    let wide = "\u{10ffff}".repeat(1 << 18);
    for text in [&long, &wide] {
        refuse_all(&[
            (
                "a long version",
                format!(r#"{{"id":1,"method":"m","jsonrpc":"{text}"}}"#),
                REQUEST,
                request(1),
                "`jsonrpc` must be \"2.0\", found \"",
            ),
            (
                "a long name twice",
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"{text}":1,"{text}":2}}}}"#),
                PARAMS,
                request(1),
                "…` appears twice",
            ),
            (
                "a long method in a list",
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":["{text}"]}}"#),
                REQUEST,
                request(1),
                "`method` must be a string, found an array",
            ),
            (
                "a long string without an end",
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{text}"#),
                PARSE,
                request(1),
                "expected the end of the string, found the end of the text",
            ),
        ]);
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{text}"}}"#);
        let Ok(Message::Request(request)) = accept(call.as_bytes()) else { panic!("a long method is a method") };
        assert_eq!(request.method.as_str(), text);
    }
    let digits = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"m"}}"#, "9".repeat(1 << 20));
    refuse_all(&[("a long id", digits, REQUEST, Of::Nobody, "`id` must fit into 64 bits")]);
}

#[test]
fn harmful_characters_do_not_pass() {
    for harm in HARM {
        let quoted = quoted(harm);
        for text in [
            format!(r#"{{"jsonrpc":{quoted},"id":1,"method":"m"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{quoted}:1,{quoted}:2}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,{harm}"method":"m"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":{harm}}}"#),
            format!("{harm}{{}}"),
            format!("{{}}{harm}"),
        ] {
            let said = parse(text.as_bytes(), &Limits::default()).unwrap_err().to_string();
            assert!(!said.contains(is_harmful), "{text:?}: {said:?}");
        }
    }
}

fn said<'a, T: Deserialize<'a>>(text: &'a str) -> String {
    let fault = match Payload::parse(text, &Limits::default()) {
        Ok(payload) => payload.decode::<T>().err().expect("it does not fit").to_error_object(),
        Err(invalid) => invalid.to_error_object(),
    };
    assert_eq!(fault.code, PARAMS);
    fault.message.into_owned()
}

#[test]
fn payloads_are_quoted_with_care() {
    let long = "\u{1b}".repeat(1 << 18);
    for harm in HARM.into_iter().chain([&*long]) {
        let harm = quoted(harm);
        for said in [
            said::<SetLevelRequestParams>(&format!(r#"{{"level":{harm}}}"#)),
            said::<ElicitRequestParams>(&format!(r#"{{"message":"m","mode":{harm}}}"#)),
            said::<CallToolRequestParams>(&format!(r#"{{"name":"a","arguments":{harm}}}"#)),
            said::<CallToolRequestParams>(&format!(r#"{{"name":"a","task":{harm}}}"#)),
            said::<GetPromptRequestParams>(&format!(r#"{{"name":"a","arguments":{{{harm}:"",{harm}:""}}}}"#)),
            said::<GetPromptRequestParams>(&format!(r#"{{"name":"a",{harm}:1,{harm}:2}}"#)),
        ] {
            assert!(said.len() < 3000, "{} bytes", said.len());
            assert!(!said.contains(is_harmful), "{said:?}");
        }
    }
}
