//! Validation of arguments and structured results against JSON Schemas.

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use mcp_types::{CallToolResult, ErrorObject, RawObject, SchemaBudget, parse_value};
use serde_json::Value;

use crate::handlers::tool::Tool;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;

/// The maximum number of evaluations for an error with an explanation, which takes memory for each of them.
const MAX_EXPLAINED_EVALUATIONS: usize = 10_000;

/// The limits of a regular expression: backtracking steps of a match, and compiled bytes.
const MAX_BACKTRACKING: usize = 10_000;
const MAX_PATTERN_BYTES: usize = 2 * 1024 * 1024;

/// How the arguments of a tool are validated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentChecks {
    /// By deserializing them, which is enough.
    ByType,
    /// By deserializing them, and by the constraints of the schema that this does not check.
    Constraints,
    /// By the schema.
    BySchema,
}

/// The compiled schemas of a tool.
#[derive(Default)]
pub(crate) struct Validators {
    input: Option<CompiledSchema>,
    output: Option<CompiledSchema>,
}

/// A compiled schema with the budget for validation.
struct CompiledSchema {
    budget: SchemaBudget,
    validator: Validator,
}

impl Validators {
    /// Compiles the schemas of a raw tool. Typed arguments need validation only for constraints that deserializing does not
    /// check, and typed results need none.
    ///
    /// Returns `None` if there is nothing to validate.
    pub(crate) fn of(tool: &Tool) -> Result<Option<Self>, String> {
        let output = tool.definition.output_schema.as_ref().filter(|_| tool.checks_output);
        let output = output.map(|schema| compile("output", schema)).transpose()?;
        let validators = Self { output, ..Self::of_arguments(tool)? };
        Ok((validators.input.is_some() || validators.output.is_some()).then_some(validators))
    }

    /// Compiles the schema of the arguments alone.
    pub(crate) fn of_arguments(tool: &Tool) -> Result<Self, String> {
        let schema = &tool.definition.input_schema;
        let input = match tool.argument_checks {
            ArgumentChecks::ByType => None,
            // A format such as `email` is a constraint by `schemars`, and a mere hint by the default of JSON Schema.
            ArgumentChecks::Constraints => {
                Some(compile_with("input", schema, jsonschema::options().should_validate_formats(true))?)
            }
            ArgumentChecks::BySchema => Some(compile("input", schema)?),
        };
        Ok(Self { input, output: None })
    }

