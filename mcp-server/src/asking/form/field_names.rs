//! The order in which a struct declares its fields.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of the fields of a struct in the order of their declaration; none for other types, and for structs with
/// flattened fields.
///
/// The schema cannot be used: whether its properties are in order depends on a feature of `serde_json` that any crate of the
/// build may enable. But a struct passes the names of its fields to its deserializer.
pub(crate) fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always fails, as there is no value to deserialize.
    let _ = T::deserialize(FieldNameRecorder(&mut names));
    names
}

struct FieldNameRecorder<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNameRecorder<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("only the names are needed"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "never read")]
    struct Zoo {
        zebra_count: u8,
        ant: Option<u8>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "never read")]
    struct Wrapper(Zoo);

    #[test]
    fn structs_have_field_names() {
        assert_eq!(field_names::<Zoo>(), ["zebraCount", "ant"]);
        assert_eq!(field_names::<Wrapper>(), ["zebraCount", "ant"]);
        assert!(field_names::<Vec<u8>>().is_empty());
        assert!(field_names::<u8>().is_empty());
    }
}
