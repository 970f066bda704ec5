//! The errors of handlers.

use std::error::Error;
use std::{fmt, io, iter};

use mcp_kernel::CommandError;
use mcp_types::{ClientCapabilities, ErrorObject};

use crate::asking::error::{DeveloperHint, InvalidInput, MissingCapability};
use crate::build::error::BuildError;
use crate::connection::scratch::NoLastingConnection;

/// The form in which any error of a handler arrives.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The maximum number of causes that are looked at, should an error be its own cause.
const MAX_CAUSES: usize = 64;

/// Any error, for handlers that use `?` on several types of errors.
///
/// It keeps the error that it was created from, and with it the causes, in which protocol errors are found.
///
/// Handlers may return any other error, too; see [`IntoToolResult`](crate::IntoToolResult). Errors that do not implement
/// [`Error`] themselves, such as `anyhow::Error` and `Box<dyn Error + Send + Sync>`, cannot be converted by `?`, because such
/// a conversion would conflict with the one of all other errors: use `.map_err(HandlerError::new)?`, or return
/// `anyhow::Result` from the handler.
///
/// # Examples
///
/// ```
/// use mcp_server::HandlerError;
///
/// async fn size(path: &str) -> Result<String, HandlerError> {
///     let size = std::fs::metadata(path)?.len();
///     if size == 0 {
///         return Err(HandlerError::new("the file is empty"));
///     }
///     Ok(format!("{size} bytes"))
/// }
/// ```
#[derive(Debug)]
pub struct HandlerError(BoxError);

impl HandlerError {
    /// Creates an error from a message or from any other error.
    #[must_use]
    pub fn new<E: Into<BoxError> + 'static>(error: E) -> Self {
        Self(boxed(error))
    }

    /// Returns the error and its causes, from the outermost to the innermost.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        iter::successors(Some(self.outermost()), |error| cause(*error)).take(MAX_CAUSES)
    }

    /// Returns the error, or the first of its causes, that has a type.
    #[must_use]
    pub fn find<T: Error + Send + Sync + 'static>(&self) -> Option<&T> {
        // A context of `anyhow` is not part of the chain.
        #[cfg(feature = "anyhow")]
        if let Some(found) = self.0.downcast_ref().and_then(|AnyhowError(error)| error.downcast_ref()) {
            return Some(found);
        }
        self.chain().find_map(|error| error.downcast_ref())
    }

    /// The error of a server that lacks something. What it is stays between the server and its developer.
    pub(crate) fn not_set_up(hint: impl Into<DeveloperHint>) -> Self {
        #[derive(Debug, thiserror::Error)]
        #[error("the server is not set up for this request")]
        struct NotSetUp(#[source] DeveloperHint);

        NotSetUp(hint.into()).into()
    }

    fn outermost(&self) -> &(dyn Error + 'static) {
        #[cfg(feature = "anyhow")]
        if let Some(AnyhowError(error)) = self.0.downcast_ref() {
            return &**error;
        }
        &*self.0
    }

    /// Returns the protocol error that the error is, or is caused by.
    // E-14
    pub(crate) fn protocol_error(&self) -> Option<ErrorObject> {
        if let Some(error) = self.find::<ErrorObject>() {
            return Some(error.clone());
        }
        if let Some(MissingCapability(capability)) = self.find() {
            let mut required = ClientCapabilities::default();
            capability.declare(&mut required);
            return Some(ErrorObject::missing_required_client_capability(required));
        }
        if let Some(invalid) = self.find::<InvalidInput>() {
            return Some(ErrorObject::invalid_params(invalid.to_string()));
        }
        #[cfg(feature = "mrtr")]
        {
            if let Some(rejected) = self.find::<mcp_mrtr::InvalidState>() {
                return Some(rejected.to_error_object());
            }
            if let Some(refused @ mcp_mrtr::InvalidInputRequests::MissingCapabilities(_)) = self.find() {
                return Some(refused.to_error_object());
            }
        }
        None
    }

    /// Returns whether a text tells what is wrong with the code of the server, which is not for clients.
    pub(crate) fn is_for_developers(&self, text: &str) -> bool {
        #[cfg(feature = "mrtr")]
        if self.tells::<mcp_mrtr::InvalidInputRequests>(text) {
            return true;
        }
        self.tells::<DeveloperHint>(text)
            || self.tells::<CommandError>(text)
            || self.tells::<NoLastingConnection>(text)
            || self.tells::<BuildError>(text)
    }

    /// Returns whether a text has that of an error which is among the causes.
    fn tells<T: Error + Send + Sync + 'static>(&self, text: &str) -> bool {
        self.find::<T>().is_some_and(|cause| text.contains(&cause.to_string()))
    }

    /// The texts of the error and its causes.
    pub(crate) fn causes(&self) -> String {
        let mut all = String::new();
        let mut last = String::new();
        for error in self.chain() {
            let text = error.to_string();
            // Some errors, such as those of `std::io`, say the same as their cause.
            if text != last {
                all.push_str(if all.is_empty() { "" } else { ": " });
                all.push_str(&text);
            }
            last = text;
        }
        all
    }
}

