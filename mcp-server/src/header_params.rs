//! Parameters of tools that clients repeat in HTTP headers: the `x-mcp-header` annotation.

use std::collections::BTreeSet;

use mcp_types::RawObject;
use serde_json::{Map, Value};

/// The annotation in a schema.
const ANNOTATION: &str = "x-mcp-header";

/// Checks the annotations of an input schema (H-62..H-66, H-83).
pub(crate) fn check(schema: &RawObject) -> Result<(), String> {
    if !schema.as_str().contains(ANNOTATION) {
        return Ok(());
    }
    let schema: Map<String, Value> = schema.decode().map_err(|error| error.to_string())?;
    check_object(&schema, &mut BTreeSet::new())
}

/// Looks at an object that is reachable through `properties` alone; nothing else in it may be annotated (H-66).
fn check_object(schema: &Map<String, Value>, names: &mut BTreeSet<String>) -> Result<(), String> {
    for (keyword, value) in schema {
        if keyword != "properties" {
            if mentions(value) {
                return Err(format!("`{ANNOTATION}` under `{keyword}` has no effect; it belongs to a plain property"));
            }
            continue;
        }
        for (property, schema) in value.as_object().into_iter().flatten() {
            let Some(schema) = schema.as_object() else { continue };
            if let Some(header) = schema.get(ANNOTATION) {
                check_property(property, header, schema, names)?;
            }
            let mut rest = schema.clone();
            rest.remove(ANNOTATION);
            check_object(&rest, names)?;
        }
    }
    Ok(())
}

fn check_property(
    property: &str,
    header: &Value,
    schema: &Map<String, Value>,
    names: &mut BTreeSet<String>,
) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("`{ANNOTATION}` of `{property}`: {why}"));
    let Some(name) = header.as_str() else { return wrong("the name of the header must be a string") };
    if name.is_empty() || !name.bytes().all(is_token) {
        return wrong("the name of the header must be one or more letters, digits, or `!#$%&'*+-.^_`|~`");
    }
    if !names.insert(name.to_ascii_lowercase()) {
        return wrong("another property has the same header");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "string" | "boolean") => Ok(()),
        _ => wrong("only integers, strings and booleans can be repeated in a header"),
    }
}

/// RFC 9110: what the name of a header may be made of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn mentions(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(mentions),
        Value::Object(members) => members.contains_key(ANNOTATION) || members.iter().any(|(_, value)| mentions(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(properties: Value) -> Result<(), String> {
        check(&RawObject::new(&json!({ "type": "object", "properties": properties })).unwrap())
    }

    /// H-60, H-66: plain properties, also of objects inside.
    #[test]
    fn plain_properties_may_be_annotated() {
        checked(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "inner": { "type": "object", "properties": { "id": { "type": "integer", "x-mcp-header": "Id" } } },
        }))
        .unwrap();
    }

    /// H-62..H-66: everything else is refused.
    #[test]
    fn other_annotations_are_refused() {
        for properties in [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a b" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a:b" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "ä" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 1 } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
            json!({ "a": { "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
        ] {
            assert!(checked(properties.clone()).is_err(), "{properties}");
        }
        let under_defs = json!({ "type": "object", "$defs": { "a": { "type": "string", "x-mcp-header": "A" } } });
        assert!(check(&RawObject::new(&under_defs).unwrap()).is_err());
    }
}
