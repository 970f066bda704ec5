//! Creates raw values from text that was validated before.
//!
//! `serde_json` has no safe constructor of a [`RawValue`] that skips validation. However, a `RawValue` can be deserialized
//! from any deserializer that follows its protocol: it requests a newtype struct of a certain name and expects a map
//! with that name as its only key and the text as its value. The deserializers here repeat the name that they receive,
//! so they need not know it.

use serde::de::value::{BorrowedStrDeserializer, Error as PlainError};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

/// Returns the text as a raw value without validating it again.
///
/// The text must be exactly one JSON value without whitespace around it.
#[inline]
pub(crate) fn raw_from_validated(text: &str) -> &RawValue {
    // If the protocol of `serde_json` changes, this only costs a second validation.
    unscanned(text).or_else(|| serde_json::from_str(text).ok()).expect("the scanner accepts only JSON")
}

/// The fast path, without validation.
fn unscanned(text: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(Validated(text)).ok()
}

/// Returns the newtype name with which `serde_json` requests a raw value.
///
/// It distinguishes raw values from other newtypes. `None` means that the protocol changed, and raw values have to be
/// deserialized like all other types.
pub(crate) fn raw_value_name() -> Option<&'static str> {
    match <&RawValue>::deserialize(NameFinder) {
        Ok(_) => None,
        Err(Found(name)) => name,
    }
}

/// Passes text that is valid JSON to the visitor of a raw value.
pub(crate) fn visit_raw<'de, V, D>(name: &'static str, text: D, visitor: V) -> Result<V::Value, D::Error>
where
    V: Visitor<'de>,
    D: Deserializer<'de>,
{
    visitor.visit_map(Echo { name, text: Some(text) })
}

/// Deserializes raw values only.
struct Validated<'de>(&'de str);

impl<'de> Deserializer<'de> for Validated<'de> {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PlainError> {
        Err(de::Error::custom("validated text yields raw values only"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, PlainError> {
        visit_raw(name, BorrowedStrDeserializer::new(self.0), visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The map with one entry that represents a raw value.
struct Echo<D> {
    name: &'static str,
    text: Option<D>,
}

impl<'de, D: Deserializer<'de>> MapAccess<'de> for Echo<D> {
    type Error = D::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, D::Error> {
        if self.text.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(self.name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, D::Error> {
        match self.text.take() {
            Some(text) => seed.deserialize(text),
            None => Err(de::Error::custom("a raw value has one text")),
        }
    }
}

/// Fails with the name of the requested newtype.
struct NameFinder;

#[derive(Debug)]
struct Found(Option<&'static str>);

impl<'de> Deserializer<'de> for NameFinder {
    type Error = Found;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
        Err(Found(None))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, _: V) -> Result<V::Value, Found> {
        Err(Found(Some(name)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no value was expected")
    }
}

impl std::error::Error for Found {}

impl de::Error for Found {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_follows_the_protocol_of_the_current_serde_json() {
        assert_eq!(unscanned("{\"a\": 1}").unwrap().get(), "{\"a\": 1}");
        assert!(raw_value_name().is_some());
    }

    #[test]
    fn the_fast_path_copies_nothing() {
        let text = String::from("[1, 2]");
        assert!(std::ptr::eq(raw_from_validated(&text).get(), text.as_str()));
    }

    #[test]
    fn nothing_but_raw_values_comes_out() {
        assert!(u8::deserialize(Validated("1")).is_err());
    }
}
