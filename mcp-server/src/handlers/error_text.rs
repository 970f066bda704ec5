//! What clients get to know of the errors of handlers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use mcp_types::{CallToolResult, ErrorObject};

use crate::handlers::error::HandlerError;
use crate::serve::context::RequestContext;
use crate::serve::response::Response;

/// The text of a handler's error for the client. The text of a tool's error is read by the model.
///
/// It is returned by the function of [`ServerBuilder::on_handler_error`](crate::ServerBuilder::on_handler_error).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText(Cow<'static, str>);

impl ErrorText {
    /// Creates a text of the application's own.
    #[must_use]
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// Shows what the error says, without its causes. This is the default.
    ///
    /// What only the developer of the server can change, such as a wrong use of this library, is masked.
    #[must_use]
    pub fn shown(error: &HandlerError) -> Self {
        let text = error.to_string();
        if error.is_for_developers(&text) { Self::masked() } else { Self(text.into()) }
    }

    /// Says that the handler failed, and nothing else.
    #[must_use]
    pub fn masked() -> Self {
        Self("the server failed to process the request".into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ErrorText {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&'static str> for ErrorText {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Logs an error of a handler, and decides what the client gets to know.
pub(crate) type ErrorPolicy = Arc<dyn Fn(&RequestContext, &HandlerError) -> ErrorText + Send + Sync>;

/// The error of a tool as the response: a protocol error, or a result for the model.
pub(crate) fn of_tool(ctx: &RequestContext, error: &HandlerError) -> Result<Response, ErrorObject> {
    let ErrorText(text) = text(ctx, error)?;
    Ok(Response::ToolCall(CallToolResult::error(text)))
}

/// The error of any other handler, for which the protocol has no result.
pub(crate) fn of_handler(ctx: &RequestContext, error: &HandlerError) -> ErrorObject {
    match text(ctx, error) {
        Ok(ErrorText(text)) => ErrorObject::internal_error(text),
        Err(error) => error,
    }
}

/// The text for the client, or the protocol error that was found.
fn text(ctx: &RequestContext, error: &HandlerError) -> Result<ErrorText, ErrorObject> {
    if ctx.is_cancelled() {
        // No response is sent.
        return Err(ErrorObject::internal_error("the request was cancelled"));
    }
    if let Some(object) = error.protocol_error() {
        let (method, name, causes) = (ctx.method().as_str(), name(ctx), error.causes());
        tracing::debug!(target: "mcp", method, name, error = causes, "a handler refused a request");
        return Err(object);
    }
    Ok(match &ctx.server().settings().error_policy {
        Some(policy) => policy(ctx, error),
        None => {
            error.log(ctx);
            ErrorText::shown(error)
        }
    })
}

impl HandlerError {
    /// Logs the error and its causes with `tracing`, at level `warn`, as the server does by default. It is meant for the
    /// function of [`ServerBuilder::on_handler_error`](crate::ServerBuilder::on_handler_error).
    pub fn log(&self, ctx: &RequestContext) {
        let (method, name, causes) = (ctx.method().as_str(), name(ctx), self.causes());
        tracing::warn!(target: "mcp", method, name, error = causes, "a handler failed");
    }
}

/// The maximum number of characters of a name or URI in a log.
const MAX_SHOWN_CHARS: usize = 128;

/// The name or URI that was requested, as the client sent it.
fn name(ctx: &RequestContext) -> Option<&str> {
    let params = ctx.params();
    let raw = params.get("name").or_else(|| params.get("uri"))?.get();
    let text = raw.trim_matches('"');
    Some(text.char_indices().nth(MAX_SHOWN_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::error::AskError;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error("cannot ask: {0}")]
        Shown(AskError),
        #[error("cannot ask: {}", std::error::Error::source(.0).map(ToString::to_string).unwrap_or_default())]
        Cause(#[source] AskError),
        #[error(transparent)]
        Transparent(AskError),
    }

    // covers: AUT-1
    #[test]
    fn aut_1_hints_for_developers_are_not_shown() {
        let hint = "set `ServerBuilder::random_source`";
        for error in [AskError::NoBackChannel(hint.into()), AskError::InvalidRequest(hint.into())] {
            let direct = HandlerError::from(error.clone());
            assert_eq!(ErrorText::shown(&direct).to_string(), error.to_string());
            assert!(!error.to_string().contains(hint) && direct.causes().contains(hint));
            let shown = ErrorText::shown(&Wrapped::Shown(error.clone()).into());
            assert_eq!(shown.as_str(), format!("cannot ask: {error}"));
            assert_eq!(ErrorText::shown(&Wrapped::Cause(error.clone()).into()), ErrorText::masked());
            let transparent = HandlerError::from(Wrapped::Transparent(error.clone()));
            assert_eq!(ErrorText::shown(&transparent).to_string(), error.to_string());
            assert!(transparent.causes().contains(hint));
        }
        #[cfg(feature = "mrtr")]
        {
            let misuse = mcp_mrtr::InvalidInputRequests::DuplicateKey("a".into());
            assert_eq!(ErrorText::shown(&misuse.into()), ErrorText::masked());
        }
        assert_eq!(ErrorText::shown(&HandlerError::new("no such file")).as_str(), "no such file");
    }
}
