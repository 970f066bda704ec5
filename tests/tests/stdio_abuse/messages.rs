//! Single messages that are wrong in some way, between requests that are right.

use serde_json::{Value, json};

use crate::harness::{Peer, call, clipped, code, modern, request};
use crate::rounds::rounds;
use crate::tally::repeated;

/// What is answered to something wrong.
#[derive(Debug)]
enum Want {
    /// Nothing at all.
    Silence,
    /// One error with this code, for this id; `null` where the id is missing or is that.
    Error(i64, Value),
    /// One result for this id.
    Answer(Value),
}

use Want::{Answer, Error, Silence};

type Row = (&'static str, Vec<u8>, Want);

const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const PARAMS: i64 = -32602;

fn check(name: &str, mut peer: Peer, mut rows: Vec<Row>) {
    for (_, line, _) in &mut rows {
        line.push(b'\n');
    }
    rounds(name, &mut peer, |peer| {
        let wrong: Vec<String> = rows.iter().filter_map(|row| fault(peer, row)).collect();
        assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        repeated(rows.len(), "messages")
    });
    peer.finish();
}

/// Sends something wrong; returns what is wrong with the answer.
fn fault(peer: &mut Peer, (name, line, want): &Row) -> Option<String> {
    let answers = peer.between(line);
    let is_right = match (want, answers.as_slice()) {
        (Silence, []) => true,
        (Error(expected, id), [answer]) => {
            answer.get("error").is_some()
                && code(answer) == *expected
                && *answer.get("id").unwrap_or(&Value::Null) == *id
        }
        (Answer(id), [answer]) => answer.get("result").is_some() && answer["id"] == *id,
        (Silence | Error(..) | Answer(_), _) => false,
    };
    let answers: Vec<String> = answers.iter().map(clipped).collect();
    (!is_right).then(|| format!("{name}: wanted {want:?}, got {answers:#?}"))
}

fn row(name: &'static str, line: impl Into<Vec<u8>>, want: Want) -> Row {
    (name, line.into(), want)
}

fn sent(name: &'static str, message: &Value, want: Want) -> Row {
    (name, message.to_string().into(), want)
}

/// Texts that are no JSON, or no message.
fn texts() -> Vec<Row> {
    let null = || Value::Null;
    let nested = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    vec![
        row("no JSON at all", "hello", Error(PARSE, null())),
        row("a member without value", r#"{"jsonrpc":"2.0","id":1,"method":}"#, Error(PARSE, json!(1))),
        row("half a message", r#"{"jsonrpc":"2.0","id":1,"meth"#, Error(PARSE, json!(1))),
        row(
            "two messages on a line",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0"}"#,
            Error(PARSE, json!(1)),
        ),
        row("a trailing comma", r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, Error(PARSE, json!(1))),
        row("a comment", r#"{"jsonrpc":"2.0","id":1,"method":"ping"/**/}"#, Error(PARSE, json!(1))),
        row("NUL bytes alone", vec![0; 1000], Error(PARSE, null())),
        row("a NUL byte in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\0ng\"}", Error(PARSE, json!(1))),
        row(
            "a NUL byte after a message",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\0",
            Error(PARSE, json!(1)),
        ),
        row("bytes that are not UTF-8", vec![0xff, 0xfe, b'{', b'}'], Error(PARSE, null())),
        row(
            "UTF-8 cut off",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xf0\x9f\"}".to_vec(),
            Error(PARSE, json!(1)),
        ),
        row("a lone surrogate", r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, Error(PARSE, json!(1))),
        row("UTF-16", "{\0}\0".as_bytes(), Error(PARSE, null())),
        row("a byte order mark", "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", Error(PARSE, null())),
        row("depth 126", nested(126), Answer(json!(1))),
        row("depth 127", nested(127), Error(INVALID, json!(1))),
        row("depth 1,000,000", nested(1_000_000), Error(INVALID, json!(1))),
        row("depth 1,000,000 at once", "[".repeat(1_000_000), Error(INVALID, null())),
        row("empty lines", "\n\n\n", Silence),
        row("blank lines", "  \t \r\n \r\n\r\r", Silence),
        row("CRLF", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", Answer(json!(1))),
        row("spaces around", "  \t {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}  ", Answer(json!(1))),
        row("a number", "42", Error(INVALID, null())),
        row("a string", r#""ping""#, Error(INVALID, null())),
        row("null", "null", Error(INVALID, null())),
        row("an empty object", "{}", Error(INVALID, null())),
        row("an empty batch", "[]", Error(INVALID, null())),
        row(
            "a batch of a thousand",
            format!("[{}1]", r#"{"jsonrpc":"2.0","id":1,"method":"ping"},"#.repeat(999)),
            Error(INVALID, null()),
        ),
        row("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Error(INVALID, null())),
    ]
}

/// Envelopes with something wrong in them.
fn envelopes() -> Vec<Row> {
    let null = || Value::Null;
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let long = "7".repeat(1_000_000);
    vec![
        row("no version", r#"{"id":1,"method":"ping"}"#, Error(INVALID, json!(1))),
        row("version 1.0", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Error(INVALID, json!(1))),
        row("a version that is a number", r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Error(INVALID, json!(1))),
        row("a member twice", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Error(INVALID, null())),
        row("a method twice", r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, Error(INVALID, json!(1))),
        row("an id that is null", with_id("null"), Error(INVALID, null())),
        row("an id that is a fraction", with_id("1.5"), Error(INVALID, null())),
        row("an id that is a whole fraction", with_id("7.0"), Error(INVALID, null())),
        row("an id with an exponent", with_id("1e400"), Error(INVALID, null())),
        row("an id beyond 64 bits", with_id("123456789012345678901234567890"), Error(INVALID, null())),
        row("the greatest id", with_id("9223372036854775807"), Answer(json!(i64::MAX))),
        row("the least id", with_id("-9223372036854775808"), Answer(json!(i64::MIN))),
        row("an id of a million digits", with_id(&long), Error(INVALID, null())),
        row("an id that is a boolean", with_id("true"), Error(INVALID, null())),
        row("an id that is an object", with_id("{}"), Error(INVALID, null())),
        row("an empty id", with_id(r#""""#), Answer(json!(""))),
        row("a long id", with_id(&format!("{:?}", "i".repeat(1024))), Answer(json!("i".repeat(1024)))),
        row("too long an id", with_id(&format!("{:?}", "i".repeat(1025))), Error(INVALID, json!("i".repeat(1025)))),
        row("an id of 1 MB", with_id(&format!("{long:?}")), Error(INVALID, json!(long))),
        row("an escaped NUL byte", r#"{"jsonrpc":"2.0","id":1,"method":"pi\u0000ng"}"#, Error(NO_METHOD, json!(1))),
        row("an empty method", r#"{"jsonrpc":"2.0","id":1,"method":""}"#, Error(INVALID, json!(1))),
        row("a method that is a number", r#"{"jsonrpc":"2.0","id":1,"method":1}"#, Error(INVALID, json!(1))),
        row(
            "parameters in an array",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            Error(PARAMS, json!(1)),
        ),
        row(
            "parameters in a string",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
            Error(PARAMS, json!(1)),
        ),
        row("a result for a request of nobody", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Silence),
        row("an error for a request of nobody", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, Silence),
        row("an error for nobody", r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, Silence),
        row("result and error", r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, Silence),
        row("a notification that nobody knows", r#"{"jsonrpc":"2.0","method":"notifications/what"}"#, Silence),
        row("a notification for clients", r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#, Silence),
        row("a request as notification", r#"{"jsonrpc":"2.0","method":"tools/list"}"#, Silence),
        row(
            "progress of nothing",
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
            Silence,
        ),
        row("a cancellation of nothing", r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, Silence),
        row(
            "a cancellation of null",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
            Silence,
        ),
        row("a method of 1 MB", with_id("1").replace("ping", &long), Error(NO_METHOD, json!(1))),
    ]
}

/// Requests that are well formed and ask for what is not there.
fn requests() -> Vec<Row> {
    let of = |method, params| request(1, method, params);
    let long = format!("test:{}", "u".repeat(9000));
    vec![
        sent("an unknown method", &of("tools/what", json!({})), Error(NO_METHOD, json!(1))),
        sent("a method of the client", &of("roots/list", json!({})), Error(NO_METHOD, json!(1))),
        sent("a capability that is not there", &of("prompts/list", json!({})), Error(NO_METHOD, json!(1))),
        sent("an unknown tool", &call(1, "what", json!({})), Error(PARAMS, json!(1))),
        sent("a tool without name", &of("tools/call", json!({})), Error(PARAMS, json!(1))),
        sent("a name that is a number", &of("tools/call", json!({"name": 1})), Error(PARAMS, json!(1))),
        sent("arguments in an array", &call(1, "echo", json!(["x"])), Error(PARAMS, json!(1))),
        sent("arguments of the wrong type", &call(1, "echo", json!({"text": 1})), Answer(json!(1))),
        sent("a number that is too large", &call(1, "slow", json!({"ms": 1e300})), Answer(json!(1))),
        sent(
            "a resource that is not there",
            &of("resources/read", json!({"uri": "no:where"})),
            Error(-32002, json!(1)),
        ),
        sent("an address of the wrong type", &of("resources/read", json!({"uri": {}})), Error(PARAMS, json!(1))),
        sent("a cursor of nobody", &of("tools/list", json!({"cursor": "\u{0}"})), Error(PARAMS, json!(1))),
        sent("a level that is none", &of("logging/setLevel", json!({"level": "loud"})), Error(PARAMS, json!(1))),
        sent("metadata in an array", &of("ping", json!({"_meta": []})), Error(PARAMS, json!(1))),
        sent("too much metadata", &of("ping", json!({"_meta": {"x": long.repeat(8)}})), Error(PARAMS, json!(1))),
        sent(
            "a token that is an object",
            &of("ping", json!({"_meta": {"progressToken": {}}})),
            Error(PARAMS, json!(1)),
        ),
        sent(
            "a subscription with a huge address",
            &of("resources/subscribe", json!({"uri": long})),
            Error(PARAMS, json!(1)),
        ),
        sent(
            "a modern version of nobody",
            &of(
                "ping",
                json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01",
            "io.modelcontextprotocol/clientCapabilities": {}}}),
            ),
            Error(-32022, json!(1)),
        ),
        sent(
            "half an envelope",
            &of("tools/list", json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})),
            Error(PARAMS, json!(1)),
        ),
        sent(
            "listening with a huge address",
            &modern(of("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [long]}}))),
            Error(PARAMS, json!(1)),
        ),
        sent(
            "initialize once more",
            &of(
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}),
            ),
            Error(INVALID, json!(1)),
        ),
        row(
            "huge numbers",
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{}e{}}}}}"#,
                "9".repeat(10_000),
                "9".repeat(10_000)
            ),
            Answer(json!(1)),
        ),
        row(
            "more members than anybody has",
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":1{}}}}}"#,
                (0..2000).map(|n| format!(r#","x{n}":1"#)).collect::<String>()
            ),
            Error(INVALID, json!(1)),
        ),
    ]
}

#[test]
fn texts_that_are_no_messages() {
    check("texts that are no messages", Peer::legacy(), texts());
}

#[test]
fn texts_that_are_no_messages_before_any_handshake() {
    check("texts that are no messages, before any handshake", Peer::start(), texts());
}

#[test]
fn envelopes_with_faults() {
    check("envelopes with faults", Peer::legacy(), envelopes());
}

#[test]
fn requests_for_what_is_not_there() {
    check("requests for what is not there", Peer::legacy(), requests());
}
