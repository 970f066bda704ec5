//! The results of tools.

use std::borrow::Cow;

use mcp_types::{CallToolResult, ContentBlock, InputRequiredResult, RawJson, RawObject};
use schemars::JsonSchema;
use serde::Serialize;

use crate::handlers::error::{BoxError, HandlerError, unsupported};
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
/// Text, content blocks, [`Json`] for structured content, a pair of [`Json`] and content blocks for both, [`CallToolResult`]
/// for full control, `()` for nothing, a [`RoundResult`] of these for handlers that may request input, and a `Result` of any
/// of these.
///
/// The error of a `Result` is any error type: an enum of `thiserror`, `anyhow::Error` (feature `anyhow`), a boxed error,
/// [`HandlerError`], text. It becomes a result with `isError`, whose text the model reads; see
/// [`ServerBuilder::on_handler_error`](crate::ServerBuilder::on_handler_error). An
/// [`ErrorObject`](mcp_types::ErrorObject), or an [`AskError`](crate::AskError) for which the protocol has a code, becomes a protocol error, also if it is the cause
/// ([`source`](std::error::Error::source)) of another error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return text, `Json<T>`, a content block, `(Json<T>, Vec<ContentBlock>)`, a `CallToolResult`, or a `Result` of one of these",
    note = "the type `T` of `Json<T>` derives `serde::Serialize` and `schemars::JsonSchema`",
    note = "the error of a `Result` is text, or a type that implements `std::error::Error + Send + Sync`"
)]
pub trait IntoToolResult {
    /// Returns the schema of the structured content, if there is any.
    #[must_use]
    fn output_schema() -> Option<RawObject> {
        None
    }

    /// Returns why a handler with this result cannot be registered, if there is a reason.
    #[doc(hidden)]
    #[must_use]
    fn registration_fault() -> Option<&'static str> {
        None
    }

    /// Converts the value into the result of `tools/call`.
    ///
    /// # Errors
    ///
    /// Returns the error of the handler.
    fn into_tool_result(self) -> Result<RoundResult<CallToolResult>, HandlerError>;
}

type ToolResult = Result<RoundResult<CallToolResult>, HandlerError>;

fn complete(result: CallToolResult) -> ToolResult {
    Ok(RoundResult::Complete(result))
}

/// A value as JSON: the structured content of a tool, with the same as text for clients without support for it, or the text of
/// a resource, with the MIME type `application/json` unless another one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper around one value")]
pub struct Json<T>(pub T);

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn output_schema() -> Option<RawObject> {
        schema::of::<T>().ok()
    }

    fn into_tool_result(self) -> ToolResult {
        CallToolResult::structured(&self.0).map(RoundResult::Complete).map_err(HandlerError::from)
    }
}

/// Structured content with content blocks of the handler's own, instead of the value as text. Clients without support for
/// structured content, and many models, see only the blocks.
#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoToolResult for (Json<T>, Vec<ContentBlock>) {
    fn output_schema() -> Option<RawObject> {
        schema::of::<T>().ok()
    }

    fn into_tool_result(self) -> ToolResult {
        let (Json(value), content) = self;
        let value = RawJson::new(&value)?;
        complete(CallToolResult::new(content).structured_content(value))
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

    fn registration_fault() -> Option<&'static str> {
        T::registration_fault()
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

impl<T: IntoToolResult, E: Into<BoxError> + 'static> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<RawObject> {
        T::output_schema()
    }

    fn registration_fault() -> Option<&'static str> {
        unsupported::<E>().or_else(T::registration_fault)
    }

    fn into_tool_result(self) -> ToolResult {
        self.map_err(HandlerError::new)?.into_tool_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: impl IntoToolResult) -> CallToolResult {
        match value.into_tool_result() {
            Ok(RoundResult::Complete(result)) => result,
            other => panic!("expected a result, found {other:?}"),
        }
    }

    #[test]
    fn a_tool_may_ask_before_it_answers() {
        assert_eq!(result(RoundResult::Complete("done")).content[0].as_text(), Some("done"));
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = RoundResult::<String>::from(asks()).into_tool_result();
        assert_eq!(asked.unwrap(), RoundResult::InputRequired(Box::new(asks())));
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
