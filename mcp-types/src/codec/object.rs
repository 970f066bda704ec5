//! Deserializes structs from JSON objects.
//!
//! Serde's derived implementations also accept a sequence for a struct, buffer everything that is flattened, and do not
//! name the member in errors. The implementations of [`object!`] accept objects only, preserve unknown members as text,
//! and name the member.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, Unexpected, Visitor};

/// Implements `Deserialize` for a struct, given the wire name, the field and the mode of each member.
///
/// | mode | field | accepts |
/// |---|---|---|
/// | `required` | `T` | a `T`, which must be present |
/// | `optional` | `Option<T>` | a `T`; `null` is the same as absent |
/// | `present` | `Option<T>` | a `T`, for which `null` may be a value |
/// | `required_integer`, `optional_integer` | `i64`, `Option<i64>` | a number without a fraction, also one written as `5.0` |
///
/// With `keep extra`, unknown members are stored in the field `extra`. With `struct`, and the types of the fields, the
/// struct is declared, too.
macro_rules! object {
    (struct $type:ident { $($wire:literal => $field:ident: $mode:ident $held:ty),* $(,)? } $(keep $extra:ident)?) => {
        struct $type {
            $($field: $held,)*
            $($extra: $crate::JsonObject,)?
        }

        $crate::codec::object::object!($type { $($wire => $field: $mode),* } $(keep $extra)?);
    };

    ($type:ident { $($wire:literal => $field:ident: $mode:ident),* $(,)? } $(keep $extra:ident)?) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types, reason = "variants have the names of the fields")]
                enum Key<N> {
                    $($field,)*
                    Other(N),
                }

                impl<'de, N: $crate::codec::object::OtherName> serde::Deserialize<'de> for Key<N> {
                    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        deserializer.deserialize_identifier($crate::codec::object::NameVisitor(|name: &str| match name {
                            $($wire => Self::$field,)*
                            other => Self::Other(N::of(other)),
                        }))
                    }
                }

                struct ObjectVisitor;

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<$type, A::Error> {
                        $(let mut $field = None;)*
                        $(let mut $extra = Vec::new();)?
                        while let Some(key) = members.next_key()? {
                            match key {
                                $(Key::$field => {
                                    if $field.is_some() {
                                        return Err(serde::de::Error::duplicate_field($wire));
                                    }
                                    let value = members.next_value_seed($crate::codec::object::Member::new($wire))?;
                                    $field = Some($crate::codec::object::object!(@take $mode value));
                                })*
                                $crate::codec::object::object!(@pattern name $($extra)?) => {
                                    $crate::codec::object::object!(@other members name $($extra)?);
                                }
                            }
                        }
                        Ok($type {
                            $($field: $crate::codec::object::object!(@finish $mode $field $wire),)*
                            $($extra: $crate::OrderedMap::unique($extra).map_err(serde::de::Error::custom)?,)?
                        })
                    }
                }

                deserializer.deserialize_map(ObjectVisitor)
            }
        }
    };

    (@take required $value:ident) => { $value };
    (@take optional $value:ident) => { $value };
    (@take present $value:ident) => { $value };
    (@take required_integer $value:ident) => {{ let value: $crate::codec::object::Integer = $value; value.0 }};
    (@take optional_integer $value:ident) => {{
        let value: Option<$crate::codec::object::Integer> = $value;
        value.map(|value| value.0)
    }};

    (@finish required $field:ident $wire:literal) => {
        $field.ok_or_else(|| serde::de::Error::missing_field($wire))?
    };
    (@finish required_integer $field:ident $wire:literal) => {
        $field.ok_or_else(|| serde::de::Error::missing_field($wire))?
    };
    (@finish optional $field:ident $wire:literal) => { $field.flatten() };
    (@finish optional_integer $field:ident $wire:literal) => { $field.flatten() };
    (@finish present $field:ident $wire:literal) => { $field };

    (@pattern $name:ident) => { Key::Other(()) };
    (@pattern $name:ident $extra:ident) => { Key::Other($name) };

    (@other $members:ident $name:ident) => {
        $members.next_value::<serde::de::IgnoredAny>()?
    };
    (@other $members:ident $name:ident $extra:ident) => {
        $extra.push(($name, $members.next_value()?))
    };
}

pub(crate) use object;

/// The name of an unknown member, as far as it is needed.
pub(crate) trait OtherName {
    /// Creates it from the name.
    fn of(name: &str) -> Self;
}

