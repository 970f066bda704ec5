//! Deserializes an indexed object.
//!
//! The deserializers differ from those of `serde_json` in two ways: raw members are not parsed again, and errors name the
//! member.

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::invalid_payload::InvalidPayload;
use super::members::{Entry, EntryName};
use crate::json::scan::plain_string;
use crate::json::validated::{raw_value_name, visit_raw};

type Result<T> = std::result::Result<T, InvalidPayload>;

/// Deserializes the object.
pub(super) struct PayloadDeserializer<'a, I> {
    text: &'a str,
    members: I,
}

impl<'a, I> PayloadDeserializer<'a, I> {
    pub(super) fn new(text: &'a str, members: I) -> Self {
        Self { text, members }
    }
}

impl<'m, 'a: 'm, I: ExactSizeIterator<Item = Entry<'m, 'a>>> Deserializer<'a> for PayloadDeserializer<'a, I> {
    type Error = InvalidPayload;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(MemberAccess { rest: self.members, current: None })
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if raw_value_name() == Some(name) {
            visit_raw(name, borrowed(self.text), visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        Value(self.text).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// Iterates over the members.
struct MemberAccess<'m, 'a, I> {
    rest: I,
    current: Option<Entry<'m, 'a>>,
}

impl<'m, 'a: 'm, I: ExactSizeIterator<Item = Entry<'m, 'a>>> MapAccess<'a> for MemberAccess<'m, 'a, I> {
    type Error = InvalidPayload;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.current = self.rest.next();
        match self.current {
            Some(member) => seed.deserialize(Name(member.name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value> {
        let Some(member) = self.current.take() else {
            return Err(de::Error::custom("a value was requested before its name"));
        };
        seed.deserialize(Value(member.value)).map_err(|invalid| invalid.within(member.name.as_str()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// Deserializes the name of a member.
struct Name<'m, 'a>(EntryName<'m, 'a>);

impl<'a> Deserializer<'a> for Name<'_, 'a> {
    type Error = InvalidPayload;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            EntryName::Plain(name) => visitor.visit_borrowed_str(name),
            EntryName::Unescaped(name) => visitor.visit_str(name),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.0.as_str().into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Deserializes the value of a member.
struct Value<'a>(&'a str);

/// Delegates methods to `serde_json`.
///
/// Forwarding all of them to `deserialize_any` would lose the type hint, on which `serde_json` depends for some types.
macro_rules! delegate_to_serde_json {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(
            fn $method<V: Visitor<'a>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
                let mut inner = serde_json::Deserializer::from_str(self.0);
                Ok(inner.$method($($argument,)* visitor)?)
            }
        )*
    };
}

impl<'a> Deserializer<'a> for Value<'a> {
    type Error = InvalidPayload;

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        if self.0 == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if raw_value_name() == Some(name) {
            visit_raw(name, borrowed(self.0), visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        match plain_string(self.0) {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Ok(serde_json::Deserializer::from_str(self.0).deserialize_str(visitor)?),
        }
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value> {
        // Clients without capabilities send this with every request.
        if self.0 == "{}" {
            return visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>()));
        }
        Ok(serde_json::Deserializer::from_str(self.0).deserialize_map(visitor)?)
    }

    delegate_to_serde_json! {
        deserialize_any() deserialize_bool() deserialize_char()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_bytes() deserialize_byte_buf() deserialize_identifier()
        deserialize_unit() deserialize_unit_struct(name: &'static str) deserialize_seq()
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}

fn borrowed(text: &str) -> BorrowedStrDeserializer<'_, InvalidPayload> {
    BorrowedStrDeserializer::new(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use crate::jsonrpc::members::Members;
    use crate::jsonrpc::{Limits, Payload};
    use crate::{RawJson, RawObject, RequestId};

    fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
        Payload::parse(text, &Limits::default()).unwrap().decode().map_err(|invalid| invalid.to_string())
    }

    #[derive(Debug, Deserialize)]
    struct Call<'a> {
        name: &'a str,
        arguments: Option<RawObject>,
        #[serde(borrow)]
        meta: Option<&'a RawValue>,
        data: Option<Wrapped>,
        owner: Option<RequestId>,
        #[serde(default)]
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    struct Wrapped(RawJson);

    #[derive(Debug, Default, PartialEq, Deserialize)]
    enum Kind {
        #[default]
        A,
        B(u8),
    }

    #[test]
    fn all_forms_of_members_are_read() {
        let call: Call<'_> = decode(
            r#"{"name":"add","\u0061rguments":{ "z": 1e400 },"meta":[1 ],"data":2.50,
                "kind":{"B":3},"owner":"x","unknown":[{}]}"#,
        )
        .unwrap();
        assert_eq!(call.name, "add");
        assert_eq!(call.arguments.unwrap().as_str(), r#"{ "z": 1e400 }"#);
        assert_eq!(call.meta.unwrap().get(), "[1 ]");
        assert_eq!(call.data.unwrap().0.as_str(), "2.50");
        assert_eq!(call.owner, Some("x".into()));
        assert_eq!(call.kind, Kind::B(3));
    }

    #[test]
    fn null_and_absence_are_none() {
        let call: Call<'_> = decode(r#"{"name":"a","arguments":null,"data":null}"#).unwrap();
        assert!(call.arguments.is_none() && call.data.is_none() && call.meta.is_none());
    }

    #[test]
    fn raw_members_are_not_read_again() {
        #[derive(Deserialize)]
        struct Holder<'a> {
            #[serde(borrow)]
            raw: Option<&'a RawValue>,
            owned: Option<RawJson>,
        }
        // No scan would accept this text.
        let text = "{\"raw\":\u{1},\"owned\":\u{1}}";
        let members = Members::unchecked(&[(2..5, 7..8), (10..15, 17..18)]);
        let access = super::PayloadDeserializer::new(text, members.own().iter(text));
        let holder = Holder::deserialize(access).unwrap();
        assert_eq!(holder.raw.unwrap().get(), "\u{1}");
        assert_eq!(holder.owned.unwrap().as_str(), "\u{1}");
    }

    #[test]
    fn errors_name_the_member() {
        let error = |text| decode::<Call<'_>>(text).unwrap_err();
        assert_eq!(error(r#"{"name":5}"#), "`name`: invalid type: integer `5`, expected a borrowed string");
        assert_eq!(error("{}"), "missing field `name`");
        assert_eq!(error(r#"{"name":"a","arguments":[]}"#), "`arguments`: expected an object, found an array");
        assert_eq!(
            error(r#"{"name":"a","owner":true}"#),
            "`owner`: invalid type: boolean `true`, expected a string or an integer of 64 bits"
        );
        assert!(decode::<String>("{}").unwrap_err().contains("a string"));
    }

    #[test]
    fn whole_payloads_are_read_as_well() {
        let map: BTreeMap<Kindly, u8> = decode(r#"{"a":1,"\u0062":2}"#).unwrap();
        assert_eq!(map[&Kindly("b".to_owned())], 2);
        assert_eq!(decode::<RawObject>("{ }").unwrap().as_str(), "{ }");
        assert_eq!(decode::<&RawValue>("{ }").unwrap().get(), "{ }");
        assert_eq!(decode::<Option<RawJson>>("{ }").unwrap().unwrap().as_str(), "{ }");
        assert_eq!(decode::<Kind>(r#"{"B":1}"#), Ok(Kind::B(1)));
        let flat: Flat = decode(r#"{"a":[1, 2],"b":null}"#).unwrap();
        assert_eq!((flat.a, flat.rest["b"].as_str()), (vec![1, 2], "null"));
        assert!(decode::<serde_json::Value>(r#"{"a":[{}]}"#).unwrap()["a"][0].is_object());
    }

    #[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    struct Kindly(String);

    #[derive(Deserialize)]
    struct Flat {
        a: Vec<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, RawJson>,
    }
}
