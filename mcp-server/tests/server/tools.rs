//! Tools: what clients see of them, how they are called, and what they may return.

use mcp_server::types::{CallToolResult, ContentBlock, ErrorObject, RawObject, Revision, ToolAnnotations};
use mcp_server::{ArgumentErrors, HandlerError, Json, NoArguments, Tool, raw_tool, tool};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

fn add() -> Tool {
    tool("add", async |_, Add { a, b }: Add| Json(Sum { sum: a + b }))
}

/// Schemas follow from types, and a tool without arguments says so.
// covers: TL-1, TL-3, TL-4
#[test]
fn tools_are_described_by_their_types() {
    let annotated = tool("nothing", async |_, _: NoArguments| ())
        .title("Nothing")
        .description("Does nothing")
        .annotations(ToolAnnotations::default().read_only_hint(true));
    let server = server(|server| server.tool(add()).tool(annotated));
    for revision in Revision::ALL {
        let listed = ScriptedClient::new(&server, revision).result("tools/list", json!({}));
        let [add, nothing] = [&listed["tools"][0], &listed["tools"][1]];
        assert_eq!(add["name"], "add");
        assert_eq!(add["inputSchema"]["properties"]["a"]["description"], "The first number.");
        assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
        assert_eq!(nothing["inputSchema"], json!({ "type": "object", "additionalProperties": false }));
        assert_eq!(nothing["description"], "Does nothing");
        assert_eq!(nothing.get("title").is_some(), revision >= Revision::V2025_06_18, "{revision}");
        assert_eq!(nothing.get("annotations").is_some(), revision >= Revision::V2025_03_26, "{revision}");
        assert_eq!(listed.get("nextCursor"), None);
    }
}

/// Tools are listed in the order in which they came.
// covers: TL-2
#[test]
fn tools_keep_their_order() {
    let names = ["zebra", "ant", "mole", "bee"];
    let server = server(|server| {
        names.into_iter().fold(server, |server, name| server.tool(tool(name, async |_, _: NoArguments| ())))
    });
    let listed = ScriptedClient::new(&server, MODERN).result("tools/list", json!({}));
    let listed: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(listed, names);
}

/// A typed result is structured content, and the same as text for those who know no other.
// covers: TL-6, TL-8, TL-9, B-47
#[test]
fn typed_results_are_structured_where_the_revision_has_it() {
    let server = server(|server| server.tool(add()));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let known = revision >= Revision::V2025_06_18;
        let result = client.call_tool("add", json!({ "a": 1, "b": 2 }));
        assert_eq!(result["content"][0]["text"], r#"{"sum":3}"#, "{revision}");
        assert_eq!(result.get("structuredContent").is_some(), known, "{revision}");
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"][0].get("outputSchema").is_some(), known, "{revision}");
        client.assert_quiet();
    }
}

/// Results that are no objects are structured content of the modern era alone.
// covers: TL-5, TL-8
#[test]
fn results_need_not_be_objects() {
    let server = server(|server| server.tool(tool("list", async |_, _: NoArguments| Json(vec![1, 2]))));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let result = client.call_tool("list", json!({}));
        assert_eq!(result["content"][0]["text"], "[1,2]");
        let expected = (revision == MODERN).then(|| json!([1, 2]));
        assert_eq!(result.get("structuredContent"), expected.as_ref(), "{revision}");
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"][0].get("outputSchema").is_some(), revision == MODERN, "{revision}");
    }
}

/// Wrong arguments are for the model to read, and the member that is wrong has its name in the text.
// covers: AMB-2, TL-16, B-55
#[test]
fn wrong_arguments_are_a_result_that_names_the_member() {
    let server = server(|server| server.tool(add()));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let result = client.call_tool("add", json!({ "a": 1, "b": "two" }));
        assert_eq!(result["isError"], true, "{revision}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("invalid arguments: ") && text.contains("`b`"), "{text}");
        assert!(client.call_tool_text("add", json!({ "a": 1 })).contains("missing field `b`"));
    }
}