/// The next cause of an error.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    // Its source is a copy of itself, for errors that stand for it.
    if error.is::<ErrorObject>() {
        return None;
    }
    // `std::io::Error` skips the error that it was created from.
    if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return Some(inner);
    }
    let source = error.source()?;
    Some(ErrorObject::downcast(source).map_or(source, |object| object))
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.outermost(), f)
    }
}

/// `HandlerError` does not implement [`Error`], as that would conflict with this conversion.
impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl From<HandlerError> for BoxError {
    fn from(error: HandlerError) -> Self {
        error.0
    }
}

/// Keeps an `anyhow::Error`, whose own conversion into a box hides the type of the outermost error.
#[cfg(feature = "anyhow")]
struct AnyhowError(anyhow::Error);

#[cfg(feature = "anyhow")]
impl fmt::Debug for AnyhowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "anyhow")]
impl fmt::Display for AnyhowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "anyhow")]
impl Error for AnyhowError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(feature = "anyhow")]
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    let mut error = Some(error);
    let any: &mut dyn std::any::Any = &mut error;
    let found = any.downcast_mut::<Option<anyhow::Error>>().and_then(Option::take);
    let found = found.map(|found| -> BoxError { Box::new(AnyhowError(found)) });
    // One of the two has the error.
    found.or_else(|| error.map(Into::into)).unwrap_or_else(|| fmt::Error.into())
}

#[cfg(not(feature = "anyhow"))]
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    error.into()
}

/// Returns why errors of this type cannot be those of a handler.
pub(crate) fn unsupported<E>() -> Option<&'static str> {
    let is_hidden = !cfg!(feature = "anyhow") && std::any::type_name::<E>() == "anyhow::Error";
    is_hidden.then_some(
        "a handler returns `anyhow::Error`, in which protocol errors are found only with the feature `anyhow` of \
         `mcp` or `mcp-server`: enable the feature, or return `HandlerError`",
    )
}

#[cfg(test)]
mod tests {
    use mcp_types::{ClientCapability, ErrorCode};

    use super::*;
    use crate::asking::error::AskError;

