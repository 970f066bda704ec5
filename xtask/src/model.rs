//! The merged model of facts: what `import` writes and `codegen` reads.
//!
//! One file, `mcp-types/schema/model.json`, describes every type, member and method of every
//! revision. It holds facts only; prose lives in `docs.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The revisions that the model merges, oldest first.
pub(crate) const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Everything that is known about the protocol, over all revisions.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) revisions: Vec<String>,
    /// A fingerprint of each official file: dated files do get edited.
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) methods: BTreeMap<String, Method>,
    pub(crate) errata: Vec<Erratum>,
}

/// One type: a definition of the official schemas, or an inline shape that got a name.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Type {
    /// Its name in Rust.
    pub(crate) rust: String,
    /// The generated file it belongs to.
    pub(crate) topic: String,
    /// The revisions that have it.
    pub(crate) revisions: Vec<String>,
    #[serde(flatten)]
    pub(crate) shape: Shape,
}

/// What a type is made of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    /// An object with known members.
    Struct { members: BTreeMap<String, Member> },
    /// A set of strings: wire value to revisions, in the order of the specification.
    Strings {
        /// Whether unknown values survive.
        open: bool,
        values: Vec<StringValue>,
    },
    /// One of several structs.
    Union { by: Discriminator, variants: Vec<Variant> },
    /// Another name for a kind.
    Alias(Kind),
}

/// A member of a struct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Its name in Rust.
    pub(crate) rust: String,
    pub(crate) kind: Kind,
    /// The revisions that have it; absent when those of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revisions: Option<Vec<String>>,
    /// The revisions that demand it.
    #[serde(default, skip_serializing_if = "Required::is_never")]
    pub(crate) required: Required,
    /// A stricter form that earlier revisions demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) narrower: Option<Narrower>,
    /// Whether leaving the member out changes what the rest means.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) essential: bool,
    /// Whether it is boxed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) boxed: bool,
}

/// In which revisions a member must be present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Required {
    /// Nowhere.
    #[default]
    Never,
    /// Wherever the member exists.
    Always,
    /// In these revisions only.
    In(Vec<String>),
}

impl Required {
    fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// A form that some revisions demand of a member whose kind is wider in others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Narrower {
    /// The rule's name: `object`, `object_schema`, `one`, `no_lists`.
    pub(crate) rule: String,
    /// The revisions in which it holds.
    pub(crate) revisions: Vec<String>,
}

/// A wire string of a set, with its Rust name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StringValue {
    pub(crate) wire: String,
    pub(crate) rust: String,
}

/// How the variants of a union are told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Discriminator {
    /// By the string in this member.
    Tag(String),
    /// By which members are present: a hand-written reader.
    Members,
}

/// A variant of a union.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Variant {
    /// Its name in Rust.
    pub(crate) rust: String,
    /// The type it holds.
    pub(crate) holds: String,
    /// The tag's value, where the union has a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    pub(crate) revisions: Vec<String>,
}

/// A method: a request or a notification.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Method {
    /// The name of its constant in Rust.
    pub(crate) rust: String,
    pub(crate) kind: MethodKind,
    /// The type of its params.
    pub(crate) params: String,
    /// The type of its result, for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// The revisions in which the client sends it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) client: Vec<String>,
    /// The revisions in which the server sends it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) server: Vec<String>,
    /// The revisions in which it travels inside an `input_required` result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) embedded: Vec<String>,
    /// The member of its params that the `Mcp-Name` header repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name_source: Option<String>,
    /// The revisions in which its result carries cache hints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cacheable: Vec<String>,
    /// The revisions in which it may be answered with `input_required`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) may_ask: Vec<String>,
    /// The revisions in which it goes only to those who listen for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) listen: Vec<String>,
    /// The extension that also defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extension: Option<ExtensionUse>,
}

/// Who sends a method between peers that both declared an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExtensionUse {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) client: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) server: Vec<String>,
}

/// Whether a method expects an answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MethodKind {
    Request,
    Notification,
}

