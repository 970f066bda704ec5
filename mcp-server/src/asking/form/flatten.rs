//! Converts JSON Schemas to the subset that forms have.

use mcp_types::PrimitiveSchema;
use serde_json::{Map, Value, json};

/// The error of a type that a form cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct UnsupportedType(Fault);

impl UnsupportedType {
    /// Returns the name of the member that a form cannot express, if it is a single one.
    #[must_use]
    pub fn member_name(&self) -> Option<&str> {
        match &self.0 {
            Fault::Whole => None,
            Fault::Member { name, .. } => Some(name),
        }
    }

    pub(super) fn member(name: &str, reason: UnsupportedField) -> Self {
        Self(Fault::Member { name: name.to_owned(), reason })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("a form is a struct with named fields, and this type is not")]
    Whole,
    #[error("a form cannot ask for `{name}`: {reason}")]
    Member { name: String, reason: UnsupportedField },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnsupportedField {
    #[error("it is an object, and forms are flat")]
    Nested,
    #[error("its type contains itself")]
    Recursive,
    #[error("it may be anything")]
    Anything,
    #[error("it may be of several types")]
    SeveralTypes,
    #[error("it is a list of something other than choices")]
    FreeList,
    #[error("its choices are not texts")]
    OtherChoices,
    #[error("it has no choices")]
    NoChoices,
    #[error("forms do not have `{0}`")]
    Keyword(&'static str),
    #[error("its default {0}")]
    Default(String),
    #[error("{0}")]
    Invalid(String),
}

/// One field of a form.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) schema: PrimitiveSchema,
    /// Whether `null` is allowed as well, which forms express by an optional field.
    pub(super) is_nullable: bool,
}

/// The schemas of the members of an object, if it has any.
pub(super) fn object_members(schema: &Value) -> Result<Option<&Value>, UnsupportedType> {
    let is_plain = ["$ref", "allOf", "anyOf", "oneOf", "not", "if"].iter().all(|keyword| schema.get(keyword).is_none());
    if is_plain && schema["type"] == "object" {
        Ok(schema.get("properties"))
    } else {
        Err(UnsupportedType(Fault::Whole))
    }
}

pub(super) fn field(schema: &Value) -> Result<Field, UnsupportedField> {
    let mut schema = schema.as_object().ok_or(UnsupportedField::Anything)?.clone();
    let is_nullable = remove_null(&mut schema);
    refuse_keywords(&schema)?;
    let mut plain = pick(&schema, &["title", "description", "default"]);
    if let Some(choices) = Choices::of(&schema)? {
        plain.extend(choices.single());
    } else {
        plain.insert("type".to_owned(), schema.get("type").cloned().unwrap_or_default());
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => plain.extend(text(&schema)),
            Some("number" | "integer") => plain.extend(pick(&schema, &["minimum", "maximum"])),
            Some("boolean") => {}
            Some("array") => {
                plain.extend(pick(&schema, &["minItems", "maxItems"]));
                plain.insert("items".to_owned(), items(&schema)?);
            }
            Some("object") => return Err(UnsupportedField::Nested),
            Some(other) => return Err(UnsupportedField::Invalid(format!("it is of the type `{other}`"))),
            None if schema.contains_key("type") => return Err(UnsupportedField::SeveralTypes),
            None => return Err(UnsupportedField::Anything),
        }
    }
    let schema: PrimitiveSchema =
        serde_json::from_value(Value::Object(plain)).map_err(|fault| UnsupportedField::Invalid(fault.to_string()))?;
    if let Some(default) = schema.default_value() {
        schema.check(&default).map_err(UnsupportedField::Default)?;
    }
    Ok(Field { schema, is_nullable })
}

