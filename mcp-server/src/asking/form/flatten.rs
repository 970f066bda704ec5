//! From JSON Schema to the small part of it that forms have.

use mcp_types::PrimitiveSchema;
use serde_json::{Map, Value, json};

/// The error of a type that a form cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct NotFlat(Fault);

impl NotFlat {
    /// The member that no field can stand for, if it is not the type as a whole.
    #[must_use]
    pub fn member_name(&self) -> Option<&str> {
        match &self.0 {
            Fault::Whole => None,
            Fault::Member { name, .. } => Some(name),
        }
    }

    pub(super) fn member(name: &str, reason: Reason) -> Self {
        Self(Fault::Member { name: name.to_owned(), reason })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("a form is a struct with named fields, and this type is none")]
    Whole,
    #[error("a form cannot ask for `{name}`: {reason}")]
    Member { name: String, reason: Reason },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
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
    /// Whether `null` is allowed as well, which forms express by leaving the field out.
    pub(super) is_nullable: bool,
}

/// The schemas of the members of an object, if it has any.
pub(super) fn object_members(schema: &Value) -> Result<Option<&Value>, NotFlat> {
    let is_plain = ["$ref", "allOf", "anyOf", "oneOf", "not", "if"].iter().all(|keyword| schema.get(keyword).is_none());
    if is_plain && schema["type"] == "object" { Ok(schema.get("properties")) } else { Err(NotFlat(Fault::Whole)) }
}

pub(super) fn field(schema: &Value) -> Result<Field, Reason> {
    let mut schema = schema.as_object().ok_or(Reason::Anything)?.clone();
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
            Some("object") => return Err(Reason::Nested),
            Some(other) => return Err(Reason::Invalid(format!("it is of the type `{other}`"))),
            None if schema.contains_key("type") => return Err(Reason::SeveralTypes),
            None => return Err(Reason::Anything),
        }
    }
    let schema: PrimitiveSchema =
        serde_json::from_value(Value::Object(plain)).map_err(|fault| Reason::Invalid(fault.to_string()))?;
    if let Some(default) = schema.default_value() {
        schema.check(&default).map_err(Reason::Default)?;
    }
    Ok(Field { schema, is_nullable })
}

/// Takes `null` out of what is allowed and says whether it was there.
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
        // What `Option` wraps around an enum with descriptions.
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

/// Constraints that would be lost; annotations may be.
fn refuse_keywords(schema: &Map<String, Value>) -> Result<(), Reason> {
    if schema.contains_key("$ref") {
        return Err(Reason::Recursive);
    }
    let lost = ["allOf", "not", "if", "pattern", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "contains"];
    match lost.into_iter().find(|keyword| schema.contains_key(*keyword)) {
        Some(keyword) => Err(Reason::Keyword(keyword)),
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

fn items(schema: &Map<String, Value>) -> Result<Value, Reason> {
    let items = schema.get("items").and_then(Value::as_object).ok_or(Reason::FreeList)?;
    refuse_keywords(items)?;
    match Choices::of(items) {
        Ok(Some(choices)) => Ok(choices.items()),
        Ok(None) | Err(Reason::SeveralTypes) => Err(Reason::FreeList),
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
    /// The choices that a schema offers, if it is about choosing.
    fn of(schema: &Map<String, Value>) -> Result<Option<Self>, Reason> {
        let mut choices = Vec::new();
        if let Some(alternatives) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
            for alternative in alternatives.as_array().into_iter().flatten() {
                let alternative = alternative.as_object().ok_or(Reason::SeveralTypes)?;
                refuse_keywords(alternative)?;
                choices.extend(constants(alternative)?.ok_or(Reason::SeveralTypes)?);
            }
        } else if let Some(found) = constants(schema)? {
            choices = found;
        } else {
            return Ok(None);
        }
        if choices.is_empty() { Err(Reason::NoChoices) } else { Ok(Some(Self(choices))) }
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

    /// A value without a label is its own.
    fn titled(self) -> Value {
        let titled = |Choice { value, title }| json!({ "title": title.as_ref().unwrap_or(&value), "const": value });
        self.0.into_iter().map(titled).collect()
    }

    fn untitled(self) -> Value {
        self.0.into_iter().map(|choice| choice.value).collect()
    }
}

/// The texts of `const` or `enum`; the title belongs to a constant alone.
fn constants(schema: &Map<String, Value>) -> Result<Option<Vec<Choice>>, Reason> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(Reason::OtherChoices);
    if let Some(value) = schema.get("const") {
        let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
        return Ok(Some(vec![Choice { value: text(value)?, title }]));
    }
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return Ok(None) };
    values.iter().map(|value| Ok(Choice { value: text(value)?, title: None })).collect::<Result<_, _>>().map(Some)
}
