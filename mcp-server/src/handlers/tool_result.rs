//! The results of tools.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use mcp_types::{CallToolResult, ContentBlock, ErrorObject, InputRequiredResult, RawObject};
use schemars::JsonSchema;
use serde::Serialize;

use crate::asking::error::AskError;
use crate::handlers::schema;

/// The result of one round of a handler that may request input: the result of the request, or input requests for the client.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these two")]
pub enum RoundResult<R> {
    /// The result.
    Complete(R),
    /// Input requests, with whose responses the client retries.
    InputRequired(Box<InputRequiredResult>),
}

impl<R> From<InputRequiredResult> for RoundResult<R> {
    fn from(input: InputRequiredResult) -> Self {
        Self::InputRequired(Box::new(input))
    }
}

/// The types that a handler of a tool can return.
///
/// Text, content blocks, [`Json`] for structured content, [`CallToolResult`] for full control, `()` for nothing, a
/// [`RoundResult`] of these for handlers that may request input, and a `Result` of any of these. An error becomes a result with
/// `isError`, which the model can read. An [`ErrorObject`] becomes a protocol error, also as the source of a
/// [`HandlerError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return text, `Json<T>`, a content block, a `CallToolResult`, or a `Result` of one of these"
)]
pub trait IntoToolResult {
    /// Returns the schema of the structured content, if there is any.
    #[must_use]
    fn output_schema() -> Option<RawObject> {
        None
    }

    /// Converts the value into the result of `tools/call`.
    ///
    /// # Errors
    ///
    /// Returns the protocol error to respond with.
    fn into_tool_result(self) -> Result<RoundResult<CallToolResult>, ErrorObject>;
}

type ToolResult = Result<RoundResult<CallToolResult>, ErrorObject>;

fn complete(result: CallToolResult) -> ToolResult {
    Ok(RoundResult::Complete(result))
}

/// Structured content: the value as JSON, and as text for clients without support for structured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper around one value")]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn output_schema() -> Option<RawObject> {
        schema::of::<T>().ok()
    }

    fn into_tool_result(self) -> ToolResult {
        CallToolResult::structured(&self.0)
            .map(RoundResult::Complete)
            .map_err(|error| ErrorObject::internal_error(format!("the result is not JSON: {error}")))
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> ToolResult {
        complete(self)
    }
}

impl IntoToolResult for InputRequiredResult {
    fn into_tool_result(self) -> ToolResult {
        Ok(RoundResult::InputRequired(Box::new(self)))
    }
}

impl<T: IntoToolResult> IntoToolResult for RoundResult<T> {
    fn output_schema() -> Option<RawObject> {
        T::output_schema()
    }

    fn into_tool_result(self) -> ToolResult {
        match self {
            Self::Complete(value) => value.into_tool_result(),
            Self::InputRequired(input) => Ok(RoundResult::InputRequired(input)),
        }
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::text(self))
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::text(self))
    }
}

impl IntoToolResult for Cow<'static, str> {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::text(self))
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::new(vec![self]))
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::new(self))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> ToolResult {
        complete(CallToolResult::new(Vec::new()))
    }
}

impl<T: IntoToolResult, E: fmt::Display + Any> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<RawObject> {
        T::output_schema()
    }

    fn into_tool_result(self) -> ToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => match protocol_error(&error) {
                Some(error) => Err(error),
                None => complete(CallToolResult::error(format!("{error:#}"))),
            },
        }
    }
}

/// Returns the protocol error that an error contains or stands for, if any.
pub(crate) fn protocol_error(error: &dyn Any) -> Option<ErrorObject> {
    if let Some(boxed) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
        return of_error(boxed.as_ref());
    }
    if let Some(HandlerError(boxed)) = error.downcast_ref() {
        return of_error(boxed.as_ref());
    }
    if let Some(error) = error.downcast_ref::<ErrorObject>() {
        return of_error(error);
    }
    error.downcast_ref::<AskError>().and_then(|error| of_error(error))
}

/// Searches an error and its sources.
fn of_error(error: &(dyn Error + 'static)) -> Option<ErrorObject> {
    let mut next = Some(error);
    while let Some(error) = next {
        let object = error.downcast_ref::<ErrorObject>().cloned();
        let object = object.or_else(|| error.downcast_ref::<AskError>().and_then(AskError::to_error_object));
        #[cfg(feature = "mrtr")]
        let object = object.or_else(|| match error.downcast_ref::<mcp_mrtr::InvalidInputRequests>() {
            Some(refused @ mcp_mrtr::InvalidInputRequests::MissingCapabilities(_)) => Some(refused.to_error_object()),
            _ => None,
        });
        if object.is_some() {
            return object;
        }
        next = error.source();
    }
    None
}

/// Any error, for handlers that use `?` on several types of errors.
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
pub struct HandlerError(Box<dyn Error + Send + Sync>);

impl HandlerError {
    /// Creates an error from a message.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `HandlerError` does not implement [`Error`], as that would conflict with this conversion.
impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::ErrorCode;

    use super::*;

    fn result(value: impl IntoToolResult) -> CallToolResult {
        match value.into_tool_result() {
            Ok(RoundResult::Complete(result)) => result,
            other => panic!("expected a result, found {other:?}"),
        }
    }

    #[test]
    fn errors_are_for_the_model_to_read() {
        let failed = result(Err::<String, _>("no such file"));
        assert_eq!(failed.is_error, Some(true));
        assert_eq!(failed.content[0].as_text(), Some("no such file"));
        let failed = result(Err::<String, _>(HandlerError::new("no such file")));
        assert_eq!(failed.content[0].as_text(), Some("no such file"));
    }

    #[test]
    fn protocol_errors_stay_what_they_are() {
        #[derive(Debug, thiserror::Error)]
        #[error("it failed")]
        struct Failed(#[source] ErrorObject);

        let object = || ErrorObject::invalid_params("no");
        let plain = Err::<String, _>(object()).into_tool_result();
        let boxed = Err::<String, Box<dyn Error + Send + Sync>>(object().into()).into_tool_result();
        let wrapped = Err::<String, HandlerError>(object().into()).into_tool_result();
        let caused = Err::<String, HandlerError>(Failed(object()).into()).into_tool_result();
        for refused in [plain, boxed, wrapped, caused] {
            assert_eq!(refused.unwrap_err().code, ErrorCode::INVALID_PARAMS);
        }
    }

    #[test]
    fn a_tool_may_ask_before_it_answers() {
        assert_eq!(result(RoundResult::Complete("done")).content[0].as_text(), Some("done"));
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = RoundResult::<String>::from(asks()).into_tool_result();
        assert_eq!(asked, Ok(RoundResult::InputRequired(Box::new(asks()))));
    }

    #[test]
    fn structured_content_is_text_too() {
        #[derive(Serialize, JsonSchema)]
        struct Sum {
            sum: i64,
        }
        let result = result(Json(Sum { sum: 3 }));
        assert_eq!(result.content[0].as_text(), Some(r#"{"sum":3}"#));
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":3}"#);
        assert!(<Result<Json<Sum>, String>>::output_schema().unwrap().as_str().contains("\"sum\""));
    }
}