    #[derive(Debug, thiserror::Error)]
    enum Inner {
        #[error("the inner part failed")]
        Object(#[from] ErrorObject),
        #[error(transparent)]
        Ask(#[from] AskError),
        #[error(transparent)]
        Protocol(ErrorObject),
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the outer part failed")]
    struct Outer(#[from] Inner);

    fn code<E: Into<BoxError> + 'static>(error: E) -> Option<ErrorCode> {
        HandlerError::new(error).protocol_error().map(|object| object.code)
    }

    fn object() -> ErrorObject {
        ErrorObject::invalid_params("no")
    }

    fn missing() -> AskError {
        MissingCapability(ClientCapability::Sampling).into()
    }

    // covers: AUT-1
    #[test]
    fn aut_1_protocol_errors_are_found_in_causes() {
        let found = Some(ErrorCode::INVALID_PARAMS);
        assert_eq!(code(object()), found);
        assert_eq!(code(HandlerError::from(object())), found);
        assert_eq!(code(BoxError::from(object())), found);
        assert_eq!(code(Outer(object().into())), found);
        assert_eq!(code(HandlerError::new(BoxError::from(Outer(object().into())))), found);
        assert_eq!(code(io::Error::other(object())), found);
        assert_eq!(code(io::Error::other(Outer(object().into()))), found);
        assert_eq!(code("no"), None);
        assert_eq!(code(String::from("no")), None);
        assert_eq!(code(fmt::Error), None);
    }

    /// A transparent error shows neither itself nor the error that it stands for, only the cause of that one.
    // covers: AUT-1
    #[test]
    fn aut_1_transparent_errors_hide_nothing() {
        let found = Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        assert_eq!(code(missing()), found);
        assert_eq!(code(Inner::from(missing())), found);
        assert_eq!(code(Outer(missing().into())), found);
        assert_eq!(code(std::sync::Arc::new(missing())), found);
        let found = Some(ErrorCode::INVALID_PARAMS);
        assert_eq!(code(Inner::Protocol(object())), found);
        assert_eq!(code(Outer(Inner::Protocol(object()))), found);
        assert_eq!(code(io::Error::other(Inner::Protocol(object()))), found);
        assert_eq!(code(std::sync::Arc::new(object())), found);
        let error = HandlerError::from(Outer(Inner::Protocol(object())));
        assert_eq!(error.causes(), "the outer part failed: no (code -32602)");
        assert_eq!(error.find::<ErrorObject>(), Some(&object()));
        let invalid = InvalidInput { key: "a".into(), fault: "no".into() };
        assert_eq!(code(Inner::from(AskError::from(invalid))), Some(ErrorCode::INVALID_PARAMS));
    }

    // covers: AUT-1
    #[cfg(feature = "anyhow")]
    #[test]
    fn aut_1_anyhow_is_searched() {
        use anyhow::Context as _;
        let found = Some(ErrorCode::INVALID_PARAMS);
        assert_eq!(code(anyhow::Error::from(object())), found);
        assert_eq!(code(anyhow::Error::from(object()).context("first").context("second")), found);
        assert_eq!(code(anyhow::anyhow!("no").context(object())), found);
        assert_eq!(code(HandlerError::new(anyhow::Error::from(object()))), found);
        assert_eq!(code(anyhow::Error::from(Inner::Protocol(object())).context("first")), found);
        let twice = Err::<(), _>(Outer(object().into())).context("first").map_err(HandlerError::new);
        assert_eq!(code(twice.unwrap_err()), found);
        let error = HandlerError::new(anyhow::anyhow!("cause").context("context"));
        assert_eq!((error.to_string().as_str(), error.causes().as_str()), ("context", "context: cause"));
    }

    // covers: AUT-1
    #[test]
    fn aut_1_sources_are_kept() {
        let error = HandlerError::from(Outer(object().into()));
        assert_eq!(error.to_string(), "the outer part failed");
        assert_eq!(error.causes(), "the outer part failed: the inner part failed: no (code -32602)");
        assert!(error.find::<Inner>().is_some() && error.find::<fmt::Error>().is_none());
        assert_eq!(HandlerError::new(io::Error::other("broken")).causes(), "broken");
    }

    #[test]
    fn causes_that_never_end_are_cut() {
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("endless")
            }
        }
        impl Error for Endless {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
        assert_eq!(HandlerError::from(Endless).chain().count(), MAX_CAUSES);
        assert_eq!(HandlerError::from(fmt::Error).chain().count(), 1);
    }
}
