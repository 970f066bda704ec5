//! Deserializes the untagged unions of elicitation: the mode of a request, the schema of a field, a submitted value.

mod field;
mod form_content;
mod form_draft;

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::codec::closed_set::UnknownValue;
use crate::codec::object::object;
use crate::codec::variants::from_variants;
use crate::codec::visit::visit;
use crate::{
    BooleanSchema, ElicitMode, ElicitRequest, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestUrlParams,
    ElicitResult, EnumOption, InputRequest, JsonObject, LegacyTitledEnumSchema, Number, NumberSchema, NumberType,
    OrderedMap, PrimitiveSchema, RequestMeta, RequestedSchema, StringFormat, StringSchema, TaskMetadata, TitledItems,
    TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
};

pub use self::field::{FieldChoice, FieldKind};
pub use self::form_content::InvalidFormContent;
pub use self::form_draft::{FormDraft, FormField};

impl ElicitRequestUrlParams {
    /// Creates a request for the user to open `url`.
    #[must_use]
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            url: url.into(),
            mode: ElicitMode::URL,
            elicitation_id: None,
            task: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

// The members of both modes.
object!(struct AnyMode {
    "message" => message: required String,
    "mode" => mode: optional Option<KnownMode>,
    "requestedSchema" => requested_schema: optional Option<RequestedSchema>,
    "url" => url: optional Option<String>,
    "elicitationId" => elicitation_id: optional Option<String>,
    "task" => task: optional Option<TaskMetadata>,
    "_meta" => meta: optional Option<RequestMeta>,
} keep extra);

/// A known mode; unknown ones are an error.
#[derive(Clone, Copy)]
enum KnownMode {
    Form,
    Url,
}

impl<'de> Deserialize<'de> for KnownMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mode = ElicitMode::deserialize(deserializer)?;
        match mode.as_str() {
            "form" => Ok(Self::Form),
            "url" => Ok(Self::Url),
            other => Err(D::Error::custom(UnknownValue::new(other, &["form", "url"]))),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    /// Form mode is the default.
    // EL-4
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AnyMode { message, mode, requested_schema, url, elicitation_id, task, meta, extra } =
            AnyMode::deserialize(deserializer)?;
        if let Some(KnownMode::Url) = mode {
            let url = url.ok_or_else(|| D::Error::missing_field("url"))?;
            let mode = ElicitMode::URL;
            return Ok(Self::Url(ElicitRequestUrlParams { message, mode, url, elicitation_id, task, meta, extra }));
        }
        let requested_schema = requested_schema.ok_or_else(|| D::Error::missing_field("requestedSchema"))?;
        let mode = mode.map(|_| ElicitMode::FORM);
        Ok(Self::Form(ElicitRequestFormParams { message, requested_schema, mode, task, meta, extra }))
    }
}

from_variants!(ElicitRequestParams { ElicitRequestFormParams => Form, ElicitRequestUrlParams => Url });

impl From<ElicitRequestFormParams> for InputRequest {
    fn from(form: ElicitRequestFormParams) -> Self {
        Self::Elicit(ElicitRequest::new(form))
    }
}

impl From<ElicitRequestUrlParams> for InputRequest {
    fn from(url: ElicitRequestUrlParams) -> Self {
        Self::Elicit(ElicitRequest::new(url))
    }
}

impl RequestedSchema {
    /// Adds an optional field; the order of the fields is their display order.
    ///
    /// ```
    /// use mcp_types::{BooleanSchema, RequestedSchema, StringFormat, StringSchema};
    ///
    /// let form = RequestedSchema::new(Default::default())
    ///     .required_field("email", StringSchema::default().title("E-mail").format(StringFormat::EMAIL))
    ///     .field("newsletter", BooleanSchema::default().default_value(false));
    /// assert_eq!(form.required, Some(vec!["email".to_owned()]));
    /// ```
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        self.properties.insert(name, schema.into());
        self
    }

    /// Adds a required field.
    #[must_use]
    pub fn required_field(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.get_or_insert_default().push(name.clone());
        self.field(name, schema)
    }
}

impl ElicitResult {
    /// Creates the result for a submitted form.
    #[must_use]
    pub fn accepted(content: impl Into<OrderedMap<ElicitValue>>) -> Self {
        Self::new(crate::ElicitAction::Accept).content(content)
    }
}

/// A submitted value of a form field.
///
/// Since 2025-06-18.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitValue {
    /// A string, or the choice of a single-select field.
    String(String),
    /// A number.
    Number(Number),
    /// A boolean.
    Boolean(bool),
    /// The choices of a multi-select field.
    ///
    /// Since 2025-11-25.
    Strings(Vec<String>),
}

from_variants!(ElicitValue {
    &str => String,
    String => String,
    bool => Boolean,
    i32 => Number,
    i64 => Number,
    f64 => Number,
    Number => Number,
    Vec<String> => Strings,
});