/// Removes `null` from the allowed values; returns whether it was one of them.
fn remove_null(schema: &mut Map<String, Value>) -> bool {
    let mut is_nullable = schema.get("default").is_some_and(Value::is_null);
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = schema.get_mut(keyword) else { continue };
        let before = alternatives.len();
        alternatives.retain(|alternative| alternative["type"] != "null");
        if alternatives.len() == before {
            continue;
        }
        is_nullable = true;
        // `Option` of an enum with descriptions is an `anyOf` with one other alternative.
        if let [Value::Object(only)] = &mut alternatives[..] {
            let only = std::mem::take(only);
            schema.remove(keyword);
            for (name, value) in only {
                schema.entry(name).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        let before = types.len();
        types.retain(|kind| kind != "null");
        is_nullable |= types.len() < before;
        if let [only] = &mut types[..] {
            schema["type"] = only.take();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    is_nullable
}

/// Refuses constraints that forms cannot express. Annotations are dropped.
fn refuse_keywords(schema: &Map<String, Value>) -> Result<(), UnsupportedField> {
    if schema.contains_key("$ref") {
        return Err(UnsupportedField::Recursive);
    }
    let lost = ["allOf", "not", "if", "pattern", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "contains"];
    match lost.into_iter().find(|keyword| schema.contains_key(*keyword)) {
        Some(keyword) => Err(UnsupportedField::Keyword(keyword)),
        None => Ok(()),
    }
}

fn text(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut picked = pick(schema, &["minLength", "maxLength", "format"]);
    let is_known = |format: &Value| ["email", "uri", "date", "date-time"].iter().any(|known| format == known);
    if picked.get("format").is_some_and(|format| !is_known(format)) {
        picked.remove("format");
    }
    picked
}

fn items(schema: &Map<String, Value>) -> Result<Value, UnsupportedField> {
    let items = schema.get("items").and_then(Value::as_object).ok_or(UnsupportedField::FreeList)?;
    refuse_keywords(items)?;
    match Choices::of(items) {
        Ok(Some(choices)) => Ok(choices.items()),
        Ok(None) | Err(UnsupportedField::SeveralTypes) => Err(UnsupportedField::FreeList),
        Err(reason) => Err(reason),
    }
}

fn pick(schema: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let present = names.iter().filter_map(|name| schema.get_key_value(*name));
    present.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Values to choose from.
struct Choices(Vec<Choice>);

struct Choice {
    value: String,
    title: Option<String>,
}

impl Choices {
    /// Returns the choices of a schema, if it has any.
    fn of(schema: &Map<String, Value>) -> Result<Option<Self>, UnsupportedField> {
        let mut choices = Vec::new();
        if let Some(alternatives) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
            for alternative in alternatives.as_array().into_iter().flatten() {
                let alternative = alternative.as_object().ok_or(UnsupportedField::SeveralTypes)?;
                refuse_keywords(alternative)?;
                choices.extend(constants(alternative)?.ok_or(UnsupportedField::SeveralTypes)?);
            }
        } else if let Some(found) = constants(schema)? {
            choices = found;
        } else {
            return Ok(None);
        }
        if choices.is_empty() { Err(UnsupportedField::NoChoices) } else { Ok(Some(Self(choices))) }
    }

    fn single(self) -> Map<String, Value> {
        let mut members = Map::from_iter([("type".to_owned(), "string".into())]);
        let (keyword, choices) = if self.has_labels() { ("oneOf", self.titled()) } else { ("enum", self.untitled()) };
        members.insert(keyword.to_owned(), choices);
        members
    }

    fn items(self) -> Value {
        if self.has_labels() {
            json!({ "anyOf": self.titled() })
        } else {
            json!({ "type": "string", "enum": self.untitled() })
        }
    }

    fn has_labels(&self) -> bool {
        self.0.iter().any(|choice| choice.title.is_some())
    }

    /// The label of a value without one is the value.
    fn titled(self) -> Value {
        let titled = |Choice { value, title }| json!({ "title": title.as_ref().unwrap_or(&value), "const": value });
        self.0.into_iter().map(titled).collect()
    }

    fn untitled(self) -> Value {
        self.0.into_iter().map(|choice| choice.value).collect()
    }
}

/// Returns the texts of `const` or `enum`; only a constant has a title.
fn constants(schema: &Map<String, Value>) -> Result<Option<Vec<Choice>>, UnsupportedField> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(UnsupportedField::OtherChoices);
    if let Some(value) = schema.get("const") {
        let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
        return Ok(Some(vec![Choice { value: text(value)?, title }]));
    }
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return Ok(None) };
    values.iter().map(|value| Ok(Choice { value: text(value)?, title: None })).collect::<Result<_, _>>().map(Some)
}
