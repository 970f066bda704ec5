//! JSON objects as text.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer};
use serde_json::{Error, Map, Value};

use crate::RawJson;
use crate::json::validated::raw_from_validated;

/// A JSON object as text.
///
/// This is a [`RawJson`] that is an object, for members such as `params`, `result`, `arguments` and schemas. Equality is
/// equality of the text.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(
    feature = "schemars",
    derive(schemars::JsonSchema),
    schemars(with = "Value", inline, extend("type" = "object"), description = "")
)]
#[serde(transparent)]
pub struct RawObject(RawJson);

impl RawObject {
    /// Serializes a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized, or not as an object.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        RawJson::new(value)?.try_into()
    }

    /// Validates text that is one JSON object; surrounding whitespace is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object, or if [`RawJson::parse`] rejects it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        RawJson::parse(text)?.try_into()
    }

    /// Returns `{}`.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_static("{}")
    }

    /// Creates an object from a literal.
    pub(crate) fn from_static(text: &'static str) -> Self {
        Self::from_checked(raw_from_validated(text).into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Deserializes the text; the value may borrow from it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not match `T`, or nests deeper than the 127 levels that `serde_json` supports.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        self.0.decode()
    }

    /// Parses the text into a [`Value`].
    ///
    /// # Errors
    ///
    /// Returns an error if the text nests deeper, or a number is larger, than [`Value`] supports.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.0.to_value()
    }

    /// Wraps a raw value that was checked to be an object.
    pub(crate) fn from_checked(raw: RawJson) -> Self {
        debug_assert!(raw.as_str().starts_with('{'), "checked to be an object");
        Self(raw)
    }

    /// Returns the object as any JSON value.
    pub(crate) fn into_raw(self) -> RawJson {
        self.0
    }
}

impl TryFrom<RawJson> for RawObject {
    type Error = Error;

    /// Returns an error if the value is not an object.
    fn try_from(raw: RawJson) -> Result<Self, Error> {
        check(raw)
    }
}

/// A raw value has no leading whitespace, so its first byte determines its type.
fn check<E: de::Error>(raw: RawJson) -> Result<RawObject, E> {
    if raw.as_str().starts_with('{') {
        Ok(RawObject(raw))
    } else {
        let found = crate::json::scan::kind(raw.as_str());
        Err(E::custom(format_args!("expected an object, found {found}")))
    }
}

impl From<Map<String, Value>> for RawObject {
    fn from(map: Map<String, Value>) -> Self {
        Self(Value::Object(map).into())
    }
}

impl Default for RawObject {
    /// Returns `{}`.
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Display for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawObject({})", self.as_str())
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        check(RawJson::deserialize(deserializer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_get_in() {
        for text in ["[]", "null", "1", "\"{}\"", "true"] {
            assert!(RawObject::parse(text).is_err(), "{text}");
            assert!(serde_json::from_str::<RawObject>(text).is_err(), "{text}");
        }
        assert!(RawObject::new(&5).is_err());
        assert_eq!(RawObject::parse(" {} ").unwrap(), RawObject::empty());
    }

    #[test]
    fn the_error_says_what_was_found() {
        let error = RawObject::new(&[1]).unwrap_err();
        assert_eq!(error.to_string(), "expected an object, found an array");
    }

    #[test]
    fn a_map_becomes_an_object() {
        let mut map = Map::new();
        map.insert("a".to_owned(), Value::from(1));
        let object = RawObject::from(map);
        assert_eq!(object.as_str(), r#"{"a":1}"#);
        assert_eq!(RawJson::from(object).as_str(), r#"{"a":1}"#);
    }
}
