//! The `error` of a response.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize};

use crate::codec::object::object;
use crate::{ErrorCode, RawJson};

/// The `error` of a response.
///
/// It is sent by a peer, unlike a local failure such as a timeout. Unknown members are ignored.
///
/// As a Rust error, it is found behind errors that stand for it (`#[error(transparent)]` of `thiserror`) with
/// [`downcast`](Self::downcast).
///
/// Since 2024-11-05.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
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
    #[serde(skip)]
    source: SourceCell,
}

object!(
    struct Members {
        "code" => code: required ErrorCode,
        "message" => message: required Cow<'static, str>,
        "data" => data: present Option<RawJson>,
    }
);

impl<'de> Deserialize<'de> for ErrorObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Members { code, message, data } = Members::deserialize(deserializer)?;
        Ok(Self { code, message, data, source: SourceCell::default() })
    }
}

impl ErrorObject {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None, source: SourceCell::default() }
    }

    /// Returns the error object that an error is, or that it is the [`source`](Error::source) of.
    ///
    /// An error that stands for another one (`#[error(transparent)]` of `thiserror`) has its source instead of the error
    /// itself. To find an error object wherever it is, call this for an error and all its sources.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::error::Error;
    ///
    /// use mcp_types::ErrorObject;
    ///
    /// let error = ErrorObject::invalid_params("no such file");
    /// assert_eq!(ErrorObject::downcast(&error), Some(&error));
    /// assert_eq!(error.source().and_then(ErrorObject::downcast), Some(&error));
    /// ```
    #[must_use]
    pub fn downcast<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        error.downcast_ref().or_else(|| error.downcast_ref().map(|SourceOfObject(object)| object))
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

impl fmt::Debug for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, message, data, source: _ } = self;
        f.debug_struct("ErrorObject").field("code", code).field("message", message).field("data", data).finish()
    }
}

impl Error for ErrorObject {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.0.get_or_init(|| Box::new(SourceOfObject(self.clone())));
        // Members that were changed since then must not be found as they were.
        (source.0 == *self).then_some(&**source)
    }
}

/// The source of an error object: a copy of it, because an error that was its own source would never end.
#[derive(Debug)]
struct SourceOfObject(ErrorObject);

impl fmt::Display for SourceOfObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JSON-RPC error {}", self.0.code)
    }
}

impl Error for SourceOfObject {}

/// Holds the source of an error object from when it is requested. It is no part of the value.
#[derive(Default)]
struct SourceCell(OnceLock<Box<SourceOfObject>>);

impl Clone for SourceCell {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SourceCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SourceCell {}

impl Hash for SourceCell {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

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

    #[derive(Debug)]
    struct Transparent(ErrorObject);

    impl fmt::Display for Transparent {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(&self.0, f)
        }
    }

    impl Error for Transparent {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.0.source()
        }
    }

    // covers: AUT-1
    #[test]
    fn aut_1_an_object_is_found_behind_an_error_that_stands_for_it() {
        let object = ErrorObject::invalid_params("no").data(&7).unwrap();
        let mut error = Transparent(object.clone());
        let source = error.source().unwrap();
        assert_eq!(ErrorObject::downcast(source), Some(&object));
        assert_eq!(source.to_string(), "JSON-RPC error -32602");
        assert!(source.source().is_none(), "the chain must end");
        assert_eq!(ErrorObject::downcast(&error), None);
        assert_eq!(ErrorObject::downcast(&fmt::Error), None);
        // Members are never found as they were before a change.
        error.0.code = ErrorCode::INTERNAL_ERROR;
        assert!(error.source().is_none());
        assert_eq!(ErrorObject::downcast(error.0.clone().source().unwrap()).unwrap().code, ErrorCode::INTERNAL_ERROR);
    }

    /// Whether the source was requested makes no difference to anything else.
    #[test]
    fn the_source_is_no_part_of_the_value() {
        let (object, other) = (ErrorObject::invalid_params("no"), ErrorObject::invalid_params("no"));
        assert!(object.source().is_some());
        assert_eq!(object, other);
        assert_eq!(format!("{object:?}"), format!("{other:?}"));
        assert_eq!(serde_json::to_string(&object).unwrap(), serde_json::to_string(&other).unwrap());
        assert_eq!(std::collections::HashSet::from([object, other]).len(), 1);
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
