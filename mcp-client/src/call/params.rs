//! The parameters of a call.

use mcp_types::{CallToolRequestParams, GetPromptRequestParams, ObjectBuf, ObjectRef, RawObject};
use serde::Serialize;

use crate::error::Error;

/// The parameters of a call: encoded, or still to be completed by the builder methods of [`Call`](super::Call).
pub(crate) enum Params {
    Encoded(RawObject),
    Tool {
        params: ObjectBuf,
        has_arguments: bool,
        /// The name of the tool, if it is sent in a header.
        name: Option<String>,
    },
    Prompt(Box<GetPromptRequestParams>),
    Invalid(Error),
}

impl Params {
    /// Creates the parameters of a tool call.
    pub(crate) fn tool(name: &str, has_headers: bool) -> Self {
        let mut params = ObjectBuf::new();
        match params.push("name", name) {
            Ok(()) => Self::Tool { params, has_arguments: false, name: has_headers.then(|| name.to_owned()) },
            Err(error) => Self::Invalid(invalid(error)),
        }
    }

    /// Encodes the parameters; also returns the name of a tool, if it is sent in a header.
    pub(super) fn encode(self) -> Result<(ObjectBuf, Option<String>), Error> {
        match self {
            Self::Encoded(params) => Ok((params.into(), None)),
            Self::Tool { params, name, .. } => Ok((params, name)),
            Self::Prompt(params) => Ok((RawObject::new(&params).map_err(invalid)?.into(), None)),
            Self::Invalid(error) => Err(error),
        }
    }

    /// Sets the arguments of a tool call.
    pub(super) fn tool_arguments(self, arguments: &(impl Serialize + ?Sized)) -> Self {
        let params = match self {
            Self::Tool { mut params, has_arguments: false, name } => {
                let written = params.push_object("arguments", arguments);
                written.map(|()| Self::Tool { params, has_arguments: true, name })
            }
            Self::Tool { params, has_arguments: true, name } => replace_arguments((&params).into(), arguments)
                .map(|params| Self::Tool { params: params.into(), has_arguments: true, name }),
            Self::Encoded(params) => replace_arguments((&params).into(), arguments).map(Self::Encoded),
            other @ (Self::Prompt(_) | Self::Invalid(_)) => return other,
        };
        params.unwrap_or_else(|error| Self::Invalid(invalid(error)))
    }

    /// Adds an argument of a prompt.
    pub(super) fn prompt_argument(self, name: String, value: String) -> Self {
        let params = match self {
            Self::Prompt(params) => Ok(params),
            Self::Encoded(params) => params.decode(),
            other @ (Self::Tool { .. } | Self::Invalid(_)) => return other,
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

/// Encodes the parameters of a tool call with other arguments.
fn replace_arguments(
    params: ObjectRef<'_>,
    arguments: &(impl Serialize + ?Sized),
) -> Result<RawObject, serde_json::Error> {
    let params: CallToolRequestParams = params.decode()?;
    RawObject::new(&params.arguments(RawObject::new(arguments)?))
}

pub(super) fn invalid(error: serde_json::Error) -> Error {
    Error::InvalidParams(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(params: Params) -> Result<String, String> {
        params.encode().map(|(params, _)| params.as_str().to_owned()).map_err(|error| error.to_string())
    }

    /// Names and arguments are encoded as they are, and the last arguments count.
    #[test]
    fn the_parameters_of_a_tool_call_are_encoded() {
        for name in ["", "t", "gr\u{fc}\u{df}", "a\"b", "a\\", "x\",\"arguments\":{", "\n"] {
            let arguments = json!({ "a": { "b": [1] } });
            let params = CallToolRequestParams::new(name);
            assert_eq!(encoded(Params::tool(name, false)), Ok(RawObject::new(&params).unwrap().to_string()));
            let expected = RawObject::new(&params.arguments(RawObject::new(&arguments).unwrap())).unwrap();
            let once = Params::tool(name, true).tool_arguments(&arguments);
            let twice = Params::tool(name, true).tool_arguments(&json!({ "before": 1 })).tool_arguments(&arguments);
            assert_eq!([encoded(once), encoded(twice)], [Ok(expected.to_string()), Ok(expected.to_string())]);
            for (arguments, found) in [(json!([1]), "an array"), (json!(null), "null"), (json!("{"), "a string")] {
                let error = encoded(Params::tool(name, false).tool_arguments(&arguments)).unwrap_err();
                assert!(error.ends_with(&format!("expected an object, found {found}")), "{error}");
            }
        }
    }
}
