//! Deserializes internally tagged unions.
//!
//! Serde's own implementation buffers the whole object before it looks at the tag. Peers usually write the tag first, so
//! here the variant is selected at once and deserialized from the input; only members in front of the tag are buffered.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::erased;
use crate::RawJson;
use crate::codec::object::{NameVisitor, in_member};

/// A union whose variant is selected by a string member, the tag.
pub(crate) trait Tagged: Sized {
    /// The name of the member with the tag.
    const TAG: &'static str;
    /// The tags of the known variants.
    const KNOWN: &'static [&'static str];

    /// Deserializes the variant from the other members; for an unknown tag, `rest` includes the tag.
    fn read<'de, D: Deserializer<'de>>(tag: &str, rest: D) -> Result<Self, D::Error>;
}

/// Implements [`Tagged`], `Deserialize` and `From` of each held type for a union with an `Unknown` variant.
macro_rules! tagged_union {
    ($union:ident by $tag:literal { $($value:literal => $variant:ident($held:ty)),* $(,)? }) => {
        impl $crate::codec::tagged::Tagged for $union {
            const TAG: &'static str = $tag;
            const KNOWN: &'static [&'static str] = &[$($value),*];

            fn read<'de, D: serde::Deserializer<'de>>(tag: &str, rest: D) -> Result<Self, D::Error> {
                match tag {
                    $($value => <$held as serde::Deserialize>::deserialize(rest).map(Self::$variant),)*
                    _ => serde::Deserialize::deserialize(rest).map(Self::Unknown),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $union {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::codec::tagged::read(deserializer)
            }
        }

        $crate::codec::variants::from_variants!($union { $($held => $variant),* });
    };
}

pub(crate) use tagged_union;

/// Deserializes a tagged union.
pub(crate) fn read<'de, U: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<U, D::Error> {
    deserializer.deserialize_map(UnionVisitor(PhantomData))
}

struct UnionVisitor<U>(PhantomData<U>);

impl<'de, U: Tagged> Visitor<'de> for UnionVisitor<U> {
    type Value = U;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a `{}`", U::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<U, A::Error> {
        let mut before = Vec::new();
        loop {
            match members.next_key_seed(KeySeed { tag: U::TAG })? {
                Some(Key::Tag) => break,
                Some(Key::Other(name)) => before.push((name, members.next_value::<RawJson>()?)),
                None => return Err(A::Error::missing_field(U::TAG)),
            }
        }
        let tag = members
            .next_value_seed(TagSeed { known: U::KNOWN })
            .map_err(|fault| A::Error::custom(in_member(U::TAG, &fault.to_string())))?;
        let tag = match tag {
            Tag::Known(tag) => tag.into(),
            Tag::Unknown(tag) => {
                let value = RawJson::new(&tag).map_err(A::Error::custom)?;
                before.push((U::TAG.to_owned(), value));
                std::borrow::Cow::Owned(tag)
            }
        };
        let rest = Rest { tag: U::TAG, before: before.into_iter(), value: None, members };
        U::read(&tag, MapAccessDeserializer::new(rest))
    }
}

enum Key {
    Tag,
    Other(String),
}

struct KeySeed {
    tag: &'static str,
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_identifier(NameVisitor(|name: &str| {
            if name == self.tag { Key::Tag } else { Key::Other(name.to_owned()) }
        }))
    }
}

