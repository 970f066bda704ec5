//! The `error` of a response.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::codec::object::object;
use crate::{ErrorCode, RawJson};

/// The `error` of a response.
///
/// It is sent by a peer, unlike a local failure such as a timeout. Unknown members are ignored.
///
/// Since 2024-11-05.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ErrorObject {
    /// The error code.
    pub code: ErrorCode,
    /// A short description of the error.
    pub message: Cow<'static, str>,
    /// Details, whose type depends on the code; `null` differs from absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

object!(ErrorObject {
    "code" => code: required,
    "message" => message: required,
    "data" => data: present,
});

impl ErrorObject {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Sets `data` to a serialized value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized.
    pub fn data<T: Serialize + ?Sized>(self, data: &T) -> Result<Self, serde_json::Error> {
        RawJson::new(data).map(|data| self.raw_data(data))
    }

    /// Sets `data` to raw JSON.
    #[must_use]
    pub fn raw_data(self, data: RawJson) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Creates an error with [`ErrorCode::PARSE_ERROR`].
    #[must_use]
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::PARSE_ERROR, message)
    }

    /// Creates an error with [`ErrorCode::INVALID_REQUEST`].
    #[must_use]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// Creates an error with [`ErrorCode::METHOD_NOT_FOUND`].
    #[must_use]
    pub fn method_not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, message)
    }

    /// Creates an error with [`ErrorCode::INVALID_PARAMS`].
    #[must_use]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Creates an error with [`ErrorCode::INTERNAL_ERROR`].
    ///
    /// The message is sent to the peer, so it must not disclose internals.
    #[must_use]
    pub fn internal_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: CG-17
    #[test]
    fn absent_data_and_null_differ() {
        let without = ErrorObject::invalid_params("no");
        let null = without.clone().data(&()).unwrap();
        assert_eq!(serde_json::to_string(&without).unwrap(), r#"{"code":-32602,"message":"no"}"#);
        assert_eq!(serde_json::to_string(&null).unwrap(), r#"{"code":-32602,"message":"no","data":null}"#);
        for error in [without, null] {
            let text = serde_json::to_string(&error).unwrap();
            assert_eq!(serde_json::from_str::<ErrorObject>(&text).unwrap(), error);
        }
    }

    #[test]
    fn unknown_members_are_ignored() {
        let error: ErrorObject = serde_json::from_str(r#"{"stack":[],"message":"m","code":7}"#).unwrap();
        assert_eq!(error, ErrorObject::new(7.into(), "m"));
        assert_eq!(error.to_string(), "m (code 7)");
    }

    #[test]
    fn code_and_message_are_required() {
        for text in [r#"{"code":1}"#, r#"{"message":"m"}"#, r#"{"code":1.5,"message":"m"}"#] {
            assert!(serde_json::from_str::<ErrorObject>(text).is_err(), "{text}");
        }
    }
}