    /// Returns why arguments are not valid.
    pub(crate) fn check_arguments(&self, arguments: &str) -> Option<String> {
        let check = self.input.as_ref()?;
        match parse_value(arguments) {
            Ok(arguments) => check.fault(&arguments),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns why a result is not valid. Results that are errors need not fit the output schema.
    fn check_result(&self, result: &CallToolResult) -> Option<String> {
        let check = self.output.as_ref()?;
        if result.is_error == Some(true) {
            return None;
        }
        let Some(content) = &result.structured_content else {
            return Some("the tool has an output schema and must give structured content".to_owned());
        };
        match content.to_value() {
            Ok(content) => check.fault(&content),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Validates the result of a tool call, and replaces an invalid one by an error.
    pub(crate) fn check_result_of(self: Arc<Self>, call: ResponseFuture) -> ResponseFuture {
        if self.output.is_none() {
            return call;
        }
        Box::pin(async move {
            let outcome = call.await;
            if let Ok(Response::ToolCall(result)) = &outcome
                && let Some(fault) = self.check_result(result)
            {
                tracing::error!(target: "mcp", fault, "a tool broke its output schema");
                return Err(ErrorObject::internal_error("the result of the tool does not fit its output schema"));
            }
            outcome
        })
    }
}

/// Compiles a schema. References must be local: nothing is ever fetched.
// J-6, J-9
fn compile(which: &str, schema: &RawObject) -> Result<CompiledSchema, String> {
    compile_with(which, schema, jsonschema::options())
}

fn compile_with(which: &str, schema: &RawObject, options: ValidationOptions<'_>) -> Result<CompiledSchema, String> {
    let budget = SchemaBudget::new(schema).map_err(|error| format!("the {which} schema is refused: {error}"))?;
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING).size_limit(MAX_PATTERN_BYTES);
    let options = options.with_pattern_options(patterns);
    // J-1: no `$schema` means 2020-12.
    let has_draft = budget.schema().get("$schema").is_some();
    let options = if has_draft { options } else { options.with_draft(Draft::Draft202012) };
    let validator = options.build(budget.schema());
    let validator = validator.map_err(|error| format!("the {which} schema is not valid: {error}"))?;
    Ok(CompiledSchema { budget, validator })
}

impl CompiledSchema {
    /// Returns why a value is not valid.
    fn fault(&self, value: &Value) -> Option<String> {
        let steps = match self.budget.admit(value) {
            Ok(steps) => steps,
            Err(error) => return Some(format!("it cannot be checked by the schema: {error}")),
        };
        if self.validator.is_valid(value) {
            return None;
        }
        if steps > MAX_EXPLAINED_EVALUATIONS {
            return Some("it does not fit the schema".to_owned());
        }
        let error = self.validator.validate(value).err()?;
        let path = error.instance_path().to_string();
        Some(if path.is_empty() { error.to_string() } else { format!("`{}`: {error}", path.trim_start_matches('/')) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handlers::tool::raw_tool;

    fn validators(input: Value) -> Result<Validators, String> {
        let schema = RawObject::new(&input).unwrap();
        Validators::of(&raw_tool("a", schema, async |_, _| "done")).map(Option::unwrap)
    }

    /// Examples and the like are data, whatever their members are called, and a schema may name itself by its address.
    #[test]
    fn data_in_a_schema_is_no_schema() {
        let validators = validators(json!({
            "$id": "https://example.com/x",
            "type": "object",
            "properties": { "a": { "$ref": "https://example.com/x#/$defs/a" } },
            "$defs": { "a": { "type": "object", "default": { "id": "x" }, "required": ["id"] } },
            "examples": [{ "id": "a1" }],
        }))
        .unwrap();
        assert_eq!(validators.check_arguments(r#"{"a":{"id":"b"}}"#), None);
        assert!(validators.check_arguments(r#"{"a":{}}"#).unwrap().starts_with("`a`: "));
    }

    // covers: TL-18
    #[test]
    fn arguments_are_checked_by_their_schema() {
        let validators = validators(json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "minimum": 1 } },
            "required": ["count"],
        }))
        .unwrap();
        assert_eq!(validators.check_arguments(r#"{"count":1}"#), None);
        assert!(validators.check_arguments(r#"{"count":0}"#).unwrap().starts_with("`count`: "));
        assert!(validators.check_arguments("{}").unwrap().contains("count"));
    }

    /// Remote references are refused, and not fetched.
    // covers: J-6, J-9
    #[test]
    fn foreign_references_are_refused() {
        for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json"] {
            let schema = json!({ "type": "object", "properties": { "a": { "$ref": reference } } });
            assert!(validators(schema).is_err(), "{reference}");
        }
        assert!(validators(json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": {} } })).is_ok());
    }

    /// A schema that costs too much is refused when it is registered.
    // covers: J-10
    #[test]
    fn costly_schemas_are_refused() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert!(validators(json!({ "type": "object", "properties": { "a": deep } })).is_err());
    }

    /// The cost of checking arguments is bounded, whatever the schema and whatever the client sends.
    // covers: SEC-12
    #[test]
    fn sec_12_costly_checks_are_refused() {
        let branch = json!({ "properties": { "a": { "$ref": "#" } } });
        let validators = validators(json!({ "type": "object", "anyOf": [branch, branch] })).unwrap();
        let nested = |depth: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert_eq!(validators.check_arguments(&nested(5)), None);
        assert!(validators.check_arguments(&nested(100)).unwrap().contains("cannot be checked"));
        // An explanation would take hundreds of megabytes.
        let branch = json!({ "properties": { "a": { "$ref": "#" } }, "required": ["x"] });
        let validators = self::validators(json!({ "type": "object", "anyOf": [branch, branch] })).unwrap();
        assert!(validators.check_arguments(&nested(1)).unwrap().contains("anyOf"));
        assert_eq!(validators.check_arguments(&nested(14)).unwrap(), "it does not fit the schema");
    }

    /// Results are validated against the output schema.
    // covers: TL-6, RB-25
    #[test]
    fn results_keep_their_schema() {
        let output = RawObject::new(&json!({ "type": "object", "required": ["sum"] })).unwrap();
        let input = RawObject::new(&json!({ "type": "object" })).unwrap();
        let tool = raw_tool("a", input, async |_, _| "done").output_schema(output);
        let validators = Validators::of(&tool).unwrap().unwrap();
        let result = |value: Value| CallToolResult::structured(&value).unwrap();
        assert_eq!(validators.check_result(&result(json!({ "sum": 1 }))), None);
        assert!(validators.check_result(&result(json!({}))).is_some());
        assert!(validators.check_result(&CallToolResult::text("no structure")).is_some());
        assert_eq!(validators.check_result(&CallToolResult::error("failed")), None);
    }

    /// The handler gets the arguments that were validated, whatever the names of the members.
    // covers: SEC-2
    #[test]
    fn sec_2_no_name_is_special() {
        let name = "$serde_json::private::RawValue";
        let required = json!({ "type": "object", "required": ["count"] });
        let bypass = json!({ name: "{\"count\":1}" }).to_string();
        assert!(validators(required.clone()).unwrap().check_arguments(&bypass).unwrap().contains("count"));
        let hostile = (0..12).fold("1".to_owned(), |inner, _| {
            format!("{}{}{}", "[".repeat(100), json!({ name: inner }), "]".repeat(100))
        });
        let hostile = format!(r#"{{"type":"object","{name}":{hostile}}}"#);
        assert!(validators(required).unwrap().check_arguments(&hostile).is_some());
        let schema: RawObject = serde_json::from_str(&hostile).unwrap();
        let _ = Validators::of(&raw_tool("a", schema, async |_, _| "done"));
    }
}
