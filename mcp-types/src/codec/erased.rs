//! Deserializes from text that does not live as long as `'de`.
//!
//! A buffered value is deserialized after the input it came from, so `T: Deserialize<'de>` must not borrow from the
//! buffer. The adapters here pass borrowed strings on as transient ones.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::visit::visit;
use crate::RawJson;

/// Deserializes a seed from text that need not live for `'de`.
pub(crate) fn read<'de, S: DeserializeSeed<'de>, E: Error>(text: &RawJson, seed: S) -> Result<S::Value, E> {
    let mut inner = serde_json::Deserializer::from_str(text.as_str());
    seed.deserialize(Erased::new(&mut inner)).map_err(E::custom)
}

/// Adapts a deserializer, visitor, access or seed of the lifetime `'x` of the text to `'de`, or the other way round.
struct Erased<'de, 'x, T> {
    inner: T,
    lifetimes: PhantomData<(&'de (), &'x ())>,
}

impl<T> Erased<'_, '_, T> {
    fn new(inner: T) -> Self {
        Self { inner, lifetimes: PhantomData }
    }
}

impl<'x, 'de, D: Deserializer<'x>> Deserializer<'de> for Erased<'de, 'x, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(Erased::new(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Erased::new(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, Erased::new(visitor))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(Erased::new(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

impl<'x, 'de, V: Visitor<'de>> Visitor<'x> for Erased<'de, 'x, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(self, value: bool) => self.inner.visit_bool(value);
        visit_i64(self, value: i64) => self.inner.visit_i64(value);
        visit_u64(self, value: u64) => self.inner.visit_u64(value);
        visit_f64(self, value: f64) => self.inner.visit_f64(value);
        visit_str(self, text: &str) => self.inner.visit_str(text);
        visit_string(self, text: String) => self.inner.visit_string(text);
        visit_unit(self) => self.inner.visit_unit();
        visit_none(self) => self.inner.visit_none();
    }

    fn visit_some<D: Deserializer<'x>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Erased::new(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'x>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Erased::new(deserializer))
    }

    fn visit_seq<A: SeqAccess<'x>>(self, items: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Erased::new(items))
    }

    fn visit_map<A: MapAccess<'x>>(self, members: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Erased::new(members))
    }
}

impl<'x, 'de, A: SeqAccess<'x>> SeqAccess<'de> for Erased<'de, 'x, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(Erased::new(seed))
    }
}

impl<'x, 'de, A: MapAccess<'x>> MapAccess<'de> for Erased<'de, 'x, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(Erased::new(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Erased::new(seed))
    }
}

impl<'x, 'de, S: DeserializeSeed<'de>> DeserializeSeed<'x> for Erased<'de, 'x, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'x>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Erased::new(deserializer))
    }
}