/// A known fault of an official schema file, and what it should say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Erratum {
    /// Its row in the register of generator faults.
    pub(crate) id: String,
    pub(crate) revisions: Vec<String>,
    /// JSON pointer below the definitions of the file.
    pub(crate) at: String,
    /// What the file says.
    pub(crate) says: serde_json::Value,
    /// What it means.
    pub(crate) means: serde_json::Value,
}

/// The kind of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    /// Any JSON value.
    Any,
    /// A JSON object without known members.
    Object,
    /// Always this string.
    Const(String),
    /// A type of the model, or one written by hand.
    Ref(String),
    List(Box<Self>),
    Map(Box<Self>),
    Nullable(Box<Self>),
    /// A value or a list of such values.
    OneOrMany(Box<Self>),
}

impl Kind {
    /// The type that a value of this kind holds or contains, if it is a named one.
    pub(crate) fn named(&self) -> Option<&str> {
        match self {
            Self::Ref(name) => Some(name),
            Self::List(inner) | Self::Map(inner) | Self::Nullable(inner) | Self::OneOrMany(inner) => inner.named(),
            Self::String | Self::Integer | Self::Number | Self::Boolean | Self::Any | Self::Object | Self::Const(_) => {
                None
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("boolean"),
            Self::Any => f.write_str("any"),
            Self::Object => f.write_str("object"),
            Self::Const(text) => write!(f, "'{text}'"),
            Self::Ref(name) => f.write_str(name),
            Self::List(inner) => write!(f, "list<{inner}>"),
            Self::Map(inner) => write!(f, "map<{inner}>"),
            Self::Nullable(inner) => write!(f, "nullable<{inner}>"),
            Self::OneOrMany(inner) => write!(f, "one_or_many<{inner}>"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((outer, rest)) = text.split_once('<') {
            let inner = rest.strip_suffix('>').ok_or_else(|| format!("kind `{text}` lacks a closing `>`"))?;
            let inner = Box::new(inner.parse()?);
            return match outer {
                "list" => Ok(Self::List(inner)),
                "map" => Ok(Self::Map(inner)),
                "nullable" => Ok(Self::Nullable(inner)),
                "one_or_many" => Ok(Self::OneOrMany(inner)),
                _ => Err(format!("kind `{text}` is unknown")),
            };
        }
        if let Some(value) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            return Ok(Self::Const(value.to_owned()));
        }
        match text {
            "string" => Ok(Self::String),
            "integer" => Ok(Self::Integer),
            "number" => Ok(Self::Number),
            "boolean" => Ok(Self::Boolean),
            "any" => Ok(Self::Any),
            "object" => Ok(Self::Object),
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => Ok(Self::Ref(name.to_owned())),
            _ => Err(format!("kind `{text}` is unknown")),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Writes JSON with a line for each small object, so that the file reads as a table and diffs well.
pub(crate) fn to_readable_json(value: &serde_json::Value) -> String {
    const WIDTH: usize = 110;

    fn write(out: &mut String, value: &serde_json::Value, indent: usize) {
        let compact = value.to_string();
        if indent > 0 && compact.len() + indent <= WIDTH {
            out.push_str(&compact);
            return;
        }
        let (open, close, entries): (char, char, Vec<(String, &serde_json::Value)>) = match value {
            serde_json::Value::Object(members) => {
                let name = |name: &String| format!("{}: ", serde_json::Value::from(name.as_str()));
                ('{', '}', members.iter().map(|(key, member)| (name(key), member)).collect())
            }
            serde_json::Value::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => return out.push_str(&compact),
        };
        out.push(open);
        for (index, (name, entry)) in entries.into_iter().enumerate() {
            out.push_str(if index == 0 { "\n" } else { ",\n" });
            out.push_str(&" ".repeat(indent + 2));
            out.push_str(&name);
            write(out, entry, indent + 2);
        }
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        out.push(close);
    }

    let mut out = String::new();
    write(&mut out, value, 0);
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_as_written() {
        for text in ["string", "list<map<Tool>>", "nullable<integer>", "'text'", "one_or_many<A>"] {
            let kind: Kind = text.parse().expect(text);
            assert_eq!(kind.to_string(), text);
        }
        assert!("list<string".parse::<Kind>().is_err());
        assert!("text".parse::<Kind>().is_err());
    }
}
