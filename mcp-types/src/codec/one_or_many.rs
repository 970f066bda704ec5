//! A single value or a list of values.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A single value or a list of values; deserialization preserves which of the two.
///
/// Sampling messages have a single content block up to 2025-06-18, and one or several since 2025-11-25.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "JSON has no third form")]
pub enum OneOrMany<T> {
    /// A single value outside of a list.
    One(T),
    /// A list, which may be empty or have a single element.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// Returns the values as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// Returns the values as a mutable slice.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(value) => std::slice::from_mut(value),
            Self::Many(values) => values,
        }
    }

    /// Converts the values into a list.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(value: T) -> Self {
        Self::One(value)
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Many(values)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(OneOrMany::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(OneOrMany::Many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SamplingContent;

    #[test]
    fn both_forms_survive() {
        for text in [r#"{"type":"text","text":"a"}"#, r#"[{"type":"text","text":"a"}]"#, r#"[]"#, r#"[{"type":"new"}]"#]
        {
            let content: OneOrMany<SamplingContent> = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&content).unwrap(), text);
        }
        assert!(serde_json::from_str::<OneOrMany<SamplingContent>>("5").is_err());
    }
}