impl<'de> Deserialize<'de> for ElicitValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = ElicitValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, a boolean or a list of strings")
            }

            visit! {
                visit_str(self, text: &str) => Ok(text.into());
                visit_string(self, text: String) => Ok(text.into());
                visit_bool(self, value: bool) => Ok(value.into());
                visit_i64(self, value: i64) => Ok(value.into());
                visit_u64(self, value: u64) => Ok(ElicitValue::Number(value.into()));
                visit_f64(self, value: f64) => Ok(value.into());
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ElicitValue, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(ElicitValue::Strings)
            }

            /// Numbers are maps if another crate enables the feature `arbitrary_precision` of `serde_json`.
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ElicitValue, A::Error> {
                Number::deserialize(MapAccessDeserializer::new(members))
                    .map(ElicitValue::Number)
                    .map_err(|_| A::Error::invalid_type(Unexpected::Map, &self))
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Takes the default of a field, which must have the type of the field.
macro_rules! default_as {
    ($default:expr, $variant:ident, $expected:literal) => {
        match $default {
            None => Ok(None),
            Some(ElicitValue::$variant(value)) => Ok(Some(value)),
            Some(_) => Err(concat!("`default` must be ", $expected)),
        }
    };
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    /// The eight variants overlap: `type` is checked first, then `oneOf`, `enum`, `enumNames` and `items`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = SchemaFields::deserialize(deserializer)?;
        match fields.kind.as_str() {
            "boolean" => Ok(Self::Boolean(BooleanSchema {
                title: fields.title,
                description: fields.description,
                default_value: default_as!(fields.default, Boolean, "a boolean").map_err(D::Error::custom)?,
                extra: fields.extra,
                ..BooleanSchema::default()
            })),
            "number" | "integer" => Ok(Self::Number(NumberSchema {
                kind: if fields.kind == "integer" { NumberType::Integer } else { NumberType::Number },
                title: fields.title,
                description: fields.description,
                default_value: default_as!(fields.default, Number, "a number").map_err(D::Error::custom)?,
                minimum: fields.minimum,
                maximum: fields.maximum,
                extra: fields.extra,
            })),
            "string" => fields.string().map_err(D::Error::custom),
            "array" => fields.array().map_err(D::Error::custom),
            other => Err(D::Error::invalid_value(
                Unexpected::Str(other),
                &"`type` to be `string`, `number`, `integer`, `boolean` or `array`",
            )),
        }
    }
}

// The members of all eight variants.
object!(struct SchemaFields {
    "type" => kind: required String,
    "title" => title: optional Option<String>,
    "description" => description: optional Option<String>,
    "default" => default: optional Option<ElicitValue>,
    "minLength" => min_length: optional_integer Option<i64>,
    "maxLength" => max_length: optional_integer Option<i64>,
    "format" => format: optional Option<StringFormat>,
    "minimum" => minimum: optional Option<Number>,
    "maximum" => maximum: optional Option<Number>,
    "enum" => values: optional Option<Vec<String>>,
    "enumNames" => names: optional Option<Vec<String>>,
    "oneOf" => options: optional Option<Vec<EnumOption>>,
    "items" => items: optional Option<ItemFields>,
    "minItems" => min_items: optional_integer Option<i64>,
    "maxItems" => max_items: optional_integer Option<i64>,
} keep extra);

// `type` is always `string`.
object!(struct ItemFields {
    "type" => _kind: optional Option<IgnoredAny>,
    "enum" => values: optional Option<Vec<String>>,
    "anyOf" => options: optional Option<Vec<EnumOption>>,
} keep extra);

/// Creates a schema, with members from the variables of the same names.
macro_rules! filled {
    ($variant:ident($schema:ident::$new:ident($($required:expr)?)) $($member:ident)*) => {
        PrimitiveSchema::$variant($schema { $($member,)* ..$schema::$new($($required)?) })
    };
}

impl SchemaFields {
    fn string(self) -> Result<PrimitiveSchema, String> {
        use {LegacyTitledEnumSchema as Legacy, TitledSingleSelectEnumSchema as Titled};
        let Self { title, description, min_length, max_length, format, extra, .. } = self;
        let default_value = default_as!(self.default, String, "a string")?;
        Ok(match (self.options, self.values, self.names) {
            (Some(options), _, _) => {
                filled!(TitledSingleSelect(Titled::new(options)) title description extra default_value)
            }
            (None, Some(values), names @ Some(_)) => {
                filled!(LegacyEnum(Legacy::new(values)) title description extra default_value names)
            }
            (None, Some(values), None) => {
                filled!(SingleSelect(UntitledSingleSelectEnumSchema::new(values)) title description extra default_value)
            }
            (None, None, _) => {
                filled!(String(StringSchema::default()) title description extra default_value min_length max_length format)
            }
        })
    }

