//! What looks broken and is not.

use mcp_types::jsonrpc::{Incoming, Limits, Message, parse};

use crate::accept;

/// The kind, the id and the name of a message, or the code of its error.
fn summary(message: &Message<'_>) -> String {
    match message {
        Message::Request(request) => format!("request {} {}", request.id, request.method),
        Message::Notification(notification) => format!("notification {}", notification.method),
        Message::Response(response) => {
            let id = response.id.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
            match &response.outcome {
                Ok(result) => format!("result {id} {}", result.as_str()),
                Err(error) => format!("error {id} {}", error.code),
            }
        }
    }
}

fn check(rows: &[(&str, &str, &str)]) {
    for (name, text, expected) in rows {
        let message = accept(text.as_bytes()).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(summary(&message), *expected, "{name}");
        let alone = Message::parse(text.as_bytes(), &Limits::default());
        assert_eq!(alone, Ok(message), "{name}: both ways to read a message agree");
    }
}

#[test]
fn forms() {
    check(&[
        (
            "whitespace everywhere",
            "\r\n\t { \"jsonrpc\" :\t\"2.0\" , \"id\"\n:\r1 ,\"method\": \"m\" , \"params\" : { } } \n",
            "request 1 m",
        ),
        ("members in another order", r#"{"params":{},"method":"m","id":1,"jsonrpc":"2.0"}"#, "request 1 m"),
        ("the version last", r#"{"result":{},"id":1,"jsonrpc":"2.0"}"#, "result 1 {}"),
        ("escaped names", r#"{"\u006asonrpc":"2.0","\u0069\u0064":1,"meth\u006Fd":"m"}"#, "request 1 m"),
        ("an escaped version", r#"{"jsonrpc":"\u0032\u002e0","method":"m"}"#, "notification m"),
        ("an escaped method", r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll"}"#, "request 1 tools/call"),
        ("a method of one space", r#"{"jsonrpc":"2.0","method":" "}"#, "notification  "),
        ("a method beyond ASCII", r#"{"jsonrpc":"2.0","method":"größe\ud83d\ude00"}"#, "notification größe😀"),
        ("a reserved method", r#"{"jsonrpc":"2.0","method":"rpc.discover"}"#, "notification rpc.discover"),
        ("an absent member of params", r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m"),
        ("null params", r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "request 1 m"),
        ("unknown members", r#"{"x":[{}],"jsonrpc":"2.0","":null,"id":1,"trace":"t","method":"m"}"#, "request 1 m"),
        ("an unknown member twice", r#"{"jsonrpc":"2.0","x":1,"x":2,"method":"m"}"#, "notification m"),
        ("known names in upper case", r#"{"jsonrpc":"2.0","ID":[],"method":"m","Method":5}"#, "notification m"),
        ("params beside a result", r#"{"jsonrpc":"2.0","id":1,"result":{},"params":[]}"#, "result 1 {}"),
        ("a null byte in a string", r#"{"jsonrpc":"2.0","method":"m","x":"\u0000"}"#, "notification m"),
        ("noncharacters", "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"x\":\"\u{7f}\u{2028}\u{ffff}\"}", "notification m"),
    ]);
}

#[test]
fn ids() {
    check(&[
        ("zero", r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#, "request 0 m"),
        ("minus zero is zero", r#"{"jsonrpc":"2.0","id":-0,"method":"m"}"#, "request 0 m"),
        ("a negative id", r#"{"jsonrpc":"2.0","id":-5,"method":"m"}"#, "request -5 m"),
        (
            "the greatest id",
            r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"m"}"#,
            "request 9223372036854775807 m",
        ),
        (
            "the least id",
            r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"m"}"#,
            "request -9223372036854775808 m",
        ),
        (
            "a number beyond 2^53",
            r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{}}"#,
            "result 9007199254740993 {}",
        ),
        ("an empty string", r#"{"jsonrpc":"2.0","id":"","method":"m"}"#, "request \"\" m"),
        ("a number in a string", r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#, "request \"1\" m"),
        ("a fraction in a string", r#"{"jsonrpc":"2.0","id":"1.5","method":"m"}"#, "request \"1.5\" m"),
        ("null in a string", r#"{"jsonrpc":"2.0","id":"null","method":"m"}"#, "request \"null\" m"),
        ("an escaped string", r#"{"jsonrpc":"2.0","id":"\u0061\n","method":"m"}"#, "request \"a\\n\" m"),
        ("an error without an id", r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, "error ? 1"),
        ("an error with a null id", r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#, "error ? 1"),
        ("an error with an id", r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":""}}"#, "error \"a\" -1"),
    ]);
}

#[test]
fn payloads() {
    check(&[
        (
            "numbers that no machine holds",
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1e400,"b":-1E+99999,"c":123456789012345678901234567890,"d":-0.0e-0}}"#,
            r#"result 1 {"a":1e400,"b":-1E+99999,"c":123456789012345678901234567890,"d":-0.0e-0}"#,
        ),
        (
            "names that differ in case, or in how they are composed",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1,\"A\":2,\"\u{e9}\":3,\"e\u{301}\":4}}",
            "result 1 {\"a\":1,\"A\":2,\"\u{e9}\":3,\"e\u{301}\":4}",
        ),
        (
            "a duplicate further inside",
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1,"b":2}}}"#,
            r#"result 1 {"a":{"b":1,"b":2}}"#,
        ),
        (
            "members of an error that nobody knows",
            r#"{"jsonrpc":"2.0","id":1,"error":{"stack":[],"code":-32000,"message":"m","data":null}}"#,
            "error 1 -32000",
        ),
        (
            "the least code",
            r#"{"jsonrpc":"2.0","error":{"code":-9223372036854775808,"message":"m"}}"#,
            "error ? -9223372036854775808",
        ),
    ]);
    let members: Vec<_> = (0..1024).map(|n| format!("\"{n}\":0")).collect();
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{}}}}}"#, members.join(","));
    check(&[("as many members as are allowed", &text, "notification m")]);
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{}0{}}}}}"#, "[".repeat(126), "]".repeat(126));
    check(&[("as deep as is allowed", &text, "notification m")]);
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","x":[{}]}}"#, vec!["[[{}],[]]"; 10_000].join(","));
    check(&[("wide, but not deep", &text, "notification m")]);
}

#[test]
fn batches() {
    let text = r#" [ {"jsonrpc":"2.0","id":1,"method":"m"} , 5 , {"jsonrpc":"2.0","id":1,"result":{}} , [ ] ,
        {"jsonrpc":"2.0","method":"m"} , {} ] "#;
    let Ok(Incoming::Batch(messages)) = parse(text.as_bytes(), &Limits::default()) else { panic!("a batch") };
    let summaries: Vec<_> =
        messages.iter().map(|message| message.as_ref().map_or_else(|_| "invalid".to_owned(), summary)).collect();
    assert_eq!(summaries, ["request 1 m", "invalid", "result 1 {}", "invalid", "notification m", "invalid"]);
    let one = parse(br#"[{"jsonrpc":"2.0","method":"m"}]"#, &Limits::default());
    assert!(matches!(one, Ok(Incoming::Batch(messages)) if messages.len() == 1), "a batch of one stays a batch");
}
