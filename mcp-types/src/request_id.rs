//! The ids of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::Id;

/// The name of a request, by which its answer finds the way back.
///
/// It is a string or an integer and keeps that kind: `1` is not `"1"` (M-2, CG-5). It is never
/// `null` and never a fraction (M-3); where an id may be missing, the type is an `Option`.
///
/// `Display` quotes text. Clones are cheap.
///
/// Since 2024-11-05.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Id);

impl RequestId {
    /// Returns the number, if it is one.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    /// Returns the text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }

    /// Returns the representation that ids and tokens share.
    pub(crate) fn as_id(&self) -> &Id {
        &self.0
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(Id::Number(number))
    }
}

impl From<i32> for RequestId {
    fn from(number: i32) -> Self {
        Self(Id::Number(number.into()))
    }
}

impl From<u32> for RequestId {
    fn from(number: u32) -> Self {
        Self(Id::Number(number.into()))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Id::Text(text.into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(Id::Text(text.into()))
    }
}

impl From<Id> for RequestId {
    fn from(id: Id) -> Self {
        Self(id)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for RequestId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::id::json_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_its_text() {
        let number = RequestId::from(1_u32);
        let text = RequestId::from("1");
        assert_ne!(number, text);
        assert_eq!((number.as_i64(), number.as_str()), (Some(1), None));
        assert_eq!((text.as_i64(), text.as_str()), (None, Some("1")));
        assert_eq!(format!("{number} {text}"), "1 \"1\"");
        assert_eq!(format!("{text:?}"), "RequestId(\"1\")");
    }

    #[test]
    fn the_wire_form_is_the_bare_value() {
        for text in ["-5", "\"a\\nb\"", "9223372036854775807"] {
            let value: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
        assert!(serde_json::from_str::<RequestId>("1.5").is_err());
    }
}
