//! Raw JSON of handlers and of the server's description: however it is written, what is sent is one line.

use mcp_kernel::CallOptions;
use mcp_kernel::server::{Connection, Responder, Route, ServerConfig};
use mcp_testkit::envelope::{initialize, modern_request, request};
use mcp_types::{
    CallToolResult, ErrorObject, Implementation, ListToolsResult, LoggingLevel, Method, RawJson, RawObject, Tool,
};
use serde_json::{Value, json};

use crate::script::{Script, config};

const LINES: &str = "{\"type\":\"object\",\n\"b\":\r{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"ping\"}\n}";

fn lines() -> RawObject {
    RawObject::parse(LINES).expect("an object")
}

fn meant() -> Value {
    lines().decode().expect("JSON")
}

impl Script {
    /// The next message, which must be one line.
    fn line(&mut self) -> (Route, Value) {
        let transmit = self.connection.poll_transmit().expect("a message");
        assert!(!transmit.message.contains(&b'\n') && !transmit.message.contains(&b'\r'), "{transmit:?}");
        (transmit.route, serde_json::from_slice(&transmit.message).expect("JSON"))
    }
}

type Answer = fn(&mut Connection, Responder);

/// Results of all kinds, in both eras: structured content, schemas, `requestState`, raw results, the data of errors.
// covers: SEC-1
#[test]
fn sec_1_answers_are_sent_on_one_line() {
    let answers: [(&str, Answer, &str); 4] = [
        (
            "tools/call",
            |connection, responder| {
                let mut result = CallToolResult::text("two\nlines");
                result.structured_content = Some(lines().into());
                let _ = connection.respond(responder, Ok(result));
            },
            "/result/structuredContent",
        ),
        (
            "tools/list",
            |connection, responder| {
                let tool = Tool::new("a").input_schema(lines());
                let _ = connection.respond(responder, Ok(ListToolsResult::new(vec![tool])));
            },
            "/result/tools/0/inputSchema",
        ),
        (
            "tools/call",
            |connection, responder| {
                let result = RawObject::parse(&format!("{{\"content\":\n[],\n\"own\":{LINES}\n}}")).expect("an object");
                let _ = connection.respond_raw(responder, &result);
            },
            "/result/own",
        ),
        (
            "tools/call",
            |connection, responder| {
                let error = ErrorObject::internal_error("two\nlines").raw_data(lines().into());
                let _ = connection.respond::<CallToolResult>(responder, Err(error));
            },
            "/error/data",
        ),
    ];
    for (method, answer, place) in answers {
        for is_modern in [false, true] {
            let mut script = Script::initialized("2025-11-25");
            let params = json!({ "name": "a" });
            script.send(if is_modern { modern_request(1, method, params) } else { request(1, method, params) });
            let asked = script.asked();
            answer(&mut script.connection, asked.responder);
            assert_eq!(script.line().1.pointer(place), Some(&meant()), "{method}");
        }
    }
}

/// What a handler tells or asks on the way.
// covers: SEC-1
#[test]
fn sec_1_what_is_told_and_asked_is_sent_on_one_line() {
    let mut script = Script::initialized_with(config(), "2025-11-25", json!({ "roots": {} }));
    script.send(request(1, "tools/call", json!({ "name": "a" })));
    let key = script.asked().key();
    let (now, connection) = (script.now(), &mut script.connection);
    let _ = connection.log(Some(key), LoggingLevel::Error, lines(), None);
    let _ = connection.notify(Some(key), &Method::from("notifications/own"), &lines()).expect("told");
    let ask = connection.call(now, Some(key), Method::ROOTS_LIST, &lines(), CallOptions::default());
    ask.expect("a question");
    for place in ["/params/data", "/params", "/params"] {
        let (_, sent) = script.line();
        assert_eq!(sent.pointer(place).map(|sent| &sent["b"]), Some(&meant()["b"]), "{sent}");
    }
}

/// What the server says about itself: in the handshake, in `server/discover`, and with every modern result.
// covers: SEC-1
#[test]
fn sec_1_descriptions_are_sent_on_one_line() {
    let mut config = config();
    config.capabilities.experimental.get_or_insert_default().insert("own", lines());
    config.capabilities.extra.insert("other", RawJson::parse("[1,\n2]").expect("JSON"));
    let mut script = Script::with(config);
    script.send(initialize(1, "2025-11-25", json!({})));
    assert_eq!(script.line().1["result"]["capabilities"]["experimental"]["own"], meant());
    script.send(modern_request(2, "server/discover", json!({})));
    assert_eq!(script.line().1["result"]["capabilities"]["other"], json!([1, 2]));
    let mut info: Implementation =
        serde_json::from_value(json!({ "name": "demo", "version": "1\n2" })).expect("an implementation");
    info.description = Some("two\nlines".to_owned());
    let config = ServerConfig::new(info, crate::script::config().capabilities);
    let mut script = Script::with(config);
    script.send(modern_request(3, "tools/call", json!({ "name": "a" })));
    let responder = script.asked().responder;
    let _ = script.connection.respond(responder, Ok(CallToolResult::text("")));
    let sent = script.line().1;
    assert_eq!(sent["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], "1\n2");
}
