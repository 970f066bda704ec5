//! The error of server-to-client requests.

use std::borrow::Cow;

use mcp_kernel::{CallError, CommandError};
use mcp_types::{ClientCapability, ErrorObject};

use crate::handlers::error::HandlerError;

/// The error of a server-to-client request.
///
/// Its text is fit for the model that reads the error of a tool. What only the developer of the server can change is not part
/// of the text: it is the [`source`](std::error::Error::source), which is logged. So are the errors that the protocol defines,
/// which are therefore found behind errors that stand for this one (`#[error(transparent)]`).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare the capability for this request: check [`supports`](crate::RequestContext::supports)
    /// first.
    #[error("the client does not support the request")]
    NotSupported(#[from] MissingCapability),
    /// There is no way to send a request to the client at this point.
    #[error("no request can be sent to the client")]
    NoBackChannel(#[source] DeveloperHint),
    /// The request is not valid: a form that is not flat, a URL that is not absolute, or something that the client's
    /// revision cannot express.
    #[error("the request to the client is not valid")]
    InvalidRequest(#[source] DeveloperHint),
    /// The kernel refused to send the request.
    #[error("the request to the client cannot be sent")]
    Refused(#[source] CommandError),
    /// The client responded with an error, or not at all.
    #[error("{0}")]
    NoResponse(CallError),
    /// The response of the client does not have the expected type or does not fit the form.
    #[error("the response of the client is not valid: {0}")]
    InvalidResponse(String),
    /// An input response in the retry of a modern client is not valid.
    #[error("the client sent an invalid input response")]
    InvalidInput(#[from] InvalidInput),
    /// The `requestState` in the retry of a modern client was refused.
    #[cfg(feature = "mrtr")]
    #[error("the client sent an invalid request state")]
    InvalidState(#[from] mcp_mrtr::InvalidState),
}

/// The error of a request for which the client did not declare the capability. Clients get it as error -32021.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client did not declare `{}`", .0.name())]
#[expect(clippy::exhaustive_structs, reason = "a wrapper around one value")]
pub struct MissingCapability(pub ClientCapability);

/// The error of an input response that does not have the expected type. Clients get it as error -32602.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`inputResponses.{key}`: {fault}")]
#[non_exhaustive]
pub struct InvalidInput {
    /// The key of the input request.
    pub key: String,
    /// What is wrong with the response.
    pub fault: String,
}

/// The reason of an error for the developer of the server, often with what to do about it. It is logged, and clients do not
/// get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeveloperHint(Cow<'static, str>);

impl From<&'static str> for DeveloperHint {
    fn from(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl From<String> for DeveloperHint {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<CommandError> for AskError {
    fn from(error: CommandError) -> Self {
        if let CommandError::NoBackChannel(why) = error {
            return Self::NoBackChannel(why.into());
        }
        if let CommandError::MissingCapability(missing) = error {
            Self::NotSupported(MissingCapability(missing))
        } else {
            Self::Refused(error)
        }
    }
}

/// For middleware, whose errors are those of the protocol.
impl From<AskError> for ErrorObject {
    fn from(error: AskError) -> Self {
        let text = error.to_string();
        HandlerError::from(error).protocol_error().unwrap_or_else(|| Self::internal_error(text))
    }
}
