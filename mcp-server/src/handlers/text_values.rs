//! Decodes named texts into typed values: the variables of a URI, the arguments of a prompt.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// Decodes a `T` from named texts.
///
/// Numbers and booleans are parsed, and the text of an enum is the name of a variant. Names that `T` does not have are
/// ignored, and an `Option` is `None` if its name is absent. Duplicate names are an error of serde.
///
/// Behind `#[serde(flatten)]` and in untagged enums serde does not request a type, so all texts are strings there.
pub(crate) fn decode<'a, T: DeserializeOwned>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<T, InvalidText> {
    T::deserialize(Texts { pairs, current: None })
}

/// The error of decoding the arguments of a prompt or the variables of a URI, which are sent as text: a value is missing or
/// does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidText(Fault);

impl InvalidText {
    /// Returns the name of the invalid argument or variable, if it is a single one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Fault::Missing(name) | Fault::Invalid { name, .. } => Some(name),
            Fault::Unnamed(_) => None,
        }
    }

    fn of(self, name: &str) -> Self {
        match self.0 {
            Fault::Unnamed(reason) => Self(Fault::Invalid { name: name.to_owned(), reason }),
            named @ (Fault::Missing(_) | Fault::Invalid { .. }) => Self(named),
        }
    }
}

impl Error for InvalidText {
    fn custom<M: fmt::Display>(reason: M) -> Self {
        Self(Fault::Unnamed(reason.to_string()))
    }

    fn missing_field(name: &'static str) -> Self {
        Self(Fault::Missing(name.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`{name}`: {reason}")]
    Invalid { name: String, reason: String },
    #[error("{0}")]
    Unnamed(String),
}

/// All texts, which deserialize as a map.
struct Texts<'a, I> {
    pairs: I,
    /// The pair whose name was deserialized last.
    current: Option<(&'a str, &'a str)>,
}

impl<'de, 'a, I: Iterator<Item = (&'a str, &'a str)>> Deserializer<'de> for Texts<'a, I> {
    type Error = InvalidText;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, 'a, I: Iterator<Item = (&'a str, &'a str)>> MapAccess<'de> for Texts<'a, I> {
    type Error = InvalidText;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, InvalidText> {
        self.current = self.pairs.next();
        let Some((name, _)) = self.current else { return Ok(None) };
        seed.deserialize(Text(name)).map(Some).map_err(|fault| fault.of(name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, InvalidText> {
        let (name, text) = self.current.ok_or_else(|| InvalidText::custom("a value was requested before its name"))?;
        seed.deserialize(Text(text)).map_err(|fault| fault.of(name))
    }
}

/// One text.
struct Text<'a>(&'a str);

macro_rules! parsed {
    ($($method:ident => $visit:ident: $number:ty),* $(,)?) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
                match self.0.parse::<$number>() {
                    Ok(number) => visitor.$visit(number),
                    Err(_) => Err(self.mismatch(format_args!(
                        "a whole number from {} to {}", <$number>::MIN, <$number>::MAX
                    ))),
                }
            }
        )*
    };
}

impl Text<'_> {
    fn mismatch(&self, expected: impl fmt::Display) -> InvalidText {
        let shown: String = self.0.chars().take(MAX_SHOWN_CHARS).collect();
        let more = if shown.len() < self.0.len() { "..." } else { "" };
        InvalidText::custom(format_args!("`{shown}{more}` is not {expected}"))
    }

