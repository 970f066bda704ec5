//! Deserializes internally tagged unions.
//!
//! Serde's own implementation buffers the whole object before it looks at the tag. Peers usually write the tag first, so
//! here the variant is selected at once and deserialized from the input. An object whose tag follows later is buffered as
//! text, and read again with the tag in front.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use crate::codec::object::{NameVisitor, in_member};
use crate::{JsonObject, OrderedMap, RawJson};

/// A union whose variant is selected by a string member, the tag.
pub(crate) trait Tagged: DeserializeOwned {
    /// The name of the member with the tag.
    const TAG: &'static str;
    /// The tags of the known variants.
    const KNOWN: &'static [&'static str];

    /// Deserializes the variant of a known tag from the other members.
    fn read<'de, D: Deserializer<'de>>(tag: &str, rest: D) -> Result<Self, D::Error>;

    /// Creates the variant for unknown tags from all members.
    fn unknown(members: JsonObject) -> Self;
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
                    _ => Err(serde::de::Error::unknown_variant(tag, Self::KNOWN)),
                }
            }

            fn unknown(members: $crate::JsonObject) -> Self {
                Self::Unknown(members)
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
        let first = match members.next_key_seed(KeySeed { tag: U::TAG })? {
            Some(Key::Tag) => match members.next_value_seed(TagSeed { known: U::KNOWN }).map_err(in_tag::<U, _>)? {
                Tag::Known(tag) => {
                    return U::read(tag, MapAccessDeserializer::new(Rest { tag: U::TAG, members }));
                }
                Tag::Unknown(tag) => (U::TAG.to_owned(), RawJson::new(&tag).map_err(A::Error::custom)?),
            },
            Some(Key::Other(name)) => (name, members.next_value()?),
            None => return Err(A::Error::missing_field(U::TAG)),
        };
        let mut all = vec![first];
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        from_members(all).map_err(A::Error::custom)
    }
}

/// Reads a union whose tag is unknown, or is not the first member.
fn from_members<U: Tagged>(mut members: Vec<(String, RawJson)>) -> Result<U, serde_json::Error> {
    let Some(place) = members.iter().position(|(name, _)| name == U::TAG) else {
        return Err(serde_json::Error::missing_field(U::TAG));
    };
    let mut tag = serde_json::Deserializer::from_str(members[place].1.as_str());
    let tag = TagSeed { known: U::KNOWN }.deserialize(&mut tag).map_err(in_tag::<U, _>)?;
    let is_known = matches!(tag, Tag::Known(_));
    if is_known {
        members[..=place].rotate_right(1);
    }
    let members = OrderedMap::unique(members).map_err(serde_json::Error::custom)?;
    if is_known { serde_json::from_str(&serde_json::to_string(&members)?) } else { Ok(U::unknown(members)) }
}

/// Says that an error occurred in the tag.
fn in_tag<U: Tagged, E: Error>(fault: E) -> E {
    E::custom(in_member(U::TAG, &fault.to_string()))
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

/// The members that follow the tag.
struct Rest<A> {
    tag: &'static str,
    members: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.members.next_key_seed(RejectTag { tag: self.tag, inner: seed })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.members.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.members.size_hint()
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
    fn there_is_one_tag_and_one_member_of_each_name() {
        for text in [
            r#"{"type":"text","text":"a","type":"text"}"#,
            r#"{"type":"text","text":"a","\u0074ype":"image"}"#,
            r#"{"type":"chart","type":"text"}"#,
            r#"{"text":"a","type":"chart","type":"text"}"#,
            r#"{"text":"a","type":"text","text":"b"}"#,
        ] {
            assert!(read(text).unwrap_err().contains("duplicate"), "{text}");
        }
    }

    #[test]
    fn faults_name_the_member() {
        assert!(read(r#"{"text":"hi"}"#).unwrap_err().starts_with("missing field `type`"));
        assert!(read(r#"{"type":7}"#).unwrap_err().starts_with("`type`: invalid type: integer `7`, expected a string"));
        assert!(read(r#"{"a":1,"type":7}"#).unwrap_err().starts_with("`type`: invalid type: integer `7`"));
        assert!(read(r#"{"type":"text"}"#).unwrap_err().starts_with("missing field `text`"));
        assert!(read(r#"{"text":7,"type":"text"}"#).unwrap_err().starts_with("`text`: invalid type: integer `7`"));
        assert!(read("[]").unwrap_err().contains("expected an object with a `type`"));
    }
}
