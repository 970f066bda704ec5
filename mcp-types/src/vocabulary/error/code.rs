//! JSON-RPC error codes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Revision;
use crate::gate::Revisions;

/// The code of a JSON-RPC error.
///
/// Since 2024-11-05.
///
/// The set is open, and unknown codes are preserved. The revisions of a constant are those in which it may be sent;
/// receivers may accept it in any revision.
///
/// | range | owner |
/// |---|---|
/// | -32768..=-32100 | JSON-RPC |
/// | -32099..=-32020 | the MCP specification |
/// | -32019..=-32000 | implementations of older revisions; closed to new codes |
/// | everything else | applications |
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ErrorCode(i64);

impl ErrorCode {
    /// The message is not JSON or not UTF-8. All revisions.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a valid message, or the message is not allowed. All revisions.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method is unknown, or its capability was not declared. All revisions.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid. All revisions.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed to process the request. All revisions.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The resource does not exist.
    ///
    /// Sent up to 2025-11-25; later clients still accept it.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user has to complete a URL mode elicitation first.
    ///
    /// Sent in 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// The HTTP headers do not match the body. Since 2026-07-28.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a client capability that was not declared.
    ///
    /// Since 2026-07-28; `data` is a [`MissingRequiredClientCapabilityData`](crate::MissingRequiredClientCapabilityData).
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the protocol version of the request.
    ///
    /// Since 2026-07-28; `data` is an [`UnsupportedProtocolVersionData`](crate::UnsupportedProtocolVersionData).
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// The user rejected a sampling request. Up to 2025-11-25.
    pub const USER_REJECTED: Self = Self(-1);

    /// Creates an error code.
    #[must_use]
    pub const fn new(code: i64) -> Self {
        Self(code)
    }

    /// Returns the code as a number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns the name of the constant, if there is one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::PARSE_ERROR => "PARSE_ERROR",
            Self::INVALID_REQUEST => "INVALID_REQUEST",
            Self::METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
            Self::INVALID_PARAMS => "INVALID_PARAMS",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::RESOURCE_NOT_FOUND => "RESOURCE_NOT_FOUND",
            Self::URL_ELICITATION_REQUIRED => "URL_ELICITATION_REQUIRED",
            Self::HEADER_MISMATCH => "HEADER_MISMATCH",
            Self::MISSING_REQUIRED_CLIENT_CAPABILITY => "MISSING_REQUIRED_CLIENT_CAPABILITY",
            Self::UNSUPPORTED_PROTOCOL_VERSION => "UNSUPPORTED_PROTOCOL_VERSION",
            Self::USER_REJECTED => "USER_REJECTED",
            _ => return None,
        })
    }

    /// Returns the revisions in which a peer may send the code.
    ///
    /// Application codes may be sent in all revisions. Of the reserved ranges, only the constants may be sent, except
    /// that older revisions allow -32019..=-32000 to implementations.
    #[must_use]
    pub const fn revisions(self) -> Revisions {
        match self {
            Self::RESOURCE_NOT_FOUND | Self::USER_REJECTED => Revisions::until(Revision::LATEST_LEGACY),
            Self::URL_ELICITATION_REQUIRED => Revisions::only(Revision::V2025_11_25),
            Self::HEADER_MISMATCH | Self::MISSING_REQUIRED_CLIENT_CAPABILITY | Self::UNSUPPORTED_PROTOCOL_VERSION => {
                Revisions::since(Revision::V2026_07_28)
            }
            code if code.name().is_some() || !code.is_reserved() => Revisions::ALL,
            code if code.is_closed() => Revisions::until(Revision::LATEST_LEGACY),
            _ => Revisions::NONE,
        }
    }

    /// Returns whether the code is reserved, so that applications must not define it.
    // E-11
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self.0, -32768..=-32000)
    }

    /// Returns whether the code is in the closed range.
    ///
    /// Implementations of 2026-07-28 send none of these, and interpret only
    /// [`RESOURCE_NOT_FOUND`](Self::RESOURCE_NOT_FOUND).
    // E-2..E-4
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self.0, -32019..=-32000)
    }

    /// Returns whether the code is reserved for the MCP specification.
    // E-5
    #[must_use]
    pub const fn belongs_to_specification(self) -> bool {
        matches!(self.0, -32099..=-32020)
    }
}

impl From<i64> for ErrorCode {
    fn from(code: i64) -> Self {
        Self(code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "ErrorCode({} {name})", self.0),
            None => write!(f, "ErrorCode({})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E-3, E-5, E-9, E-11, E-15, CG-20
    #[test]
    fn codes_belong_to_revisions() {
        for (code, legacy, modern) in [
            (ErrorCode::INVALID_PARAMS, true, true),
            (ErrorCode::RESOURCE_NOT_FOUND, true, false),
            (ErrorCode::URL_ELICITATION_REQUIRED, true, false),
            (ErrorCode::HEADER_MISMATCH, false, true),
            (ErrorCode::USER_REJECTED, true, false),
            (ErrorCode::new(-32001), true, false),
            (ErrorCode::new(-32050), false, false),
            (ErrorCode::new(-32500), false, false),
            (ErrorCode::new(4711), true, true),
        ] {
            assert_eq!(code.revisions().contains(Revision::V2025_11_25), legacy, "{code:?}");
            assert_eq!(code.revisions().contains(Revision::V2026_07_28), modern, "{code:?}");
        }
        assert!(!ErrorCode::URL_ELICITATION_REQUIRED.revisions().contains(Revision::V2025_06_18));
    }

    #[test]
    fn known_codes_have_names_and_unknown_ones_survive() {
        assert_eq!(format!("{:?}", ErrorCode::INVALID_PARAMS), "ErrorCode(-32602 INVALID_PARAMS)");
        let unknown: ErrorCode = serde_json::from_str("-32004").unwrap();
        assert_eq!(format!("{unknown:?} {unknown}"), "ErrorCode(-32004) -32004");
        assert_eq!(serde_json::to_string(&unknown).unwrap(), "-32004");
    }

    // covers: E-2, AMB-3
    #[test]
    fn ranges_have_owners() {
        assert!(ErrorCode::PARSE_ERROR.is_reserved());
        assert!(ErrorCode::RESOURCE_NOT_FOUND.is_closed());
        assert!(!ErrorCode::HEADER_MISMATCH.is_closed());
        assert!(ErrorCode::HEADER_MISMATCH.belongs_to_specification());
        assert!(ErrorCode::URL_ELICITATION_REQUIRED.belongs_to_specification());
        for outside in [-32769, -31999, -1, 0, 1] {
            assert!(!ErrorCode::new(outside).is_reserved(), "{outside}");
        }
    }

    // covers: E-4
    #[test]
    fn codes_of_withdrawn_drafts_have_no_name() {
        // E-15
        for code in [-32001, -32003, -32004] {
            assert_eq!(ErrorCode::new(code).name(), None);
        }
    }
}
