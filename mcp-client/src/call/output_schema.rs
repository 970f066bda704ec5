//! Validation of structured results.

use jsonschema::{Draft, PatternOptions, Validator};
use mcp_types::{CallToolResult, RawObject, SchemaBudget, Tool};

/// The compiled output schema of a tool, which validates its results.
///
/// Schemas come from the server, so their size and the cost of validation are bounded ([`SchemaBudget`]). References must
/// be local: nothing is ever fetched.
#[derive(Debug)]
pub struct OutputSchema(Option<(SchemaBudget, Validator)>);

impl OutputSchema {
    /// Compiles the output schema of a tool. A tool without one may return anything.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the schema is invalid or too complex.
    pub fn of(tool: &Tool) -> Result<Self, String> {
        tool.output_schema.as_ref().map(compile).transpose().map(Self)
    }

    /// Validates the structured content of a result. A result with `isError` is not validated.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the structured content is missing, violates the schema, or would be too
    /// expensive to validate.
    pub fn check(&self, result: &CallToolResult) -> Result<(), String> {
        let Some((budget, validator)) = self.0.as_ref().filter(|_| result.is_error != Some(true)) else {
            return Ok(());
        };
        let Some(content) = &result.structured_content else {
            return Err("the tool has an output schema, but returned no structured content".to_owned());
        };
        let content = content.to_value().map_err(|fault| fault.to_string())?;
        let steps = budget.admit(&content).map_err(|fault| format!("it cannot be checked by its schema: {fault}"))?;
        if validator.is_valid(&content) {
            return Ok(());
        }
        // An explanation costs memory for each step.
        if steps > MAX_EXPLAINED {
            return Err("it does not fit its schema".to_owned());
        }
        validator.validate(&content).map_err(|fault| format!("`{}`: {fault}", fault.instance_path()))
    }
}

/// Maximum number of evaluations of a validation whose failure is explained.
const MAX_EXPLAINED: usize = 10_000;

/// Limits of a regular expression: backtracking steps of a match, and compiled size in bytes.
const MAX_BACKTRACKING: usize = 10_000;
const MAX_PATTERN_BYTES: usize = 2 * 1024 * 1024;

fn compile(schema: &RawObject) -> Result<(SchemaBudget, Validator), String> {
    let budget = SchemaBudget::new(schema).map_err(|fault| format!("the schema is refused: {fault}"))?;
    // J-1: no `$schema` means 2020-12.
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING).size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options().with_pattern_options(patterns);
    let has_draft = budget.schema().get("$schema").is_some();
    let options = if has_draft { options } else { options.with_draft(Draft::Draft202012) };
    let validator = options.build(budget.schema()).map_err(|fault| fault.to_string())?;
    Ok((budget, validator))
}

#[cfg(test)]
mod tests {
    use mcp_types::RawJson;
    use serde_json::{Map, Value, json};

    use super::*;

    fn check(schema: &Value, content: Value) -> Result<(), String> {
        let schema = RawObject::new(schema).unwrap();
        let mut result = CallToolResult::text("text");
        result.structured_content = Some(RawJson::from(content));
        OutputSchema::of(&Tool::new("tool").output_schema(schema))?.check(&result)
    }

    /// A server's schema whose references double at each step, which would take longer than anything lasts, or refer on
    /// and on, for which no stack is deep enough.
    // covers: SEC-12
    #[test]
    fn sec_12_a_hostile_schema_costs_little() {
        for (length, width) in [(60, 2), (3000, 1)] {
            let mut all: Map<String, Value> = (0..length)
                .map(|n| {
                    (format!("d{n}"), json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/d{}", n + 1) }); width] }))
                })
                .collect();
            all.insert(format!("d{length}"), json!({ "type": "string" }));
            let schema = json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": all });
            let refused = check(&schema, json!({})).unwrap_err();
            assert!(refused.starts_with("it cannot be checked by its schema"), "{refused}");
        }
        // What is wrong would take hundreds of megabytes to say.
        let branch = json!({ "properties": { "a": { "$ref": "#" } }, "required": ["x"] });
        let schema = json!({ "anyOf": [branch, branch] });
        let content = (0..14).fold(json!({}), |value, _| json!({ "a": value }));
        assert_eq!(check(&schema, content).unwrap_err(), "it does not fit its schema");
    }

    /// The deepest evaluation that is admitted fits on a small stack.
    // covers: SEC-12
    #[test]
    fn sec_12_what_is_admitted_does_not_overflow_the_stack() {
        type Wrap = fn(Value) -> Value;
        let wraps: [Wrap; 5] = [
            |next| next,
            |next| json!({ "allOf": [next] }),
            |next| json!({ "anyOf": [next, false] }),
            |next| json!({ "oneOf": [next, false] }),
            |next| json!({ "if": true, "then": next, "unevaluatedProperties": true }),
        ];
        for wrap in wraps {
            let chain = |length: usize| {
                let next = |n: usize| json!({ "$ref": format!("#/$defs/d{n}") });
                let mut all: Map<String, Value> = (0..length).map(|n| (format!("d{n}"), wrap(next(n + 1)))).collect();
                all.insert(format!("d{length}"), json!({ "type": "string" }));
                json!({ "$ref": "#/$defs/d0", "$defs": all })
            };
            let is_admitted = |length: &usize| {
                let budget = SchemaBudget::new(&RawObject::new(&chain(*length)).unwrap()).unwrap();
                budget.admit(&json!({})).is_ok()
            };
            let deepest = (1..=SchemaBudget::MAX_NESTED_EVALUATIONS).collect::<Vec<_>>().partition_point(is_admitted);
            assert!(deepest > 100, "{deepest}");
            let schema = chain(deepest);
            let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
            let checked = small.spawn(move || check(&schema, json!({}))).unwrap().join().unwrap();
            let fault = checked.unwrap_err();
            assert!(!fault.starts_with("it cannot be checked"), "{deepest}: {fault}");
        }
    }

    /// Examples and the like are data, whatever their members are called, and a schema may name itself by its address.
    #[test]
    fn data_in_a_schema_is_no_schema() {
        let schema = json!({
            "$id": "https://example.com/x",
            "type": "object",
            "properties": { "a": { "$ref": "https://example.com/x#/$defs/a" } },
            "$defs": { "a": { "type": "object", "default": { "id": "x" }, "required": ["id"] } },
            "examples": [{ "id": "a1" }],
        });
        assert_eq!(check(&schema, json!({ "a": { "id": "b" } })), Ok(()));
        assert!(check(&schema, json!({ "a": {} })).unwrap_err().starts_with("`/a`: "));
    }

    #[test]
    fn ordinary_results_are_checked() {
        let schema = json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] });
        assert_eq!(check(&schema, json!({ "sum": 1 })), Ok(()));
        assert!(check(&schema, json!({ "sum": "1" })).unwrap_err().starts_with("`/sum`: "));
    }
}
