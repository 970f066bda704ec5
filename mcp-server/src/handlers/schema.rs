//! JSON Schemas of Rust types.

use std::borrow::Cow;

use mcp_types::{OrderedMap, RawJson, RawObject};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::asking::form;

/// The schema of a type, in the default dialect of the protocol.
// J-1
pub(crate) fn of<T: JsonSchema>() -> Result<RawObject, serde_json::Error> {
    let mut settings = SchemaSettings::draft2020_12();
    // No `$schema` means this dialect.
    settings.meta_schema = None;
    settings.inline_subschemas = false;
    settings.transforms.push(Box::new(RecursiveTransform(remove_rust_formats)));
    #[cfg(feature = "mrtr")]
    settings.transforms.push(Box::new(RecursiveTransform(crate::handles::schema::describe)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a model.
    schema.remove("title");
    RawObject::new(&schema)
}

/// The schema of arguments, with the members in the order of the struct: models and people fill them in by that.
pub(crate) fn of_arguments<A: JsonSchema + DeserializeOwned>() -> Result<RawObject, serde_json::Error> {
    let mut schema: OrderedMap<RawJson> = of::<A>()?.decode()?;
    if let Some(properties) = schema.get_mut("properties") {
        let named: OrderedMap<RawJson> = properties.decode()?;
        let mut ordered: Vec<(&str, &RawJson)> = named.iter().collect();
        let names = form::field_names::<A>();
        ordered.sort_by_key(|(name, _)| names.iter().position(|known| known == name).unwrap_or(usize::MAX));
        *properties = RawJson::new(&ordered.into_iter().collect::<OrderedMap<&RawJson>>())?;
    }
    RawObject::new(&schema)
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
        let schema = of_arguments::<Convert>().unwrap();
        let position = |name: &str| schema.as_str().find(&format!("\"{name}\":{{")).unwrap();
        assert!(position("value") < position("from") && position("from") < position("to"), "{schema:?}");
        let none = of_arguments::<NoArguments>().unwrap();
        assert_eq!(none.as_str(), of::<NoArguments>().unwrap().as_str());
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
        let schema: serde_json::Value = of::<Arguments>().unwrap().decode().unwrap();
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
        let none: serde_json::Value = of::<NoArguments>().unwrap().decode().unwrap();
        assert_eq!(none, serde_json::json!({ "type": "object", "additionalProperties": false }));
    }
}