enum Tag {
    Known(&'static str),
    Unknown(String),
}

struct TagSeed {
    known: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for TagSeed {
    type Value = Tag;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tag, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for TagSeed {
    type Value = Tag;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tag, E> {
        let known = self.known.iter().find(|known| **known == text);
        Ok(known.map_or_else(|| Tag::Unknown(text.to_owned()), |known| Tag::Known(known)))
    }
}

/// The buffered members from in front of the tag, then those that remain in the input.
struct Rest<A> {
    tag: &'static str,
    before: std::vec::IntoIter<(String, RawJson)>,
    value: Option<RawJson>,
    members: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.before.next() {
            Some((name, value)) => {
                self.value = Some(value);
                seed.deserialize(StringDeserializer::new(name)).map(Some)
            }
            None => self.members.next_key_seed(RejectTag { tag: self.tag, inner: seed }),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => erased::read(&value, seed),
            None => self.members.next_value_seed(seed),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.members.size_hint().map(|more| more + self.before.len())
    }
}

/// Rejects a second tag, for which parsers could disagree about the variant, and passes other names on.
struct RejectTag<T> {
    tag: &'static str,
    inner: T,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for RejectTag<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        self.inner.deserialize(RejectTag { tag: self.tag, inner: deserializer })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RejectTag<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(RejectTag { tag: self.tag, inner: visitor })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for RejectTag<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<V::Value, E> {
        if name == self.tag { Err(E::duplicate_field(self.tag)) } else { self.inner.visit_borrowed_str(name) }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<V::Value, E> {
        if name == self.tag { Err(E::duplicate_field(self.tag)) } else { self.inner.visit_str(name) }
    }

    fn visit_string<E: Error>(self, name: String) -> Result<V::Value, E> {
        if name == self.tag { Err(E::duplicate_field(self.tag)) } else { self.inner.visit_string(name) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{ContentBlock, InputRequest, SamplingContent, TextContent};

    fn read(text: &str) -> Result<ContentBlock, String> {
        serde_json::from_str(text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_tag_may_stand_anywhere() {
        let block = Ok(ContentBlock::Text(TextContent::new("hi")));
        assert_eq!(read(r#"{"type":"text","text":"hi"}"#), block);
        assert_eq!(read(r#"{"text":"hi","type":"text"}"#), block);
        assert_eq!(read(r#"{"text":"hi","\u0074ype":"text"}"#), block);
    }

    // covers: RB-19
    #[test]
    fn an_unknown_variant_is_kept_whole() {
        let text = r#"{"zoom":[1,2.50],"text":7,"type":"chart","after":1e400}"#;
        let block = read(text).unwrap();
        assert!(matches!(block, ContentBlock::Unknown(_)));
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
    }

    /// What stands before the tag stays as it came, too.
    // covers: CG-22
    #[test]
    fn text_before_the_tag_is_not_rewritten() {
        let text = r#"{"input":{"b":1,"a":2.50,"c":1e400},"id":"i","name":"n","type":"tool_use"}"#;
        let SamplingContent::ToolUse(block) = serde_json::from_str(text).unwrap() else { panic!("a tool use") };
        assert_eq!(block.input.as_str(), r#"{"b":1,"a":2.50,"c":1e400}"#);

        let form = r#""requestedSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"}}}"#;
        let text = format!(r#"{{"params":{{"message":"m",{form}}},"method":"elicitation/create"}}"#);
        let request: InputRequest = serde_json::from_str(&text).unwrap();
        assert!(serde_json::to_string(&request).unwrap().contains(form));
    }

    #[test]
    fn there_is_one_tag() {
        for text in [
            r#"{"type":"text","text":"a","type":"text"}"#,
            r#"{"type":"text","text":"a","\u0074ype":"image"}"#,
            r#"{"type":"chart","type":"text"}"#,
            r#"{"text":"a","type":"chart","type":"text"}"#,
        ] {
            assert!(read(text).unwrap_err().contains("duplicate"), "{text}");
        }
    }

    #[test]
    fn faults_name_the_member() {
        assert!(read(r#"{"text":"hi"}"#).unwrap_err().starts_with("missing field `type`"));
        assert!(read(r#"{"type":7}"#).unwrap_err().starts_with("`type`: invalid type: integer `7`, expected a string"));
        assert!(read(r#"{"type":"text"}"#).unwrap_err().starts_with("missing field `text`"));
        assert!(read("[]").unwrap_err().contains("expected an object with a `type`"));
    }
}
