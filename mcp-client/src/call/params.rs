//! The parameters of a call.

use mcp_types::{CallToolRequestParams, GetPromptRequestParams, RawObject};

use crate::error::Error;

/// The parameters of a call: encoded, or still to be completed by the builder methods of [`Call`](super::Call).
pub(crate) enum Params {
    Encoded(RawObject),
    Tool(CallToolRequestParams),
    Prompt(GetPromptRequestParams),
    Invalid(Error),
}

impl Params {
    pub(super) fn encode(self) -> Result<RawObject, Error> {
        let encoded = match self {
            Self::Encoded(params) => Ok(params),
            Self::Tool(params) => RawObject::new(&params),
            Self::Prompt(params) => RawObject::new(&params),
            Self::Invalid(error) => return Err(error),
        };
        encoded.map_err(invalid)
    }

    /// Sets the arguments of a tool call.
    pub(super) fn tool_arguments(self, arguments: Result<RawObject, serde_json::Error>) -> Self {
        let params = match self {
            Self::Tool(params) => Ok(params),
            Self::Encoded(params) => params.decode::<CallToolRequestParams>(),
            other @ (Self::Prompt(_) | Self::Invalid(_)) => return other,
        };
        match params.and_then(|params| Ok(params.arguments(arguments?))) {
            Ok(params) => Self::Tool(params),
            Err(error) => Self::Invalid(invalid(error)),
        }
    }

    /// Adds an argument of a prompt.
    pub(super) fn prompt_argument(self, name: String, value: String) -> Self {
        let params = match self {
            Self::Prompt(params) => Ok(params),
            Self::Encoded(params) => params.decode::<GetPromptRequestParams>(),
            other @ (Self::Tool(_) | Self::Invalid(_)) => return other,
        };
        match params {
            Ok(mut params) => {
                params.arguments.get_or_insert_default().insert(name, value);
                Self::Prompt(params)
            }
            Err(error) => Self::Invalid(invalid(error)),
        }
    }
}

impl From<Result<RawObject, serde_json::Error>> for Params {
    fn from(params: Result<RawObject, serde_json::Error>) -> Self {
        params.map_or_else(|error| Self::Invalid(invalid(error)), Self::Encoded)
    }
}

pub(super) fn invalid(error: serde_json::Error) -> Error {
    Error::InvalidParams(error.to_string())
}
