//! Forms for elicitation, from Rust types.

mod decode;
mod field_names;
mod flatten;

pub use decode::decode;
pub(crate) use field_names::field_names;
pub use flatten::UnsupportedType;
pub use mcp_types::InvalidFormContent;
use mcp_types::{LegacyTitledEnumSchema, OrderedMap, PrimitiveSchema, RequestedSchema};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Returns the form for a `T`: one field for each member, in the order of the struct.
///
/// | member | field |
/// |---|---|
/// | `String`, dates and the like | text, with lengths, and with the formats that forms have |
/// | integers, floats | number, with inclusive bounds |
/// | `bool` | yes or no |
/// | enum of unit variants | one choice; with labels if a variant has `#[schemars(title = "...")]` |
/// | list or set of such an enum | several choices, with `minItems` and `maxItems` |
/// | `Option<_>` | the same field, not required |
/// | `#[serde(default)]` | the same field, not required, with the default filled in |
///
/// Titles and descriptions (doc comments) of members are shown. Descriptions of variants and other formats, which
/// forms do not have, are omitted. Choices are in the order of the schema, where `schemars` puts variants that have a
/// title or a description after those that have none.
///
/// ```
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Booking {
///     /// Who will come
///     name: String,
///     #[schemars(range(min = 1, max = 8))]
///     seats: u8,
///     window: Option<bool>,
/// }
///
/// let form = mcp_server::form::schema_of::<Booking>()?;
/// assert_eq!(form.properties.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["name", "seats", "window"]);
/// assert_eq!(form.required, Some(vec!["name".to_owned(), "seats".to_owned()]));
/// # Ok::<(), mcp_server::form::UnsupportedType>(())
/// ```
///
/// # Errors
///
/// Returns an error that names the member if `T` is not a struct, or if a member is nested, a list of free values, or has a
/// constraint that forms cannot express.
// EL-5, EL-6
pub fn schema_of<T: JsonSchema + DeserializeOwned>() -> Result<RequestedSchema, UnsupportedType> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Some(Value::Object(members)) = flatten::object_members(schema.as_value())? else {
        return Ok(RequestedSchema::new(OrderedMap::new()));
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));

    let mut form = RequestedSchema::new(OrderedMap::new());
    for (name, member) in in_order(members, field_names::<T>()) {
        let field = flatten::field(member).map_err(|reason| UnsupportedType::member(name, reason))?;
        form = if is_required(name) && !field.is_nullable {
            form.required_field(name, field.schema)
        } else {
            form.field(name, field.schema)
        };
    }
    Ok(form)
}

/// Converts labels of choices to the format of 2025-06-18 (`enumNames`), as clients of that revision refuse later ones.
pub fn use_legacy_labels(form: &mut RequestedSchema) {
    for (_, field) in form.properties.iter_mut() {
        let PrimitiveSchema::TitledSingleSelect(titled) = field else { continue };
        let (values, names): (_, Vec<String>) =
            std::mem::take(&mut titled.options).into_iter().map(|option| (option.value, option.title)).unzip();
        let mut legacy = LegacyTitledEnumSchema::new(values).names(names);
        legacy.title = titled.title.take();
        legacy.description = titled.description.take();
        legacy.default_value = titled.default_value.take();
        *field = legacy.into();
    }
}

