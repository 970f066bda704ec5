//! JSON Schemas of Rust types.

use std::borrow::Cow;

use mcp_types::{OrderedMap, RawJson, RawObject};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::asking::form;

/// The schema of a type, in the default dialect of the protocol.
// J-1
pub(crate) fn of<T: JsonSchema>() -> Result<RawObject, serde_json::Error> {
    let mut schema = generate::<T>();
    RecursiveTransform(remove_rust_formats).transform(&mut schema);
    RawObject::new(&schema)
}

/// The schema of a type, with the formats that `schemars` has for Rust's numbers.
fn generate<T: JsonSchema>() -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    // No `$schema` means this dialect.
    settings.meta_schema = None;
    settings.inline_subschemas = false;
    #[cfg(feature = "mrtr")]
    settings.transforms.push(Box::new(RecursiveTransform(crate::handles::schema::describe)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a model.
    schema.remove("title");
    schema
}

/// The schema of arguments.
#[derive(Debug, Default)]
pub(crate) struct ArgumentsSchema {
    /// The members are in the order of the struct: models and people fill them in by that.
    pub(crate) schema: RawObject,
    /// The doc comment of the struct, which is not part of the schema: it describes the tool or prompt.
    pub(crate) description: Option<String>,
    /// Whether the schema has constraints that deserializing does not check.
    #[cfg(feature = "validate")]
    pub(crate) has_constraints: bool,
}

pub(crate) fn of_arguments<A: JsonSchema + DeserializeOwned>() -> Result<ArgumentsSchema, serde_json::Error> {
    let mut generated = generate::<A>();
    #[cfg(feature = "validate")]
    let has_constraints = super::constraints::are_in(generated.as_value());
    RecursiveTransform(remove_rust_formats).transform(&mut generated);
    let mut schema: OrderedMap<RawJson> = RawObject::new(&generated)?.decode()?;
    let description = schema.remove("description").map(|text| text.decode()).transpose()?;
    if let Some(properties) = schema.get_mut("properties") {
        let named: OrderedMap<RawJson> = properties.decode()?;
        let mut ordered: Vec<(&str, &RawJson)> = named.iter().collect();
        let names = form::field_names::<A>();
        ordered.sort_by_key(|(name, _)| names.iter().position(|known| known == name).unwrap_or(usize::MAX));
        *properties = RawJson::new(&ordered.into_iter().collect::<OrderedMap<&RawJson>>())?;
    }
    Ok(ArgumentsSchema {
        schema: RawObject::new(&schema)?,
        description,
        #[cfg(feature = "validate")]
        has_constraints,
    })
}

/// The members of arguments that are enums, with the names of their variants.
pub(crate) fn choices(schema: &RawObject) -> Vec<(String, Vec<String>)> {
    let Ok(root) = schema.decode::<Value>() else { return Vec::new() };
    let members = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let choices = members.filter_map(|(name, member)| {
        let mut names = Vec::new();
        collect_variants(member, &root, &mut Vec::new(), &mut names)?;
        Some((name.clone(), names))
    });
    choices.filter(|(_, names)| !names.is_empty()).collect()
}

/// Collects the names of the variants of an enum: a list of names, or one schema for each variant with a description. Returns
/// `None` if the schema allows anything else but `null`.
fn collect_variants<'a>(
    schema: &'a Value,
    root: &'a Value,
    open: &mut Vec<&'a str>,
    names: &mut Vec<String>,
) -> Option<()> {
    if let Some(reference) = schema.get("$ref") {
        let definition = reference.as_str()?.strip_prefix("#/$defs/")?;
        // An enum that contains itself is not one of plain names.
        if open.contains(&definition) {
            return None;
        }
        open.push(definition);
        collect_variants(root.get("$defs")?.get(definition)?, root, open, names)?;
        open.pop();
        return Some(());
    }
    if let Some(values) = schema.get("enum") {
        for value in values.as_array()?.iter().filter(|value| !value.is_null()) {
            names.push(value.as_str()?.to_owned());
        }
        return Some(());
    }
    if let Some(name) = schema.get("const") {
        names.push(name.as_str()?.to_owned());
        return Some(());
    }
    if schema.get("type").is_some_and(|kind| kind == "null") {
        return Some(());
    }
    for branch in schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()? {
        collect_variants(branch, root, open, names)?;
    }
    Some(())
}

/// Formats such as `int64` are not of JSON Schema, and clients warn about them.
fn remove_rust_formats(schema: &mut Schema) {
    let is_foreign = schema.get("format").and_then(|format| format.as_str()).is_some_and(|format| {
        let bits = format.trim_start_matches("uint").trim_start_matches("int");
        bits.is_empty() || bits.parse::<u8>().is_ok() || matches!(format, "float" | "double")
    });
    if is_foreign {
        schema.remove("format");
    }
}

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[non_exhaustive]
pub struct NoArguments {}

impl JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "additionalProperties": false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_in_the_order_of_the_struct() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Convert {
            value: f64,
            from: String,
            to: String,
        }
        let schema = of_arguments::<Convert>().unwrap().schema;
        let position = |name: &str| schema.as_str().find(&format!("\"{name}\":{{")).unwrap();
        assert!(position("value") < position("from") && position("from") < position("to"), "{schema:?}");
        let none = of_arguments::<NoArguments>().unwrap().schema;
        assert_eq!(none.as_str(), of::<NoArguments>().unwrap().as_str());
    }

    #[test]
    fn enums_have_choices() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        enum Tone {
            Kind,
            /// Without any mercy.
            VeryStrict,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        enum Plain {
            A,
            B,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        enum Mixed {
            A,
            B(u8),
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "only its shape matters")]
        enum Tree {
            Leaf(Plain),
            Node(Box<Self>),
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Arguments {
            tree: Tree,
            tone: Tone,
            second: Option<Tone>,
            plain: Plain,
            optional: Option<Plain>,
            mixed: Mixed,
            text: String,
            number: u8,
            inner: Option<Box<Self>>,
        }
        let mut found = choices(&of_arguments::<Arguments>().unwrap().schema);
        found.sort_unstable();
        let found: Vec<_> = found.iter().map(|(name, choices)| (name.as_str(), choices.join(","))).collect();
        let tones = || "kind,very_strict".to_owned();
        let expected =
            [("optional", "A,B".to_owned()), ("plain", "A,B".to_owned()), ("second", tones()), ("tone", tones())];
        assert_eq!(found, expected);
    }

    #[test]
    fn schemas_are_plain() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Arguments {
            /// How many.
            count: u32,
            name: Option<String>,
        }
        let schema: Value = of::<Arguments>().unwrap().decode().unwrap();
        assert_eq!(
            schema,
            serde_json::json!({
                "type": "object",
                "properties": {
                    "count": { "description": "How many.", "type": "integer", "minimum": 0 },
                    "name": { "type": ["string", "null"] },
                },
                "required": ["count"],
            })
        );
        let none: Value = of::<NoArguments>().unwrap().decode().unwrap();
        assert_eq!(none, serde_json::json!({ "type": "object", "additionalProperties": false }));
    }
}