/// The other reading of the specification can be chosen.
// covers: AMB-2, B-55
#[test]
fn wrong_arguments_can_be_an_error() {
    let server = server(|server| server.tool(add()).argument_errors(ArgumentErrors::AsError));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let params = json!({ "name": "add", "arguments": { "a": 1, "b": "two" } });
        let error = client.error("tools/call", params, -32602);
        assert!(error["message"].as_str().unwrap().contains("`b`"), "{error}");
        assert_eq!(client.call_tool("add", json!({ "a": 1, "b": 2 }))["isError"], Value::Null);
    }
}

/// An unknown tool, and a request that is not one, are errors of the protocol.
// covers: TL-15
#[test]
fn malformed_calls_are_errors() {
    let server = server(|server| server.tool(add()));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let unknown = client.error("tools/call", json!({ "name": "subtract" }), -32602);
        assert_eq!(unknown["message"], "Unknown tool: subtract");
        let nameless = client.error("tools/call", json!({ "arguments": {} }), -32602);
        assert_eq!(nameless["message"], "missing field `name`");
        client.error("tools/call", json!({ "name": 1 }), -32602);
        for arguments in [json!([]), json!("a"), json!(1), json!(false)] {
            let error = client.error("tools/call", json!({ "name": "add", "arguments": arguments }), -32602);
            assert_eq!(error["message"], "`arguments`: expected an object");
        }
    }
}

/// Arguments that are absent or `null` are none, and what a revision does not know is ignored.
// covers: G-7, TL-25
#[test]
fn absent_arguments_are_none() {
    let server = server(|server| server.tool(tool("now", async |_, _: NoArguments| "noon")));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for params in [
            json!({ "name": "now" }),
            json!({ "name": "now", "arguments": null }),
            json!({ "name": "now", "arguments": {}, "task": { "ttl": 1 } }),
        ] {
            assert_eq!(client.result("tools/call", params)["content"][0]["text"], "noon");
        }
    }
    let escaped = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"n\u006fw","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut client = ScriptedClient::new(&server, MODERN);
    client.send_text(escaped);
    client.run();
    assert_eq!(client.response_to(9)["result"]["content"][0]["text"], "noon");
}

/// A tool returns what it likes, and an error is for the model unless it is the protocol's own.
// covers: TL-10, TL-16, TL-22
#[test]
fn tools_return_what_they_like() {
    let server = server(|server| {
        server
            .tool(tool("unit", async |_, _: NoArguments| ()))
            .tool(tool("blocks", async |_, _: NoArguments| vec![ContentBlock::text("a"), ContentBlock::text("b")]))
            .tool(tool("all", async |_, _: NoArguments| CallToolResult::text("all")))
            .tool(tool("failed", async |_, _: NoArguments| Err::<String, _>(HandlerError::new("no such file"))))
            .tool(tool("refused", async |_, _: NoArguments| {
                Err::<String, HandlerError>(ErrorObject::invalid_params("not that one").into())
            }))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    assert_eq!(client.call_tool("unit", json!({}))["content"], json!([]));
    assert_eq!(client.call_tool("blocks", json!({}))["content"][1]["text"], "b");
    assert_eq!(client.call_tool_text("all", json!({})), "all");
    let failed = client.call_tool("failed", json!({}));
    assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("no such file")));
    let refused = client.error("tools/call", json!({ "name": "refused" }), -32602);
    assert_eq!(refused["message"], "not that one");
}

/// A tool with a schema of its own gets the arguments as they are, down to the digits.
// covers: TL-3
#[test]
fn raw_tools_get_what_was_sent() {
    let schema = RawObject::new(&json!({ "type": "object", "$comment": "kept" })).unwrap();
    let raw = raw_tool("raw", schema, async |_, arguments: RawObject| arguments.as_str().to_owned());
    let server = server(|server| server.tool(raw));
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"][0]["inputSchema"], json!({ "type": "object", "$comment": "kept" }));
        assert_eq!(client.call_tool_text("raw", json!({ "big": 1.50, "x": [null] })), r#"{"big":1.5,"x":[null]}"#);
    }
}

