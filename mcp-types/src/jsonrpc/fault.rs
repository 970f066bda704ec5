//! The rules for messages.

use std::fmt;

use crate::ErrorCode;
use crate::vocabulary::id;

/// The rule that an invalid message violates.
///
/// It contains text of the peer only as short, escaped excerpts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text begins with a byte order mark, which JSON does not allow.
    ByteOrderMark,
    /// The text is not JSON.
    Syntax {
        /// What was expected at this position.
        expected: &'static str,
        /// The character that was found; `None` at the end of the text.
        found: Option<char>,
    },
    /// Objects and arrays nest too deep.
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// A member has a name that `serde_json` uses internally, so that parsers could disagree about its value.
    ReservedName,
    /// The message is JSON, but not an object.
    NotAnObject {
        /// The type that was found.
        found: &'static str,
    },
    /// The batch is empty.
    EmptyBatch,
    /// The batch has too many messages.
    BatchTooLarge {
        /// The maximum number of messages.
        limit: usize,
    },
    /// The text is a batch where only a single message is allowed.
    BatchNotAllowed,
    /// The payload has too many members.
    TooManyMembers {
        /// The name of the payload, such as `params`.
        payload: &'static str,
        /// The maximum number of members.
        limit: usize,
    },
    /// A required member is missing.
    MissingMember(&'static str),
    /// A member has the wrong JSON type.
    WrongKind {
        /// The member, such as `params` or `error.code`.
        member: &'static str,
        /// The expected type.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// `jsonrpc` is not `"2.0"`.
    WrongVersion {
        /// An excerpt of the value that was found.
        found: Box<str>,
    },
    /// `method` is the empty string.
    EmptyMethod,
    /// A member of the envelope is duplicated, so that parsers could disagree.
    DuplicateMember(&'static str),
    /// A member of the payload is duplicated, so that parsers could disagree.
    DuplicatePayloadMember {
        /// The name of the payload, such as `params`.
        payload: &'static str,
        /// An excerpt of the name of the member.
        member: Box<str>,
    },
    /// The message has a `method` and also a `result` or an `error`.
    MixedKinds,
    /// The message has both a `result` and an `error`.
    ResultAndError,
    /// The message has neither `method` nor `result` nor `error`.
    NoKind,
    /// `id` is `null` where an id is required.
    NullId,
    /// `id` is a number with a fraction or an exponent.
    FractionalId,
    /// `id` is an integer that does not fit into 64 bits.
    IdOutOfRange,
}

impl Fault {
    /// Returns the code for the error response, if one is sent.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        if matches!(self, Self::NotUtf8 | Self::ByteOrderMark | Self::Syntax { .. }) {
            ErrorCode::PARSE_ERROR
        } else if let Self::WrongKind { member: "params", .. }
        | Self::DuplicatePayloadMember { payload: "params", .. } = self
        {
            ErrorCode::INVALID_PARAMS
        } else {
            ErrorCode::INVALID_REQUEST
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("the text is not UTF-8"),
            Self::ByteOrderMark => f.write_str("the text begins with a byte order mark"),
            Self::Syntax { expected, found } => {
                write!(f, "expected {expected}, found ")?;
                match found {
                    Some(found) => write!(f, "`{}`", found.escape_debug()),
                    None => f.write_str("the end of the text"),
                }
            }
            Self::TooDeep { limit } => write!(f, "the text nests deeper than {limit} levels"),
            Self::ReservedName => f.write_str("the name of a member is reserved"),
            Self::NotAnObject { found } => write!(f, "a message must be an object, found {found}"),
            Self::EmptyBatch => f.write_str("a batch must hold a message"),
            Self::BatchTooLarge { limit } => write!(f, "a batch may hold {limit} messages at most"),
            Self::BatchNotAllowed => f.write_str("a batch is not allowed here"),
            Self::TooManyMembers { payload, limit } => write!(f, "`{payload}` may have {limit} members at most"),
            Self::MissingMember(member) => write!(f, "`{member}` is missing"),
            Self::WrongKind { member, expected, found } => write!(f, "`{member}` must be {expected}, found {found}"),
            Self::WrongVersion { found } => write!(f, "`jsonrpc` must be \"2.0\", found {found}"),
            Self::EmptyMethod => f.write_str("`method` must not be empty"),
            Self::DuplicateMember(member) => write!(f, "`{member}` appears twice"),
            Self::DuplicatePayloadMember { payload, member } => write!(f, "`{payload}.{member}` appears twice"),
            Self::MixedKinds => f.write_str("`method` must not be combined with `result` or `error`"),
            Self::ResultAndError => f.write_str("`result` must not be combined with `error`"),
            Self::NoKind => f.write_str("one of `method`, `result` and `error` is required"),
            Self::NullId => write!(f, "`id` must be {}, found null", id::EXPECTED),
            Self::FractionalId => write!(f, "`id` must be {}, found a fraction", id::EXPECTED),
            Self::IdOutOfRange => f.write_str("`id` must fit into 64 bits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_follows_from_the_rule() {
        let kind = |member| Fault::WrongKind { member, expected: "an object", found: "an array" };
        assert_eq!(Fault::NotUtf8.code(), ErrorCode::PARSE_ERROR);
        assert_eq!(kind("params").code(), ErrorCode::INVALID_PARAMS);
        assert_eq!(kind("method").code(), ErrorCode::INVALID_REQUEST);
        assert_eq!(Fault::BatchNotAllowed.code(), ErrorCode::INVALID_REQUEST);
    }

    #[test]
    fn foreign_characters_are_escaped() {
        let fault = Fault::Syntax { expected: "a value", found: Some('\u{1b}') };
        assert_eq!(fault.to_string(), "expected a value, found `\\u{1b}`");
    }
}
