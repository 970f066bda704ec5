//! The error of decoding a payload.

use std::borrow::Cow;
use std::fmt;

use serde::de;

use super::members::Unindexed;
use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};
use crate::{ErrorCode, ErrorObject};

/// The error of decoding a payload.
///
/// `Display` names the member, has a bounded length, and may be sent to the peer. The
/// [source](std::error::Error::source) may quote the payload at length and should not be sent.
#[derive(Debug)]
pub struct InvalidPayload {
    member: Option<Cow<'static, str>>,
    reason: Box<str>,
    /// Whether the reason already names the member.
    names_member: bool,
    source: Option<serde_json::Error>,
}

impl InvalidPayload {
    pub(super) fn new(reason: &str) -> Self {
        Self { member: None, reason: excerpt(reason, MAX_REASON_CHARS).into(), names_member: false, source: None }
    }

    pub(super) fn unindexed(unindexed: &Unindexed) -> Self {
        match unindexed {
            Unindexed::TooMany { limit } => Self::new(&format!("more than {limit} members")),
            Unindexed::Twice { name } => Self::new("the member appears twice").within(name),
        }
    }

    /// Adds the name of the member.
    pub(super) fn within(mut self, name: &str) -> Self {
        let name = excerpt(name, MAX_NAME_CHARS);
        // The reason may already begin with the member or a path in it.
        let rest = self.reason.strip_prefix('`').and_then(|reason| reason.strip_prefix(name.as_str()));
        self.names_member = rest.is_some_and(|rest| rest.starts_with(['`', '.']));
        self.member = Some(name.into());
        self
    }

    /// Returns the invalid or missing member of the payload, if it is a single one.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Creates the error object for the response, with [`ErrorCode::INVALID_PARAMS`].
    #[must_use]
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(ErrorCode::INVALID_PARAMS, self.to_string())
    }
}

impl fmt::Display for InvalidPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(member) if !self.names_member => write!(f, "`{member}`: {}", self.reason),
            _ => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for InvalidPayload {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl de::Error for InvalidPayload {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::new(&reason.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self { member: Some(field.into()), names_member: true, ..Self::new(&format!("missing field `{field}`")) }
    }
}

impl From<serde_json::Error> for InvalidPayload {
    fn from(source: serde_json::Error) -> Self {
        let mut reason = source.to_string();
        // The position is relative to the member, which would be misleading.
        let place = format!(" at line {} column {}", source.line(), source.column());
        if reason.ends_with(&place) {
            reason.truncate(reason.len() - place.len());
        }
        Self { source: Some(source), ..Self::new(&reason) }
    }
}

/// The maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_reason_has_no_misleading_position() {
        let source = serde_json::from_str::<String>("5").unwrap_err();
        let invalid = InvalidPayload::from(source).within("name");
        assert_eq!(invalid.to_string(), "`name`: invalid type: integer `5`, expected a string");
        assert_eq!(invalid.member(), Some("name"));
        assert!(invalid.source().is_some());
    }

    #[test]
    fn missing_members_are_named_once() {
        let invalid: InvalidPayload = de::Error::missing_field("name");
        assert_eq!(invalid.to_string(), "missing field `name`");
        assert_eq!(invalid.member(), Some("name"));
        let inner: InvalidPayload = de::Error::missing_field("uri");
        let outer = inner.within("ref");
        assert_eq!(outer.to_string(), "`ref`: missing field `uri`");
        assert_eq!(outer.member(), Some("ref"));
    }

    #[test]
    fn nothing_grows_with_the_input() {
        let long = "\u{1b}".repeat(10_000);
        let invalid = InvalidPayload::new(&long).within(&long);
        assert!(invalid.to_string().len() < 2000);
        assert!(!invalid.to_string().contains('\u{1b}'));
    }
}
