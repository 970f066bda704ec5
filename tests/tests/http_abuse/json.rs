//! Bodies that are not what they should be.

use std::fmt::Write;

use crate::arena::SMALL;
use crate::heap::{Alone, alone};
use crate::mistreat::mistreat;
use crate::tally::repeated;
use crate::wire::{META, call_body, message, names, post};

/// Sends bodies as calls of `echo`, each of which has to be refused with a status and a code.
fn check(alone: &Alone, name: &str, cases: Vec<(&str, Vec<u8>, u16, i64)>) {
    mistreat(alone, name, SMALL, async |arena| {
        let mut client = arena.connect().await;
        let mut wrong = Vec::new();
        for (case, body, status, code) in &cases {
            client.send(&post(&names("tools/call", Some("echo")), body)).await;
            let answer = client.answer().await.unwrap_or_else(|| panic!("{case} is answered"));
            let got = (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or_default());
            if got != (*status, *code) {
                let text: String = answer.json().to_string().chars().take(200).collect();
                wrong.push(format!("{case}: {got:?}, not {status} {code}: {text}"));
            }
            // It repeats the id, and nothing else that can be long.
            let most = if case.contains("an id") { body.len() + 1024 } else { 1024 };
            assert!(answer.body.len() <= most, "{case}: a refusal of {} bytes", answer.body.len());
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        repeated(cases.len(), "requests")
    });
}

fn with_params(params: &str) -> Vec<u8> {
    message(1, "tools/call", params).into_bytes()
}

fn echo_of(text: &str) -> Vec<u8> {
    call_body(1, "echo", text).into_bytes()
}

#[test]
fn what_is_no_json() {
    let alone = alone();
    let good = call_body(1, "echo", r#"{"text":"x"}"#);
    let half = good.as_bytes()[..good.len() / 2].to_vec();
    check(
        &alone,
        "no JSON",
        vec![
            ("nothing", Vec::new(), 400, -32700),
            ("spaces", b" ".repeat(100_000), 400, -32700),
            ("half of it", half, 400, -32700),
            ("two of them", good.repeat(2).into_bytes(), 400, -32700),
            ("rubbish behind", [good.as_bytes(), b"x"].concat(), 400, -32700),
            ("zeros", vec![0; 1000], 400, -32700),
            ("a mark before it", [b"\xef\xbb\xbf", good.as_bytes()].concat(), 400, -32700),
            ("UTF-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect(), 400, -32700),
            ("what is not UTF-8", [br#"{"a":""#, &b"\xff\xfe"[..], br#""}"#].concat(), 400, -32700),
            ("a surrogate alone", echo_of("{\"text\":\"\\ud800\"}"), 400, -32700),
            ("a control character", echo_of("{\"text\":\"\x01\"}"), 400, -32700),
            ("a form", b"a=b&c=d".to_vec(), 400, -32700),
            ("an event", format!("data: {good}\n\n").into_bytes(), 400, -32700),
            ("an infinite number", echo_of(r#"{"text":Infinity}"#), 400, -32700),
        ],
    );
}

#[test]
fn what_is_no_message() {
    let alone = alone();
    let mut uris = String::from(r#""a""#);
    for n in 0..10_000 {
        let _ = write!(uris, r#","test:{n}""#);
    }
    let deep = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    let deep_inside = format!(r#"{{"text":{}1{}}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let members: Vec<String> = (0..100_000).map(|n| format!("\"m{n}\":0")).collect();
    let batch = format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"x"}"#; 10_000].join(","));
    let long = "x".repeat(1_000_000);
    check(
        &alone,
        "no message",
        vec![
            ("a number", b"1".to_vec(), 400, -32600),
            ("null", b"null".to_vec(), 400, -32600),
            ("an empty object", b"{}".to_vec(), 400, -32600),
            ("an empty batch", b"[]".to_vec(), 400, -32600),
            ("a batch of 10,000", batch.into_bytes(), 400, -32600),
            ("a number of a megabyte", b"1".repeat(1_000_000), 400, -32600),
            ("100,000 levels", deep(100_000), 400, -32600),
            ("10,000 levels in arguments", echo_of(&deep_inside), 400, -32600),
            ("100,000 members", with_params(&members.join(",")), 400, -32600),
            ("an id that is an object", with_id("{}"), 400, -32600),
            ("an id that is null", with_id("null"), 400, -32600),
            ("an id of a megabyte", with_id(&format!("\"{long}\"")), 400, -32600),
            ("an id of many digits", with_id(&"9".repeat(1000)), 400, -32600),
            ("a method of a megabyte", message(1, &long, "").into_bytes(), 400, -32020),
            ("metadata of a megabyte", with_meta(&format!(r#""x":"{long}""#)), 400, -32602),
            ("a name that is a number", with_params(r#""name":1"#), 200, -32602),
            ("a name of a megabyte", call_body(1, &long, "{}").into_bytes(), 400, -32020),
            ("arguments that are a text", echo_of("\"x\""), 200, -32602),
            ("a response", br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_vec(), 400, -32600),
            ("another version", with_id("1").replace_version(), 400, -32600),
        ],
    );
    mistreat(&alone, "10,000 addresses", SMALL, async |arena| {
        let body =
            message(1, "subscriptions/listen", &format!(r#""notifications":{{"resourceSubscriptions":[{uris}]}}"#));
        let mut client = arena.connect().await;
        client.send(&post(&names("subscriptions/listen", None), body.as_bytes())).await;
        let answer = client.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (400, Some(-32602)), "{answer:?}");
        repeated(1, "requests")
    });
}

fn with_id(id: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{META},"name":"echo"}}}}"#).into_bytes()
}

fn with_meta(more: &str) -> Vec<u8> {
    let meta = META.replacen(r#""progressToken":1"#, more, 1);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{meta},"name":"echo"}}}}"#).into_bytes()
}

trait ReplaceVersion {
    fn replace_version(self) -> Self;
}

impl ReplaceVersion for Vec<u8> {
    fn replace_version(self) -> Self {
        String::from_utf8(self).expect("text").replacen("2.0", "3.0", 1).into_bytes()
    }
}

/// A text as long as a body may be comes back, and leaves nothing.
#[test]
fn as_long_as_may_be() {
    let alone = alone();
    mistreat(&alone, "as long as may be", SMALL, async |arena| {
        let rest = call_body(1, "echo", r#"{"text":""}"#).len();
        for (more, status) in [(0, 200), (1, 413)] {
            let text = "x".repeat((4 << 20) - rest + more);
            let mut client = arena.connect().await;
            let body = call_body(1, "echo", &format!(r#"{{"text":"{text}"}}"#));
            client.try_send(&post(&names("tools/call", Some("echo")), body.as_bytes())).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, status);
            assert_eq!(answer.body.len() > (4 << 20) - 200, status == 200);
        }
        repeated(2, "requests")
    });
}