    fn array(self) -> Result<PrimitiveSchema, String> {
        use {TitledMultiSelectEnumSchema as Titled, UntitledMultiSelectEnumSchema as Untitled};
        let Self { title, description, min_items, max_items, extra, .. } = self;
        let default_value = default_as!(self.default, Strings, "a list of strings")?;
        let items = self.items.ok_or("missing field `items`")?;
        Ok(match (items.options, items.values) {
            (Some(options), _) => {
                let items = TitledItems { options, extra: items.extra };
                filled!(TitledMultiSelect(Titled::new(items)) title description extra default_value min_items max_items)
            }
            (None, Some(values)) => {
                let items = UntitledItems { extra: items.extra, ..UntitledItems::new(values) };
                filled!(MultiSelect(Untitled::new(items)) title description extra default_value min_items max_items)
            }
            (None, None) => return Err("`items` needs `enum` or `anyOf`".to_owned()),
        })
    }
}

from_variants!(PrimitiveSchema {
    StringSchema => String,
    NumberSchema => Number,
    BooleanSchema => Boolean,
    UntitledSingleSelectEnumSchema => SingleSelect,
    TitledSingleSelectEnumSchema => TitledSingleSelect,
    UntitledMultiSelectEnumSchema => MultiSelect,
    TitledMultiSelectEnumSchema => TitledMultiSelect,
    LegacyTitledEnumSchema => LegacyEnum,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: for<'de> Deserialize<'de>>(text: &str, says: &str) {
        let fault = serde_json::from_str::<T>(text).err().expect("refused").to_string();
        assert!(fault.contains(says), "{text}: {fault}");
    }

    // covers: EL-4, CG-13
    #[test]
    fn a_question_without_mode_is_a_form() {
        let schema = r#""requestedSchema":{"type":"object","properties":{}}"#;
        for text in [format!(r#"{{"message":"m",{schema}}}"#), format!(r#"{{"message":"m",{schema},"mode":"form"}}"#)] {
            let params: ElicitRequestParams = serde_json::from_str(&text).unwrap();
            assert!(matches!(params, ElicitRequestParams::Form(_)));
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
        refused::<ElicitRequestParams>(r#"{"message":"m"}"#, "missing field `requestedSchema`");
        refused::<ElicitRequestParams>(r#"{"message":"m","mode":"url"}"#, "missing field `url`");
        refused::<ElicitRequestParams>(
            r#"{"message":"m","mode":"fax"}"#,
            "`mode`: unknown value `fax`, expected `form` or `url`",
        );
    }

    // covers: EL-6, CG-12
    #[test]
    fn every_kind_of_field_is_recognised() {
        use PrimitiveSchema as P;
        type Test = fn(&P) -> bool;
        let cases: [(&str, Test); 9] = [
            (r#"{"type":"string","format":"email"}"#, |s| matches!(s, P::String(_))),
            (r#"{"type":"integer","minimum":1}"#, |s| matches!(s, P::Number(n) if n.kind == NumberType::Integer)),
            (r#"{"type":"number","default":0.5}"#, |s| matches!(s, P::Number(_))),
            (r#"{"type":"boolean","default":true}"#, |s| matches!(s, P::Boolean(_))),
            (r#"{"type":"string","enum":["a"]}"#, |s| matches!(s, P::SingleSelect(_))),
            (r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#, |s| matches!(s, P::TitledSingleSelect(_))),
            (r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#, |s| matches!(s, P::MultiSelect(_))),
            (r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#, |s| {
                matches!(s, P::TitledMultiSelect(_))
            }),
            (r#"{"type":"string","enum":["a"],"enumNames":["A"]}"#, |s| matches!(s, P::LegacyEnum(_))),
        ];
        for (text, is_expected) in cases {
            let schema: P = serde_json::from_str(text).unwrap();
            assert!(is_expected(&schema), "{text}: {schema:?}");
            assert_eq!(
                serde_json::to_value(&schema).unwrap(),
                serde_json::from_str::<serde_json::Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn other_kinds_of_field_are_refused_by_name() {
        refused::<PrimitiveSchema>(r#"{"type":"object"}"#, "`type` to be `string`");
        refused::<PrimitiveSchema>(r#"{"type":"array"}"#, "missing field `items`");
        refused::<PrimitiveSchema>(r#"{"type":"array","items":{}}"#, "`items` needs `enum` or `anyOf`");
        refused::<PrimitiveSchema>(r#"{"type":"string","default":7}"#, "`default` must be a string");
        refused::<PrimitiveSchema>(r#"{"title":"x"}"#, "missing field `type`");
    }

    /// Numbers may be fractions, whatever the schema file says.
    // covers: EL-24, CG-9
    #[test]
    fn values_keep_their_type() {
        let text = r#"{"action":"accept","content":{"z":"x","a":1,"b":1.5,"c":false,"d":["p","q"]}}"#;
        let result: ElicitResult = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        refused::<ElicitValue>("null", "expected a string, a number, a boolean or a list of strings");
    }
}
