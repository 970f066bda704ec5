//! What clients repeat in HTTP headers: what a request is about, and parameters of tools with the annotation
//! `x-mcp-header`.

use serde_json::{Map, Value};

use crate::{Method, RawObject};

/// The annotation in a schema.
const ANNOTATION: &str = "x-mcp-header";

/// A parameter of a tool that clients repeat in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderParam {
    /// The name of the header, without `Mcp-Param-`.
    pub name: String,
    /// Where the value is in the arguments: the names of the properties, from the outermost to its own.
    pub path: Vec<String>,
}

impl Method {
    /// The member of the parameters that says what a request is about: it is repeated in a header (H-47, H-48).
    #[must_use]
    pub fn name_member(&self) -> Option<&'static str> {
        match self.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
            _ => None,
        }
    }
}

impl HeaderParam {
    /// Finds the annotations of an input schema, and checks them (H-62..H-66).
    ///
    /// # Errors
    ///
    /// Says what is wrong with the first that breaks a rule.
    pub fn find(schema: &RawObject) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        if schema.as_str().contains(ANNOTATION) {
            let schema: Map<String, Value> = schema.decode().map_err(|error| error.to_string())?;
            find_in(&schema, &mut Vec::new(), &mut found)?;
        }
        Ok(found)
    }

    /// What the header says: the value in the arguments of a call, as text. Nothing, where there is none or `null`
    /// (H-70, H-71).
    #[must_use]
    pub fn value(&self, arguments: &RawObject) -> Option<String> {
        let mut at: Value = arguments.decode().ok()?;
        for name in &self.path {
            at = at.as_object_mut()?.remove(name)?;
        }
        match at {
            Value::String(text) => Some(text),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Looks at an object that is reachable through `properties` alone; nothing else in it may be annotated (H-66).
fn find_in(schema: &Map<String, Value>, path: &mut Vec<String>, found: &mut Vec<HeaderParam>) -> Result<(), String> {
    for (keyword, value) in schema {
        if keyword != "properties" {
            if mentions(value) {
                return Err(format!("`{ANNOTATION}` under `{keyword}` has no effect; it belongs to a plain property"));
            }
            continue;
        }
        for (property, schema) in value.as_object().into_iter().flatten() {
            let Some(schema) = schema.as_object() else { continue };
            path.push(property.clone());
            if let Some(header) = schema.get(ANNOTATION) {
                let name = check_property(property, header, schema, found)?;
                found.push(HeaderParam { name, path: path.clone() });
            }
            let mut rest = schema.clone();
            rest.remove(ANNOTATION);
            find_in(&rest, path, found)?;
            path.pop();
        }
    }
    Ok(())
}

fn check_property(
    property: &str,
    header: &Value,
    schema: &Map<String, Value>,
    found: &[HeaderParam],
) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("`{ANNOTATION}` of `{property}`: {why}"));
    let Some(name) = header.as_str() else { return wrong("the name of the header must be a string") };
    if name.is_empty() || !name.bytes().all(is_token) {
        return wrong("the name of the header must be one or more letters, digits, or `!#$%&'*+-.^_`|~`");
    }
    if found.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
        return wrong("another property has the same header");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "string" | "boolean") => Ok(name.to_owned()),
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

    fn found(properties: Value) -> Result<Vec<HeaderParam>, String> {
        HeaderParam::find(&RawObject::new(&json!({ "type": "object", "properties": properties })).unwrap())
    }

    /// H-60, H-66: plain properties, also of objects inside.
    #[test]
    fn plain_properties_may_be_annotated() {
        let params = found(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "inner": { "type": "object", "properties": { "id": { "type": "integer", "x-mcp-header": "Id" } } },
            "plain": { "type": "string" },
        }));
        let mut params: Vec<_> = params.unwrap().into_iter().map(|param| (param.name, param.path.join("."))).collect();
        params.sort();
        assert_eq!(params, [("Id".into(), "inner.id".into()), ("Region".into(), "region".to_owned())]);
    }

    /// H-70, H-71: text as it is, numbers and booleans as JSON writes them, and nothing for what is not there.
    #[test]
    fn values_become_text() {
        let param =
            |path: &[&str]| HeaderParam { name: "A".into(), path: path.iter().map(|&name| name.into()).collect() };
        let arguments =
            json!({ "text": " a", "count": 42, "yes": true, "none": null, "in": { "er": "x" }, "list": [] });
        let arguments = RawObject::new(&arguments).unwrap();
        let value = |path: &[&str]| param(path).value(&arguments);
        assert_eq!(value(&["text"]).as_deref(), Some(" a"));
        assert_eq!(value(&["count"]).as_deref(), Some("42"));
        assert_eq!(value(&["yes"]).as_deref(), Some("true"));
        assert_eq!(value(&["in", "er"]).as_deref(), Some("x"));
        for path in [&["none"][..], &["missing"], &["list"], &["in"], &["text", "er"]] {
            assert_eq!(value(path), None, "{path:?}");
        }
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
            assert!(found(properties.clone()).is_err(), "{properties}");
        }
        let under_defs = json!({ "type": "object", "$defs": { "a": { "type": "string", "x-mcp-header": "A" } } });
        assert!(HeaderParam::find(&RawObject::new(&under_defs).unwrap()).is_err());
    }
}
