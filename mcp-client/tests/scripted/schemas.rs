//! Results that are checked by the schema of their tool.

use mcp_client::OutputSchema;
use mcp_client::types::{CallToolResult, RawObject, Tool};
use serde_json::{Value, json};

fn schema(schema: Value) -> Result<OutputSchema, String> {
    let mut tool = Tool::new("t");
    tool.output_schema = Some(RawObject::new(&schema).unwrap());
    OutputSchema::of(&tool)
}

fn result(content: Value) -> CallToolResult {
    serde_json::from_value(json!({ "content": [], "structuredContent": content })).unwrap()
}

/// TL-7, J-1, J-2: results are checked by 2020-12 unless the schema says something else.
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

/// J-4, J-6, J-7, J-9, J-10: what cannot be checked is refused, nothing is fetched, and the cost has a bound.
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
