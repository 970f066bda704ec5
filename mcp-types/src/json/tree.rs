//! Parses untrusted JSON into a `serde_json::Value`.
//!
//! `serde_json::Value` gives objects with certain member names a special meaning, as raw values and long numbers. A peer
//! could use these names to have the text of a string parsed as JSON, past the scanner and its limits. Here no name has a
//! special meaning.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::codec::visit::visit;

/// Parses untrusted JSON into a [`Value`].
///
/// Unlike `serde_json::from_str`, it gives no special meaning to the member names that `serde_json` uses internally, for
/// which `serde_json` parses the text of a string as JSON.
///
/// # Errors
///
/// Returns an error if the text is not JSON, nests deeper than [`Value`] supports, or has a number out of its range.
pub fn parse_value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Tree>(text).map(|tree| tree.0)
}

/// Deserializes a [`Value`] without special member names.
pub(crate) struct Tree(pub(crate) Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    visit! {
        visit_bool(self, value: bool) => Ok(value.into());
        visit_i64(self, value: i64) => Ok(value.into());
        visit_u64(self, value: u64) => Ok(value.into());
        visit_f64(self, value: f64) => Ok(value.into());
        visit_str(self, text: &str) => Ok(text.into());
        visit_string(self, text: String) => Ok(text.into());
        visit_unit(self) => Ok(Value::Null);
        visit_none(self) => Ok(Value::Null);
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Tree(value))) = members.next_entry::<String, Tree>()? {
            object.insert(name, value);
        }
        // With its feature `arbitrary_precision`, `serde_json` represents fractions as objects with this member.
        if object.len() == 1
            && let Some(digits) = object.get(NUMBER).and_then(Value::as_str)
            && fractions_are_objects()
            && let Ok(number) = digits.parse::<Number>()
        {
            return Ok(number.into());
        }
        Ok(object.into())
    }
}

const NUMBER: &str = "$serde_json::private::Number";

/// Returns whether `serde_json` represents fractions as objects.
fn fractions_are_objects() -> bool {
    struct Probe;

    impl<'de> Visitor<'de> for Probe {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }

        fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<bool, A::Error> {
            Ok(true)
        }
    }

    serde_json::Deserializer::from_str("0.5").deserialize_any(Probe).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,0.5,"x",{}],"b":{"c":[]}}"#;
        let Tree(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn no_name_is_special() {
        for name in [crate::json::validated::raw_value_name().unwrap(), NUMBER] {
            let text = format!(r#"{{"{name}":"[1]"}}"#);
            let Tree(value) = serde_json::from_str(&text).unwrap();
            assert_eq!(value.to_string(), text);
        }
    }
}
