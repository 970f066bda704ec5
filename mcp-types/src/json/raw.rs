//! JSON values as text.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::value::StringDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use crate::RawObject;
use crate::json::scan::{MAX_DEPTH, Scanner};
use crate::json::tree::{Tree, parse_value};
use crate::json::validated::{raw_from_validated, visit_raw};

/// A JSON value of any type as text.
///
/// Numbers of any size, the order of members and inner whitespace are preserved exactly; nothing is interpreted before
/// [`decode`](Self::decode). Equality is equality of the text, so `1` and `1.0`, or `{"a":1}` and `{"a": 1}`, differ;
/// compare [`to_value`](Self::to_value) for equality of the JSON value.
///
/// The text is not preserved inside of `#[serde(flatten)]` and of untagged or internally tagged enums, which buffer their
/// input.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "Value", inline, description = ""))]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Serializes a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized, such as a map whose keys are not strings.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Validates text that is one JSON value; surrounding whitespace is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not JSON, nests deeper than [`MAX_SUPPORTED_DEPTH`](crate::jsonrpc::Limits::MAX_SUPPORTED_DEPTH) levels, or has a
    /// member with one of the names that `serde_json` reserves for itself, which begin with `$serde_json::private::`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut scanner = Scanner::new(text, MAX_DEPTH);
        let value = scanner.value().and_then(|value| scanner.finish().map(|()| value));
        value.map(|value| raw_from_validated(value).into()).map_err(serde::de::Error::custom)
    }

    /// Creates a JSON string.
    pub(crate) fn from_text(text: &str) -> Self {
        Value::from(text).into()
    }

    /// Returns the text without a copy.
    pub(crate) fn into_text(self) -> Box<str> {
        self.0.into()
    }

    /// Returns the value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Deserializes the text; the value may borrow from it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not match `T`, or nests deeper than the 127 levels that `serde_json` supports.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(self.as_str())
    }

    /// Parses the text into a [`Value`].
    ///
    /// # Errors
    ///
    /// Returns an error if the text nests deeper, or a number is larger, than [`Value`] supports.
    pub fn to_value(&self) -> Result<Value, Error> {
        parse_value(self.as_str())
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        let text = value.to_string();
        Self(raw_from_validated(&text).to_owned())
    }
}

impl From<RawObject> for RawJson {
    fn from(object: RawObject) -> Self {
        object.into_raw()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl Default for RawJson {
    /// Returns `null`.
    fn default() -> Self {
        Self::null()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl Hash for RawJson {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({})", self.as_str())
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(OrBuffered(deserializer)).map(Self)
    }
}

/// Allows a raw value to be deserialized from deserializers without support for raw values.
///
/// They treat it as an ordinary newtype; then the value is parsed and serialized again.
struct OrBuffered<T>(T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OrBuffered<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, OrBufferedVisitor { name, visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct OrBufferedVisitor<V> {
    name: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for OrBufferedVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(map)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let text = Tree::deserialize(deserializer)?.0.to_string();
        visit_raw(self.name, StringDeserializer::new(text), self.visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_survives_exactly() {
        let text = r#"{"z":123456789012345678901234567890, "a":1.00e+2}"#;
        let raw: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(raw.as_str(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        assert_eq!(raw.to_string(), text);
        assert_eq!(format!("{raw:?}"), format!("RawJson({text})"));
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "{", "nul", "1 2", "'a'"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        assert_eq!(RawJson::parse(" [1] ").unwrap().as_str(), "[1]");
    }

    #[test]
    fn equality_is_by_text() {
        assert_eq!(RawJson::parse("[1]").unwrap(), RawJson::from(json!([1])));
        assert_ne!(RawJson::parse("[1]").unwrap(), RawJson::parse("[1 ]").unwrap());
    }

    #[test]
    fn decoding_may_borrow() {
        let raw = RawJson::new("text").unwrap();
        assert_eq!(raw.decode::<&str>().unwrap(), "text");
        assert!(raw.decode::<u8>().is_err());
        assert_eq!(RawJson::default().to_value().unwrap(), Value::Null);
    }

    #[derive(serde::Deserialize)]
    struct Flat {
        #[serde(flatten)]
        rest: BTreeMap<String, RawJson>,
    }

    #[test]
    fn values_come_out_of_trees_and_buffers() {
        let flat: Flat = serde_json::from_str(r#"{"a": [1, "x"], "b": null}"#).unwrap();
        assert_eq!(flat.rest["a"].as_str(), r#"[1,"x"]"#);
        assert_eq!(flat.rest["b"], RawJson::null());
        let raw: RawJson = serde_json::from_value(json!({"a": 1})).unwrap();
        assert_eq!(raw.as_str(), r#"{"a":1}"#);
    }

    /// A peer's text never becomes JSON by itself, whatever name it is given.
    #[test]
    fn text_stays_text() {
        let name = crate::json::validated::raw_value_name().unwrap();
        let text = format!(r#"{{"a":{{"{name}":"[1]"}}}}"#);
        let flat: Flat = serde_json::from_str(&text).unwrap();
        assert_eq!(flat.rest["a"].as_str(), format!(r#"{{"{name}":"[1]"}}"#));
        assert!(RawJson::parse(&text).is_err());
        let value = serde_json::from_str::<RawJson>(&text).unwrap().to_value().unwrap();
        assert_eq!(value["a"][name], "[1]");
    }

    #[test]
    fn a_plain_string_deserializer_does_not_smuggle_text_in() {
        let source = serde::de::value::BorrowedStrDeserializer::<serde::de::value::Error>::new("}{");
        assert!(RawJson::deserialize(source).is_err());
    }

    #[cfg(feature = "schemars")]
    #[test]
    fn schemas_say_any_value_and_any_object() {
        use schemars::schema_for;
        assert_eq!(*schema_for!(RawObject).as_value().get("type").unwrap(), "object");
        assert_eq!(schema_for!(RawJson).as_value().get("type"), None);
        let error = schema_for!(crate::ErrorObject);
        assert!(error.as_value()["properties"].get("data").is_some());
    }
}