/// Returns the members in the order of `names`, then all others.
fn in_order<'a>(
    members: &'a Map<String, Value>,
    names: &'static [&'static str],
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let named = names.iter().filter_map(|name| members.get_key_value(*name));
    let others = members.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    named.chain(others).map(|(name, member)| (name.as_str(), member))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::num::NonZeroI32;

    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    fn field_of<T: JsonSchema + DeserializeOwned>() -> Value {
        #[derive(Deserialize, JsonSchema)]
        #[serde(bound = "T: DeserializeOwned")]
        #[expect(dead_code, reason = "never read")]
        struct Form<T> {
            it: T,
        }
        let form = schema_of::<Form<T>>().unwrap_or_else(|fault| panic!("{fault}"));
        serde_json::to_value(&form.properties).unwrap()["it"].take()
    }

    fn refused<T: JsonSchema + DeserializeOwned>(says: &str) {
        #[derive(Deserialize, JsonSchema)]
        #[serde(bound = "T: DeserializeOwned")]
        #[expect(dead_code, reason = "never read")]
        struct Form<T> {
            it: T,
        }
        let fault = schema_of::<Form<T>>().unwrap_err();
        assert_eq!(fault.to_string(), format!("a form cannot ask for `it`: {says}"));
        assert_eq!(fault.member_name(), Some("it"));
    }

    #[derive(Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
    }

    /// How large it is
    #[derive(Serialize, Deserialize, JsonSchema)]
    enum Size {
        #[schemars(title = "Small one")]
        S,
        /// Not shown.
        M,
        L,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Described {
        /// Never shown.
        First,
        Second,
    }

    #[test]
    fn plain_members() {
        assert_eq!(field_of::<String>(), json!({ "type": "string" }));
        assert_eq!(field_of::<char>(), json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
        assert_eq!(field_of::<bool>(), json!({ "type": "boolean" }));
        assert_eq!(field_of::<i64>(), json!({ "type": "integer" }));
        assert_eq!(field_of::<u8>(), json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
        assert_eq!(field_of::<f64>(), json!({ "type": "number" }));
    }

    #[test]
    fn choices() {
        assert_eq!(field_of::<Colour>(), json!({ "type": "string", "enum": ["red", "green"] }));
        let labels = json!([
            { "const": "S", "title": "Small one" },
            { "const": "M", "title": "M" },
            { "const": "L", "title": "L" },
        ]);
        let mut options = field_of::<Size>()["oneOf"].take();
        options.as_array_mut().unwrap().sort_by_key(|option| "SML".find(option["const"].as_str().unwrap()));
        assert_eq!(options, labels);
        assert_eq!(field_of::<Size>()["description"], "How large it is");
        let plain = field_of::<Described>();
        assert_eq!(plain["enum"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn several_choices() {
        let items = json!({ "type": "string", "enum": ["red", "green"] });
        assert_eq!(field_of::<Vec<Colour>>(), json!({ "type": "array", "items": items }));
        assert_eq!(field_of::<BTreeSet<Colour>>(), json!({ "type": "array", "items": items }));
        assert_eq!(field_of::<[Colour; 2]>(), json!({ "type": "array", "items": items, "minItems": 2, "maxItems": 2 }));
        let titled = field_of::<Vec<Size>>();
        assert_eq!(titled["items"]["anyOf"].as_array().map(Vec::len), Some(3));
        assert_eq!(titled["items"].as_object().map(Map::len), Some(1));
    }

    #[test]
    fn optional_members_are_plain_and_not_required() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Form {
            zeta: Option<String>,
            number: Option<u8>,
            colour: Option<Colour>,
            size: Option<Size>,
            colours: Option<Vec<Colour>>,
            alpha: bool,
        }
        let form = schema_of::<Form>().unwrap();
        assert_eq!(form.required, Some(vec!["alpha".to_owned()]));
        let names: Vec<_> = form.properties.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["zeta", "number", "colour", "size", "colours", "alpha"]);
        let fields = serde_json::to_value(&form.properties).unwrap();
        assert_eq!(fields["zeta"], field_of::<String>());
        assert_eq!(fields["number"], field_of::<u8>());
        assert_eq!(fields["colour"], field_of::<Colour>());
        assert_eq!(fields["size"], field_of::<Size>());
        assert_eq!(fields["colours"], field_of::<Vec<Colour>>());
    }

    #[test]
    fn annotations_bounds_and_defaults() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        struct Form {
            /// Where to write to
            #[schemars(title = "E-mail", extend("format" = "email"), length(min = 3, max = 80))]
            mail_address: String,
            #[schemars(range(min = 1, max = 9))]
            count: i32,
            colour: Colour,
            colours: Vec<Colour>,
            note: Option<String>,
            #[schemars(extend("format" = "uuid"))]
            id: String,
        }

        impl Default for Form {
            fn default() -> Self {
                let (colour, colours) = (Colour::Green, vec![Colour::Red]);
                Self { mail_address: "a@b".to_owned(), count: 2, colour, colours, note: None, id: "x".to_owned() }
            }
        }

        let form = schema_of::<Form>().unwrap();
        assert_eq!(form.required, None);
        assert_eq!(form.dialect, None);
        let items = json!({ "type": "string", "enum": ["red", "green"] });
        let expected = json!({
            "mailAddress": {
                "type": "string", "title": "E-mail", "description": "Where to write to", "format": "email",
                "minLength": 3, "maxLength": 80, "default": "a@b",
            },
            "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 2 },
            "colour": { "type": "string", "enum": ["red", "green"], "default": "green" },
            "colours": { "type": "array", "items": items, "default": ["red"] },
            "note": { "type": "string" },
            "id": { "type": "string", "default": "x" },
        });
        assert_eq!(serde_json::to_value(&form.properties).unwrap(), expected);
        let empty: Form = decode(&form, OrderedMap::new()).unwrap();
        assert_eq!((empty.count, empty.note), (2, None));
        assert_eq!((empty.mail_address.as_str(), empty.id.as_str()), ("a@b", "x"));
        assert!(empty.colour == Colour::Green && empty.colours == [Colour::Red]);
    }

    #[test]
    fn newtypes_and_flattened_structs_are_seen_through() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Age(u8);

        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Person {
            age: Age,
        }

        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Form {
            #[serde(flatten)]
            person: Person,
            name: String,
        }
        let form = schema_of::<Form>().unwrap();
        assert_eq!(serde_json::to_value(form.properties.get("age")).unwrap(), field_of::<u8>());
        assert_eq!(form.properties.len(), 2);
        assert_eq!(form.required.map(|names| names.len()), Some(2));

        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        assert!(schema_of::<Nothing>().unwrap().properties.is_empty());
    }

    // covers: EL-5
    #[test]
    fn what_is_not_flat_is_named() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Inner {
            x: u8,
        }

        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        enum Either {
            One,
            Two(u8),
        }

        #[derive(Deserialize, JsonSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "never read")]
        enum Untagged {
            Text(String),
            Number(u8),
        }

        #[derive(Deserialize, JsonSchema)]
        struct Code(#[schemars(regex(pattern = "^[A-Z]+$"))] String);

        refused::<Inner>("it is an object, and forms are flat");
        refused::<Option<Inner>>("it is an object, and forms are flat");
        refused::<BTreeMap<String, u8>>("it is an object, and forms are flat");
        refused::<Vec<Inner>>("it is a list of something other than choices");
        refused::<Vec<String>>("it is a list of something other than choices");
        refused::<(u8, u8)>("it is a list of something other than choices");
        refused::<Value>("it may be anything");
        refused::<Either>("it may be of several types");
        refused::<Untagged>("it may be of several types");
        refused::<()>("it is of the type `null`");
        refused::<NonZeroI32>("forms do not have `not`");
        refused::<Code>("forms do not have `pattern`");
        assert_eq!(Code("X".to_owned()).0, "X");
    }

    #[test]
    fn recursion_and_bad_defaults_are_named() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Node {
            next: Option<Box<Self>>,
        }
        let fault = schema_of::<Node>().unwrap_err();
        assert_eq!(fault.to_string(), "a form cannot ask for `next`: its type contains itself");

        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Bounded {
            #[serde(default)]
            #[schemars(range(min = 1))]
            count: u8,
        }
        let fault = schema_of::<Bounded>().unwrap_err();
        assert_eq!(fault.to_string(), "a form cannot ask for `count`: its default must be at least 1");
    }

    #[test]
    fn only_structs_are_forms() {
        let says = "a form is a struct with named fields, and this type is not";
        assert_eq!(schema_of::<u8>().unwrap_err().to_string(), says);
        assert_eq!(schema_of::<Vec<u8>>().unwrap_err().to_string(), says);
        assert_eq!(schema_of::<Colour>().unwrap_err().to_string(), says);
        assert_eq!(schema_of::<Value>().unwrap_err().member_name(), None);
    }

    #[test]
    fn labels_can_be_written_for_the_oldest_clients() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "never read")]
        struct Form {
            size: Size,
            name: String,
        }
        let mut form = schema_of::<Form>().unwrap();
        use_legacy_labels(&mut form);
        let Some(PrimitiveSchema::LegacyEnum(size)) = form.properties.get("size") else { panic!("{form:?}") };
        let at = size.values.iter().position(|value| value == "S").unwrap();
        assert_eq!(size.names.as_ref().unwrap()[at], "Small one");
        assert_eq!(size.description.as_deref(), Some("How large it is"));
        let restriction = mcp_types::restrict_to(&mut form, mcp_types::Revision::V2025_06_18);
        assert!(restriction.may_be_sent(), "{restriction:?}");
    }
}