impl OtherName for () {
    fn of(_: &str) -> Self {}
}

impl OtherName for String {
    fn of(name: &str) -> Self {
        name.to_owned()
    }
}

/// Maps the name of a member without an allocation.
pub(crate) struct NameVisitor<F>(pub(crate) F);

impl<K, F: FnOnce(&str) -> K> Visitor<'_> for NameVisitor<F> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<K, E> {
        Ok((self.0)(name))
    }
}

/// Deserializes the value of a member; its errors name the member.
pub(crate) struct Member<T> {
    name: &'static str,
    value: PhantomData<T>,
}

impl<T> Member<T> {
    /// Creates the seed for the member of this name.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, value: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Member<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer).map_err(|fault| D::Error::custom(in_member(self.name, &fault.to_string())))
    }
}

/// Prefixes an error with the member in which it occurred: `` `a.b`: expected a string``.
pub(crate) fn in_member(member: &str, fault: &str) -> String {
    match fault.strip_prefix('`') {
        Some(path) => format!("`{member}.{path}"),
        None => format!("`{member}`: {fault}"),
    }
}

/// An integer, which may be written as `5.0`: the official schemas do not distinguish it from `5`.
pub(crate) struct Integer(pub(crate) i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntegerVisitor;

        impl Visitor<'_> for IntegerVisitor {
            type Value = Integer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer of 64 bits")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Integer, E> {
                Ok(Integer(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Integer, E> {
                i64::try_from(value).map(Integer).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
            }

            #[expect(clippy::cast_possible_truncation, reason = "the value is checked to be an integer in range")]
            fn visit_f64<E: Error>(self, value: f64) -> Result<Integer, E> {
                /// The largest range in which `f64` represents every integer.
                const EXACT: f64 = 9_007_199_254_740_992.0;
                if value.fract() == 0.0 && value.abs() <= EXACT {
                    Ok(Integer(value as i64))
                } else {
                    Err(E::invalid_value(Unexpected::Float(value), &self))
                }
            }
        }

        deserializer.deserialize_i64(IntegerVisitor)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CallToolResult, CompleteRequestParams, CreateMessageRequestParams, Implementation, ListToolsResult};

    fn fault<'a, T: serde::Deserialize<'a>>(text: &'a str) -> String {
        serde_json::from_str::<T>(text).err().expect("refused").to_string()
    }

    #[test]
    fn only_objects_are_objects() {
        assert!(fault::<Implementation>(r#"["a","1"]"#).starts_with("invalid type: sequence, expected an object"));
        assert!(fault::<Implementation>("null").starts_with("invalid type: null, expected an object"));
    }

    #[test]
    fn faults_name_the_way_to_the_member() {
        let text = r#"{"tools":[{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":1}}]}"#;
        assert!(
            fault::<ListToolsResult>(text).starts_with("`tools.annotations.readOnlyHint`: invalid type: integer `1`")
        );
        let text = r#"{"ref":{"type":"ref/prompt"},"argument":{"name":"a","value":"b"}}"#;
        assert!(fault::<CompleteRequestParams>(text).starts_with("`ref`: missing field `name`"));
        assert!(fault::<CallToolResult>(r#"{"content":[],"content":[]}"#).starts_with("duplicate field `content`"));
    }

    /// An integer may be written with a fraction of zero.
    // covers: CG-6
    #[test]
    fn integers_may_look_like_fractions() {
        let text = |tokens: &str| format!(r#"{{"messages":[],"maxTokens":{tokens}}}"#);
        for tokens in ["100", "100.0", "1e2"] {
            let params: CreateMessageRequestParams = serde_json::from_str(&text(tokens)).unwrap();
            assert_eq!(params.max_tokens, 100);
        }
        for tokens in ["0.5", "1e300", "18446744073709551615", "\"1\"", "true"] {
            let text = text(tokens);
            assert!(fault::<CreateMessageRequestParams>(&text).contains("expected an integer of 64 bits"), "{tokens}");
        }
    }

    /// Unknown members of results stay, in order and to the letter.
    // covers: CG-10
    #[test]
    fn unknown_members_stay_as_they_came() {
        let text = r#"{"content":[],"z":{"b":1.50,"a":12345678901234567890123},"a":1e400}"#;
        let result: CallToolResult = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        assert!(fault::<CallToolResult>(r#"{"content":[],"z":1,"z":2}"#).contains("duplicate member `z`"));
    }
}