    fn finite(&self) -> Result<f64, InvalidText> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| self.mismatch("a number"))
    }
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = InvalidText;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_str(self.0)
    }

    parsed! {
        deserialize_i8 => visit_i8: i8,
        deserialize_i16 => visit_i16: i16,
        deserialize_i32 => visit_i32: i32,
        deserialize_i64 => visit_i64: i64,
        deserialize_i128 => visit_i128: i128,
        deserialize_u8 => visit_u8: u8,
        deserialize_u16 => visit_u16: u16,
        deserialize_u32 => visit_u32: u32,
        deserialize_u64 => visit_u64: u64,
        deserialize_u128 => visit_u128: u128,
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_f64(self.finite()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_f64(self.finite()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.mismatch("`true` or `false`")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, InvalidText> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidText> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Text<'_> {
    type Error = InvalidText;
    type Variant = NoContent;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, NoContent), InvalidText> {
        let name: StrDeserializer<'_, InvalidText> = StrDeserializer::new(self.0);
        Ok((seed.deserialize(name)?, NoContent))
    }
}

/// The content of a variant, which a text does not have.
struct NoContent;

impl<'de> VariantAccess<'de> for NoContent {
    type Error = InvalidText;

    fn unit_variant(self) -> Result<(), InvalidText> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, InvalidText> {
        Err(InvalidText::invalid_type(Unexpected::UnitVariant, &"a variant with content"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, InvalidText> {
        Err(InvalidText::invalid_type(Unexpected::UnitVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, InvalidText> {
        Err(InvalidText::invalid_type(Unexpected::UnitVariant, &visitor))
    }
}

/// The maximum number of characters of a text in an error.
const MAX_SHOWN_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    fn read<T: DeserializeOwned>(pairs: &[(&str, &str)]) -> Result<T, InvalidText> {
        decode(pairs.iter().copied())
    }

    fn refused<T: DeserializeOwned + fmt::Debug>(pairs: &[(&str, &str)], name: Option<&str>, says: &str) {
        let fault = read::<T>(pairs).unwrap_err();
        assert_eq!(fault.name(), name);
        assert_eq!(fault.to_string(), says);
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything {
        text: String,
        small: u8,
        signed: i64,
        ratio: f32,
        exact: bool,
        letter: char,
        order: Order,
        page: Page,
        limit: Option<u16>,
        #[serde(default)]
        offset: usize,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        NewestFirst,
        Range(u8, u8),
        Only(u8),
        By { field: u8 },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Page(u32);

    const FULL: [(&str, &str); 9] = [
        ("letter", "ß"),
        ("text", "007"),
        ("small", "255"),
        ("signed", "-9"),
        ("ratio", "0.5"),
        ("exact", "true"),
        ("order", "newest_first"),
        ("page", "3"),
        ("unheard_of", "x"),
    ];

    fn full_but<'a>(name: &'a str, text: &'a str) -> Vec<(&'a str, &'a str)> {
        FULL.iter().map(|&(known, old)| (known, if known == name { text } else { old })).collect()
    }

    #[test]
    fn the_type_decides_what_a_text_is() {
        let expected = Everything {
            text: "007".to_owned(),
            small: 255,
            signed: -9,
            ratio: 0.5,
            exact: true,
            letter: 'ß',
            order: Order::NewestFirst,
            page: Page(3),
            limit: None,
            offset: 0,
        };
        assert_eq!(read::<Everything>(&FULL), Ok(expected));
        let limited: Everything = read(&[&FULL[..], &[("limit", "7"), ("offset", "8")]].concat()).unwrap();
        assert_eq!((limited.limit, limited.offset), (Some(7), 8));
    }

    #[test]
    fn faults_name_the_text() {
        let range = "a whole number from 0 to 255";
        for text in ["256", "-1", "1.0", "", " 1"] {
            refused::<Everything>(
                &full_but("small", text),
                Some("small"),
                &format!("`small`: `{text}` is not {range}"),
            );
        }
        refused::<Everything>(&full_but("exact", "yes"), Some("exact"), "`exact`: `yes` is not `true` or `false`");
        for text in ["NaN", "inf", "1e999", "x"] {
            refused::<Everything>(
                &full_but("ratio", text),
                Some("ratio"),
                &format!("`ratio`: `{text}` is not a number"),
            );
        }
        let long = "9".repeat(10_000);
        let shown = format!("`page`: `{}...` is not a whole number from 0 to 4294967295", "9".repeat(MAX_SHOWN_CHARS));
        refused::<Everything>(&full_but("page", &long), Some("page"), &shown);
        let unknown = read::<Everything>(&full_but("order", "worst")).unwrap_err();
        assert!(unknown.to_string().starts_with("`order`: unknown variant `worst`"), "{unknown}");
        refused::<Everything>(&FULL[1..], Some("letter"), "`letter` is missing");
    }

    #[test]
    fn variants_with_content_are_no_texts() {
        for order in ["range", "only", "by"] {
            let fault = read::<Everything>(&full_but("order", order)).unwrap_err();
            assert!(fault.to_string().starts_with("`order`: invalid type: unit variant"), "{fault}");
        }
    }

    #[test]
    fn nested_fields_are_refused() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "never read")]
        struct Nested {
            list: Vec<String>,
        }
        refused::<Nested>(
            &[("list", "a,b")],
            Some("list"),
            "`list`: invalid type: string \"a,b\", expected a sequence",
        );
    }

    #[test]
    fn other_containers_work_as_well() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Wrapper(BTreeMap<String, u8>);
        let map = BTreeMap::from([("a".to_owned(), 1)]);
        assert_eq!(read(&[("a", "1")]), Ok(Wrapper(map.clone())));
        assert_eq!(read(&[("a", "1")]), Ok(Some(map)));
        assert_eq!(read(&[("a", "1")]), Ok(()));
        refused::<u8>(&[], None, "invalid type: map, expected u8");

        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Closed {}
        let fault = read::<Closed>(&[("a", "1")]).unwrap_err();
        assert_eq!(fault.name(), Some("a"));
    }

    #[test]
    fn a_name_may_not_come_twice() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "never read")]
        struct One {
            a: u8,
        }
        let fault = read::<One>(&[("a", "1"), ("a", "2")]).unwrap_err();
        assert!(fault.to_string().contains("duplicate field `a`"), "{fault}");
    }
}
