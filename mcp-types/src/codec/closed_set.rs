//! Closed sets of strings.

/// Declares an enum whose variants are strings on the wire; any other string is an error.
macro_rules! closed_set {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(
            feature = "schemars",
            derive(schemars::JsonSchema),
            schemars(with = "serde_json::Value", extend("enum" = [$($text),*]), description = "")
        )]
        #[expect(clippy::exhaustive_enums, reason = "the protocol closes this set")]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )*
        }

        impl $name {
            /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the value as sent on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::codec::closed_set::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err($crate::codec::closed_set::UnknownValue::new(text, &[$($text),*])),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::codec::closed_set::TextVisitor(std::marker::PhantomData))
            }
        }

    };
}

pub(crate) use closed_set;

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};

/// The error of parsing a string that is none of the values of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    found: String,
    expected: &'static [&'static str],
}

impl UnknownValue {
    pub(crate) fn new(found: &str, expected: &'static [&'static str]) -> Self {
        Self { found: excerpt(found, MAX_NAME_CHARS), expected }
    }
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown value `{}`, expected ", self.found)?;
        for (index, text) in self.expected.iter().enumerate() {
            let before = match index {
                0 => "",
                last if last + 1 == self.expected.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{text}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownValue {}

/// Deserializes a value of a closed set from a string.
pub(crate) struct TextVisitor<T>(pub(crate) PhantomData<T>);

impl<T: FromStr<Err = UnknownValue>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::ElicitAction;

    #[test]
    fn only_known_strings_are_in_the_set() {
        for action in ElicitAction::ALL {
            assert_eq!(action.as_str().parse(), Ok(*action));
        }
        let fault = |text| serde_json::from_str::<ElicitAction>(text).unwrap_err().to_string();
        assert!(fault("\"maybe\"").starts_with("unknown value `maybe`, expected `accept`, `decline` or `cancel`"));
        assert!(fault("{\"accept\":null}").starts_with("invalid type: map, expected a string"));
        assert!(fault("5").starts_with("invalid type: integer `5`, expected a string"));
    }
}
