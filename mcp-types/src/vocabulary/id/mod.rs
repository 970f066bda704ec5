//! Request ids and progress tokens.

mod progress_token;
mod request_id;

use std::fmt;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::codec::variants::from_variants;
use crate::codec::visit::visit;

pub use self::progress_token::ProgressToken;
pub use self::request_id::RequestId;

/// A string or an integer, which are never equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Id {
    Number(i64),
    // Ids are cloned often, so clones share the text.
    Text(Arc<str>),
}

from_variants!(Id { i32 => Number, u32 => Number, i64 => Number, &str => Text, String => Text });

/// The expected type in errors.
pub(crate) const EXPECTED: &str = "a string or an integer";

impl Id {
    pub(crate) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::Text(text) => Some(text),
        }
    }
}

/// Strings are quoted, so that `1` and `"1"` differ.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => fmt::Display::fmt(number, f),
            Self::Text(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{EXPECTED} of 64 bits")
    }

    visit! {
        visit_i64(self, number: i64) => Ok(Id::Number(number));
        visit_u64(self, number: u64) => {
            i64::try_from(number).map(Id::Number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
        };
        visit_str(self, text: &str) => Ok(Id::Text(text.into()));
        visit_string(self, text: String) => Ok(Id::Text(text.into()));
    }

    /// Numbers are maps if another crate enables the feature `arbitrary_precision` of `serde_json`.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Id, A::Error> {
        match serde_json::Number::deserialize(MapAccessDeserializer::new(map)) {
            Ok(number) => number
                .as_i64()
                .map(Id::Number)
                .ok_or_else(|| de::Error::invalid_value(Unexpected::Other("number"), &self)),
            Err(_) => Err(de::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

/// Declares a type around an [`Id`].
macro_rules! id_type {
    ($(#[$meta:meta])* pub struct $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(
            feature = "schemars",
            derive(schemars::JsonSchema),
            schemars(with = "serde_json::Value", extend("type" = ["string", "integer"]), description = "")
        )]
        #[serde(transparent)]
        pub struct $name($crate::vocabulary::id::Id);

        impl $name {
            /// Returns the id if it is an integer.
            #[must_use]
            pub fn as_i64(&self) -> Option<i64> {
                self.0.as_i64()
            }

            /// Returns the id if it is a string.
            #[must_use]
            pub fn as_str(&self) -> Option<&str> {
                self.0.as_str()
            }
        }

        $crate::vocabulary::id::id_type!(@from $name: i32, u32, i64, &str, String);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

    };

    (@from $name:ident: $($source:ty),*) => {
        $(
            impl From<$source> for $name {
                fn from(value: $source) -> Self {
                    Self(value.into())
                }
            }
        )*
    };
}

pub(crate) use id_type;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Id, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn kinds_are_kept_apart() {
        assert_eq!(read("1").unwrap(), Id::Number(1));
        assert_eq!(read("\"1\"").unwrap(), Id::Text("1".into()));
        assert_ne!(read("1"), read("\"1\""));
        assert_eq!(Id::Number(1).to_string(), "1");
        assert_eq!(Id::Text("1".into()).to_string(), "\"1\"");
    }

    #[test]
    fn a_number_is_not_its_text() {
        let (number, text) = (RequestId::from(1), RequestId::from("1"));
        assert_ne!(number, text);
        assert_eq!((number.as_i64(), number.as_str()), (Some(1), None));
        assert_eq!((text.as_i64(), text.as_str()), (None, Some("1")));
        assert_eq!(format!("{number} {text} {text:?}"), "1 \"1\" RequestId(\"1\")");
    }

    #[test]
    fn large_integers_are_exact() {
        for number in [i64::MAX, i64::MIN, 1_699_999_999_999] {
            let text = number.to_string();
            assert_eq!(serde_json::to_string(&read(&text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn everything_else_is_refused_with_what_was_expected() {
        for text in ["null", "true", "1.0", "1.5", "1e3", "9223372036854775808", "[1]", "{}", r#"{"a":1}"#] {
            let error = read(text).unwrap_err();
            assert!(error.contains(EXPECTED), "{text}: {error}");
        }
    }
}