/// Arguments and results of raw tools keep to their schemas, whatever the handler does.
// covers: J-1, TL-6, S3.F16
#[cfg(feature = "validate")]
#[test]
fn schemas_are_kept() {
    let object = |value: Value| RawObject::new(&value).unwrap();
    let input = object(json!({
        "type": "object", "properties": { "give": { "enum": ["right", "wrong", "text", "failure"] } }, "required": ["give"],
    }));
    let output =
        object(json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] }));
    let give = raw_tool("give", input, async |_, arguments: RawObject| {
        let arguments: Value = arguments.decode().unwrap();
        match arguments["give"].as_str() {
            Some("right") => CallToolResult::structured(&json!({ "sum": 1 })).unwrap(),
            Some("wrong") => CallToolResult::structured(&json!({ "sum": "one" })).unwrap(),
            Some("text") => CallToolResult::text("one"),
            _ => CallToolResult::error("it failed"),
        }
    });
    let server = server(|server| server.tool(give.output_schema(output)));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let invalid = client.call_tool("give", json!({ "give": "more" }));
        assert_eq!(invalid["isError"], true);
        assert!(invalid["content"][0]["text"].as_str().unwrap().contains("`give`"), "{invalid}");
        assert_eq!(client.call_tool_text("give", json!({ "give": "right" })), r#"{"sum":1}"#);
        for broken in ["wrong", "text"] {
            client.error("tools/call", json!({ "name": "give", "arguments": { "give": broken } }), -32603);
        }
        assert_eq!(client.call_tool("give", json!({ "give": "failure" }))["isError"], true);
    }
}

/// The name by which `serde_json` reads a text as JSON, with a recursion limit of its own.
const RESERVED: &str = "$serde_json::private::RawValue";

/// Deeper than any stack, if each text is read as JSON.
fn hostile() -> Value {
    let nested = (0..12).fold("1".to_owned(), |inner, _| {
        format!("{}{}{}", "[".repeat(100), json!({ RESERVED: inner }), "]".repeat(100))
    });
    json!({ RESERVED: nested })
}

/// A schema must not be satisfied by what only the validator sees, and no tree may be deeper than the message that it came
/// in: the names are refused, wherever the arguments go.
// covers: SEC-2
#[test]
fn sec_2_reserved_names_in_arguments_are_refused() {
    #[derive(Deserialize, JsonSchema)]
    struct Any {
        #[expect(dead_code, reason = "it is only read")]
        any: Value,
    }
    let schema = json!({ "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] });
    let raw = raw_tool("raw", RawObject::new(&schema).unwrap(), async |_, _: RawObject| "raw");
    let server = server(|server| server.tool(raw).tool(tool("any", async |_, _: Any| "any")));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let bypass = json!({ RESERVED: "{\"count\":1}" });
        for (name, arguments) in [
            ("raw", bypass),
            ("raw", hostile()),
            ("raw", json!({ "count": 1, "more": [hostile()] })),
            ("any", json!({ "any": hostile() })),
            ("any", json!({ "any": { "$serde_json::private::Number": "1" } })),
        ] {
            client.error("tools/call", json!({ "name": name, "arguments": arguments }), -32600);
        }
        assert_eq!(client.call_tool_text("raw", json!({ "count": 1, "text": RESERVED })), "raw");
    }
}

/// Constraints that types do not have are enforced, in the words of all argument errors.
// covers: AUT-7
#[cfg(feature = "validate")]
#[test]
fn aut_7_constraints_are_enforced() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Order {
        #[schemars(range(min = 1, max = 8))]
        seats: u8,
        #[schemars(length(min = 2, max = 5))]
        name: Option<String>,
        #[schemars(regex(pattern = "^[A-Z]{3}$"))]
        code: Option<String>,
        #[schemars(email)]
        mail: Option<String>,
        #[schemars(length(max = 2), inner(range(min = 10)))]
        rows: Option<Vec<i64>>,
    }
    let order = || tool("order", async |_, _: Order| "ordered");
    let with_fn = mcp_server::tool_fn("order_fn", async |_: Order| "ordered");
    let server_of = |errors| server(|server| server.tool(order()).argument_errors(errors));
    let both = server(|server| server.tool(order()).tool(with_fn));
    for revision in [LEGACY[3], MODERN] {
        let mut client = ScriptedClient::new(&both, revision);
        for name in ["order", "order_fn"] {
            let good = json!({ "seats": 8, "name": "Ann", "code": "ABC", "mail": "ann@example.com", "rows": [10, 11] });
            assert_eq!(client.call_tool_text(name, good), "ordered");
            assert_eq!(client.call_tool_text(name, json!({ "seats": 1, "name": null })), "ordered");
            for (member, value) in [
                ("seats", json!(9)),
                ("seats", json!(0)),
                ("name", json!("A")),
                ("name", json!("Annabel")),
                ("code", json!("abc")),
                ("mail", json!("nobody")),
                ("rows", json!([10, 11, 12])),
                ("rows/1", json!([10, 9])),
            ] {
                let mut arguments = json!({ "seats": 1 });
                arguments[member.trim_end_matches("/1")] = value;
                let result = client.call_tool(name, arguments);
                let text = result["content"][0]["text"].as_str().unwrap();
                assert_eq!(result["isError"], true, "{text}");
                assert!(text.starts_with(&format!("invalid arguments: `{member}`: ")), "{text}");
            }
        }
        let mut client = ScriptedClient::new(&server_of(ArgumentErrors::AsError), revision);
        let params = json!({ "name": "order", "arguments": { "seats": 9 } });
        client.error("tools/call", params, -32602);
    }
}

