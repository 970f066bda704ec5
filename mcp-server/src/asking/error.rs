//! The error of server-to-client requests.

use mcp_kernel::{CallError, CommandError};
use mcp_types::{ClientCapabilities, ClientCapability, ErrorObject};

/// The error of a server-to-client request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare the capability for this request.
    #[error("the client did not declare `{}`: check `ctx.supports(..)` first", .0.name())]
    NotSupported(ClientCapability),
    /// There is no way to send a request to the client at this point.
    #[error("no request can be sent to the client: {0}")]
    NoBackChannel(&'static str),
    /// The request is not valid: a form that is not flat, a URL that is not absolute, or something that the client's
    /// revision cannot express.
    #[error("{0}")]
    InvalidRequest(String),
    /// The kernel refused to send the request.
    #[error("{0}")]
    Refused(CommandError),
    /// The client responded with an error, or not at all.
    #[error("{0}")]
    NoResponse(CallError),
    /// The response of the client does not have the expected type or does not fit the form.
    #[error("the response of the client is not valid: {0}")]
    InvalidResponse(String),
    /// An input response in the retry of a modern client is not valid.
    #[error("`inputResponses.{key}`: {fault}")]
    InvalidInput {
        /// The key of the input request.
        key: String,
        /// What is wrong with the response.
        fault: String,
    },
    /// The `requestState` in the retry of a modern client was refused.
    #[cfg(feature = "mrtr")]
    #[error("{0}")]
    InvalidState(mcp_mrtr::InvalidState),
}

impl AskError {
    /// The error for the response to the original request, where the protocol defines one.
    // E-14
    pub(crate) fn to_error_object(&self) -> Option<ErrorObject> {
        match self {
            Self::NotSupported(capability) => {
                let mut required = ClientCapabilities::default();
                capability.declare(&mut required);
                Some(ErrorObject::missing_required_client_capability(required))
            }
            Self::InvalidInput { .. } => Some(ErrorObject::invalid_params(self.to_string())),
            #[cfg(feature = "mrtr")]
            Self::InvalidState(rejected) => Some(rejected.to_error_object()),
            Self::NoBackChannel(_)
            | Self::InvalidRequest(_)
            | Self::Refused(_)
            | Self::NoResponse(_)
            | Self::InvalidResponse(_) => None,
        }
    }
}

impl From<CommandError> for AskError {
    fn from(error: CommandError) -> Self {
        if let CommandError::NoBackChannel(why) = error {
            return Self::NoBackChannel(why);
        }
        if let CommandError::MissingCapability(missing) = error {
            Self::NotSupported(missing)
        } else {
            Self::Refused(error)
        }
    }
}

/// For middleware, whose errors are those of the protocol.
impl From<AskError> for ErrorObject {
    fn from(error: AskError) -> Self {
        error.to_error_object().unwrap_or_else(|| Self::internal_error(error.to_string()))
    }
}
