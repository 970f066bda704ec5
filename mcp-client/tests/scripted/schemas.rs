//! Results that are checked by the schema of their tool.

use mcp_client::OutputSchema;
use mcp_client::types::{CallToolResult, RawObject, Tool};
use mcp_testkit::{ScriptedServer, Task};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder};

fn schema(schema: Value) -> Result<OutputSchema, String> {
    let mut tool = Tool::new("t");
    tool.output_schema = Some(RawObject::new(&schema).unwrap());
    OutputSchema::of(&tool)
}

fn result(content: Value) -> CallToolResult {
    serde_json::from_value(json!({ "content": [], "structuredContent": content })).unwrap()
}

/// Results are checked by 2020-12 unless the schema says something else.
// covers: TL-7, J-1, J-2, B-54
#[test]
fn results_are_checked() {
    let sum = schema(json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] }));
    let sum = sum.unwrap();
    sum.check(&result(json!({ "sum": 1 }))).unwrap();
    assert!(sum.check(&result(json!({ "sum": "1" }))).unwrap_err().contains("/sum"));
    assert!(sum.check(&CallToolResult::text("no")).unwrap_err().contains("no structured content"));
    sum.check(&CallToolResult::error("too hot")).unwrap();
    OutputSchema::of(&Tool::new("t")).unwrap().check(&CallToolResult::text("anything")).unwrap();
    // `prefixItems` came with 2020-12; before, it was `items`.
    let modern = schema(json!({ "prefixItems": [{ "type": "string" }] })).unwrap();
    assert!(modern.check(&result(json!([1]))).is_err());
    let older = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [{ "type": "string" }] });
    assert!(schema(older).unwrap().check(&result(json!([1]))).is_err());
}

/// What cannot be checked is refused, nothing is fetched, and the cost has a bound.
// covers: J-4, J-6, J-7, J-9, J-10
#[test]
fn schemas_are_bounded() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    let large = json!({ "description": "x".repeat(300_000) });
    for unusable in [
        deep,
        large,
        json!({ "$ref": "http://127.0.0.1:9/schema" }),
        json!({ "$ref": "file:///etc/hostname" }),
        json!({ "$ref": "#/nowhere" }),
        json!({ "$schema": "https://example.com/unheard-of", "type": "object" }),
        json!({ "type": "what" }),
    ] {
        let start: String = unusable.to_string().chars().take(60).collect();
        assert!(schema(unusable).is_err(), "{start}");
    }
}

/// The name by which `serde_json` reads a text as JSON, with a recursion limit of its own.
const RESERVED: &str = "$serde_json::private::RawValue";

/// JSON that is deeper than any stack, if each text in it is read as JSON.
fn hostile() -> String {
    (0..15).fold("1".to_owned(), |inner, _| {
        format!("{}{}{}", "[".repeat(100), json!({ RESERVED: inner }), "]".repeat(100))
    })
}

/// A hostile schema in a list is an invalid answer, and nothing worse.
// covers: SEC-2
#[test]
fn sec_2_a_hostile_schema_does_not_abort_a_client() {
    assert!(hostile().len() > 100_000);
    for kind in KINDS {
        for (client, mut server) in [ScriptedServer::modern(kind, builder()), ScriptedServer::legacy(kind, builder())] {
            let mut listing = Task::start(client.tools().all());
            let request = server.expect_request("tools/list");
            let schema: Value = json!({ "type": "object", "x-mcp-header": 1, "properties": { RESERVED: hostile() } });
            let tool = json!({ "name": "t", "inputSchema": schema });
            server.respond(
                &request,
                json!({ "resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private" }),
            );
            assert!(listing.finish().is_err());
        }
    }
}

/// Neither is one that came another way, and neither is a result.
// covers: SEC-2
#[test]
fn sec_2_hostile_texts_are_not_read_as_trees() {
    let text = format!(r#"{{"type":"object","{RESERVED}":{}}}"#, hostile());
    let mut tool = Tool::new("t");
    tool.output_schema = Some(serde_json::from_str(&text).unwrap());
    // It is only an unknown keyword.
    let _ = OutputSchema::of(&tool);
    let mut result = CallToolResult::text("");
    result.structured_content = Some(serde_json::from_str(&text).unwrap());
    let checked = schema(json!({ "type": "object", "required": ["count"] })).unwrap().check(&result);
    assert!(checked.is_err());
    let bypass = format!(r#"{{"{RESERVED}":"{{\"count\":1}}"}}"#);
    result.structured_content = Some(serde_json::from_str(&bypass).unwrap());
    let checked = schema(json!({ "type": "object", "required": ["count"] })).unwrap().check(&result);
    assert!(checked.unwrap_err().contains("count"));
}