/// A pattern that cannot be used is told when the server is built.
// covers: AUT-7
#[cfg(feature = "validate")]
#[test]
fn aut_7_constraints_must_be_valid() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Broken {
        #[schemars(regex(pattern = "("))]
        code: String,
    }
    let refusal = crate::servers::refused(|server| server.tool(tool("broken", async |_, _: Broken| "")));
    assert!(refusal.to_string().starts_with("the tool `broken`: "), "{refusal}");
}

/// Structured content with blocks of its own.
// covers: AUT-11
#[test]
fn aut_11_structured_content_may_have_other_blocks() {
    let add = tool("add", async |_, Add { a, b }: Add| {
        Ok::<_, HandlerError>((Json(Sum { sum: a + b }), vec![ContentBlock::text(format!("{a} + {b} = {}", a + b))]))
    });
    let server = server(|server| server.tool(add));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let result = client.call_tool("add", json!({ "a": 1, "b": 2 }));
        assert_eq!(result["content"], json!([{ "type": "text", "text": "1 + 2 = 3" }]));
        let known = revision >= Revision::V2025_06_18;
        assert_eq!(result.get("structuredContent"), known.then(|| json!({ "sum": 3 })).as_ref(), "{revision}");
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"][0].get("outputSchema").is_some(), known, "{revision}");
    }
}

/// Multiplies two numbers.
///
/// Exactly.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Multiply {
    a: i64,
}

// covers: AUT-11
#[test]
fn aut_11_doc_comments_describe_tools() {
    let server = server(|server| {
        server
            .tool(tool("described", async |_, _: Multiply| ()))
            .tool(tool("by hand", async |_, _: Multiply| ()).description("By hand"))
            .tool(mcp_server::tool_fn("function", async |_: Multiply| ()))
            .tool(tool("not", async |_, _: Add| ()))
    });
    for revision in Revision::ALL {
        let listed = ScriptedClient::new(&server, revision).result("tools/list", json!({}));
        let described = json!("Multiplies two numbers.\n\nExactly.");
        for (index, expected) in [&described, &json!("By hand"), &described, &Value::Null].into_iter().enumerate() {
            assert_eq!(&listed["tools"][index]["description"], expected);
            assert_eq!(listed["tools"][index]["inputSchema"].get("description"), None);
        }
    }
}
