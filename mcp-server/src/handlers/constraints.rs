//! Constraints in the schemas of Rust types.

use serde_json::Value;

/// Returns whether a schema, with the formats that `schemars` has for Rust's numbers, has constraints that deserializing does
/// not check: `#[schemars(range(..))]`, `length`, `regex` and the like. Types, names of variants and required members are
/// checked by deserializing, and so are the bounds of integers that follow from their types.
pub(crate) fn are_in(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    schema.iter().any(|(keyword, value)| match keyword.as_str() {
        "minimum" => value.as_f64() != bounds(schema.get("format")).0,
        "maximum" => value.as_f64() != bounds(schema.get("format")).1,
        "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength" | "pattern"
        | "minProperties" | "maxProperties" | "contains" | "propertyNames" | "not" | "if" | "dependentRequired"
        | "patternProperties" => true,
        // Tuples have them by their type. So have arrays, whose schemas do not differ from those of vectors with a length.
        "minItems" | "maxItems" => !schema.contains_key("prefixItems"),
        // The formats of other types are checked by deserializing.
        "format" => matches!(value.as_str(), Some("email" | "uri")),
        "properties" | "$defs" => value.as_object().is_some_and(|schemas| schemas.values().any(are_in)),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            value.as_array().is_some_and(|schemas| schemas.iter().any(are_in))
        }
        "items" | "additionalProperties" => are_in(value),
        _ => false,
    })
}

/// The bounds that `schemars` gives to an integer by its type.
fn bounds(format: Option<&Value>) -> (Option<f64>, Option<f64>) {
    let small = |minimum: i32, maximum: i32| (Some(f64::from(minimum)), Some(f64::from(maximum)));
    match format.and_then(Value::as_str) {
        Some("uint8") => small(u8::MIN.into(), u8::MAX.into()),
        Some("int8") => small(i8::MIN.into(), i8::MAX.into()),
        Some("uint16") => small(u16::MIN.into(), u16::MAX.into()),
        Some("int16") => small(i16::MIN.into(), i16::MAX.into()),
        Some("uint32" | "uint64" | "uint128" | "uint") => (Some(0.0), None),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use schemars::JsonSchema;
    use serde::Deserialize;

    use crate::handlers::schema;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Plain {
        tiny: u8,
        signed: i8,
        short: u16,
        negative: i16,
        number: u32,
        big: u64,
        size: usize,
        signed_big: i64,
        ratio: f32,
        text: Option<String>,
        list: Vec<u8>,
        pair: (u8, String),
        set: BTreeSet<String>,
        map: BTreeMap<String, u8>,
        choice: Choice,
        options: Option<Choice>,
        inner: Option<Box<Self>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    enum Choice {
        A,
        B { b: u8 },
        C(i64),
    }

    /// A struct with one member.
    macro_rules! one {
        ($(#[$attribute:meta])* $type:ty) => {{
            #[derive(Deserialize, JsonSchema)]
            #[expect(dead_code, reason = "only its shape matters")]
            struct One {
                $(#[$attribute])*
                member: $type,
            }
            schema::of_arguments::<One>().unwrap().has_constraints
        }};
    }

    /// Tools with arguments as most have them are not validated a second time.
    // covers: AUT-7
    #[test]
    fn aut_7_types_alone_are_no_constraints() {
        let plain = schema::of_arguments::<Plain>().unwrap();
        assert!(!plain.has_constraints, "{:?}", plain.schema);
        assert!(!schema::of_arguments::<crate::NoArguments>().unwrap().has_constraints);
    }

    // covers: AUT-7
    #[test]
    fn aut_7_constraints_are_found() {
        assert!(one!(
            #[schemars(range(min = 1))]
            u8
        ));
        assert!(one!(
            #[schemars(range(max = 8))]
            u32
        ));
        assert!(one!(
            #[schemars(range(min = 0))]
            i64
        ));
        assert!(one!(
            #[schemars(range(min = 0.0, max = 1.0))]
            f64
        ));
        assert!(one!(#[schemars(range(max = 8))] Option<u32>));
        assert!(one!(
            #[schemars(length(min = 1))]
            String
        ));
        assert!(one!(#[schemars(length(max = 3))] Vec<u8>));
        assert!(one!(#[schemars(length(equal = 3))] Vec<u8>));
        assert!(one!(
            #[schemars(regex(pattern = "^a"))]
            String
        ));
        assert!(one!(
            #[schemars(email)]
            String
        ));
        assert!(one!(#[schemars(inner(length(max = 3)))] Vec<String>));
        assert!(one!(
            #[schemars(extend("multipleOf" = 5))]
            u32
        ));
    }
}
