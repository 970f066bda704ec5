//! Results that keep what their tool promised (TL-7).

use jsonschema::{Draft, Validator};
use mcp_types::{CallToolResult, RawObject, Tool};
use serde_json::Value;

/// What a schema may cost to check by (J-10).
const MOST_BYTES: usize = 256 * 1024;
const MOST_DEPTH: usize = 64;

/// The schema of a tool's results, made ready to check them by.
///
/// Schemas come from the server, so they are bounded, and what they refer to must be inside them: nothing is ever
/// fetched (J-6, J-9).
#[derive(Debug)]
pub struct OutputSchema(Option<Validator>);

impl OutputSchema {
    /// Makes the schema of a tool ready; a tool without one may return anything.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the schema.
    pub fn of(tool: &Tool) -> Result<Self, String> {
        tool.output_schema.as_ref().map(compile).transpose().map(Self)
    }

    /// Checks a result. One that says that the tool failed is not checked.
    ///
    /// # Errors
    ///
    /// Says where the structured content differs, or that there is none.
    pub fn check(&self, result: &CallToolResult) -> Result<(), String> {
        let Some(validator) = self.0.as_ref().filter(|_| result.is_error != Some(true)) else { return Ok(()) };
        let Some(content) = &result.structured_content else {
            return Err("the tool has an output schema and gave no structured content".to_owned());
        };
        let content = content.to_value().map_err(|fault| fault.to_string())?;
        validator.validate(&content).map_err(|fault| format!("`{}`: {fault}", fault.instance_path()))
    }
}

fn compile(schema: &RawObject) -> Result<Validator, String> {
    if schema.as_str().len() > MOST_BYTES {
        return Err(format!("the schema has more than {MOST_BYTES} bytes"));
    }
    let schema: Value = schema.decode().map_err(|fault| fault.to_string())?;
    if depth(&schema) > MOST_DEPTH {
        return Err(format!("the schema is deeper than {MOST_DEPTH} levels"));
    }
    // J-1: no `$schema` means 2020-12.
    let options = jsonschema::options();
    let options = if schema.get("$schema").is_none() { options.with_draft(Draft::Draft202012) } else { options };
    options.build(&schema).map_err(|fault| fault.to_string())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
