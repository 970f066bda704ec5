//! The tokens that tie progress to a request.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::Id;

/// The name under which the progress of a request is reported.
///
/// The requester chooses it and the answering side repeats it. It is a string or an integer and
/// keeps that kind: `1` is not `"1"` (CG-5). Many implementations use the request id as token,
/// hence the conversion, but nothing may rely on it.
///
/// `Display` quotes text. Clones are cheap.
///
/// Since 2024-11-05.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(Id);

impl ProgressToken {
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
}

impl From<i64> for ProgressToken {
    fn from(number: i64) -> Self {
        Self(Id::Number(number))
    }
}

impl From<i32> for ProgressToken {
    fn from(number: i32) -> Self {
        Self(Id::Number(number.into()))
    }
}

impl From<u32> for ProgressToken {
    fn from(number: u32) -> Self {
        Self(Id::Number(number.into()))
    }
}

impl From<&str> for ProgressToken {
    fn from(text: &str) -> Self {
        Self(Id::Text(text.into()))
    }
}

impl From<String> for ProgressToken {
    fn from(text: String) -> Self {
        Self(Id::Text(text.into()))
    }
}

impl From<&crate::RequestId> for ProgressToken {
    fn from(id: &crate::RequestId) -> Self {
        Self(id.as_id().clone())
    }
}

impl fmt::Display for ProgressToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ProgressToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgressToken({self})")
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for ProgressToken {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProgressToken".into()
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
        let number = ProgressToken::from(1_u32);
        let text = ProgressToken::from("1");
        assert_ne!(number, text);
        assert_eq!((number.as_i64(), number.as_str()), (Some(1), None));
        assert_eq!((text.as_i64(), text.as_str()), (None, Some("1")));
        assert_eq!(format!("{number} {text}"), "1 \"1\"");
        assert_eq!(format!("{text:?}"), "ProgressToken(\"1\")");
    }

    #[test]
    fn the_wire_form_is_the_bare_value() {
        for text in ["-5", "\"a\\nb\"", "9223372036854775807"] {
            let value: ProgressToken = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
        assert!(serde_json::from_str::<ProgressToken>("1.5").is_err());
    }
}
