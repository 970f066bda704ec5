//! The parameters of a call.

use mcp_types::{CallToolRequestParams, GetPromptRequestParams, RawObject};
use serde::Serialize;

use crate::error::Error;

/// The parameters of a call: encoded, or still to be completed by the builder methods of [`Call`](super::Call).
pub(crate) enum Params {
    Encoded(RawObject),
    /// A tool call, which is encoded when it has arguments.
    Tool {
        name: String,
        encoded: Option<RawObject>,
    },
    Prompt(GetPromptRequestParams),
    Invalid(Error),
}

impl Params {
    pub(crate) fn tool(name: String) -> Self {
        Self::Tool { name, encoded: None }
    }

    /// Encodes the parameters; also returns the name of a tool.
    pub(super) fn encode(self) -> Result<(RawObject, Option<String>), Error> {
        let encoded = match self {
            Self::Encoded(params) => Ok((params, None)),
            Self::Tool { name, encoded: Some(params) } => Ok((params, Some(name))),
            Self::Tool { name, encoded: None } => {
                RawObject::new(&CallToolRequestParams::new(&name)).map(|params| (params, Some(name)))
            }
            Self::Prompt(params) => RawObject::new(&params).map(|params| (params, None)),
            Self::Invalid(error) => return Err(error),
        };
        encoded.map_err(invalid)
    }

    /// Sets the arguments of a tool call.
    pub(super) fn tool_arguments(self, arguments: &(impl Serialize + ?Sized)) -> Self {
        let params = match self {
            Self::Tool { name, .. } => {
                encode_tool(&name, arguments).map(|params| Self::Tool { name, encoded: Some(params) })
            }
            Self::Encoded(params) => params
                .decode::<CallToolRequestParams>()
                .and_then(|params| RawObject::new(&params.arguments(RawObject::new(arguments)?)))
                .map(Self::Encoded),
            other @ (Self::Prompt(_) | Self::Invalid(_)) => return other,
        };
        params.unwrap_or_else(|error| Self::Invalid(invalid(error)))
    }

    /// Adds an argument of a prompt.
    pub(super) fn prompt_argument(self, name: String, value: String) -> Self {
        let params = match self {
            Self::Prompt(params) => Ok(params),
            Self::Encoded(params) => params.decode::<GetPromptRequestParams>(),
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

/// Encodes the parameters of a tool call with its arguments, in one buffer.
fn encode_tool(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<RawObject, serde_json::Error> {
    let params = RawObject::new(&ToolParams { name, arguments })?;
    // The text tells whether the arguments are an object, unless the name has escapes.
    let rest = params.as_str().strip_prefix(r#"{"name":""#).and_then(|rest| rest.strip_prefix(name));
    if rest.is_some_and(|rest| rest.starts_with(r#"","arguments":{"#)) {
        return Ok(params);
    }
    RawObject::new(&ToolParams { name, arguments: &RawObject::new(arguments)? })
}

/// The parameters of a tool call that applications set.
#[derive(Serialize)]
struct ToolParams<'a, A: ?Sized> {
    name: &'a str,
    arguments: &'a A,
}

pub(super) fn invalid(error: serde_json::Error) -> Error {
    Error::InvalidParams(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(name: &str, arguments: &serde_json::Value) -> Result<String, String> {
        let params = Params::tool(name.to_owned()).tool_arguments(&json!({ "before": 1 })).tool_arguments(arguments);
        params.encode().map(|(params, _)| params.to_string()).map_err(|error| error.to_string())
    }

    /// Names and arguments are encoded as they are, whatever characters they have.
    #[test]
    fn the_parameters_of_a_tool_call_are_encoded() {
        for name in ["", "t", "grüß", "a\"b", "a\\", "\\", "\"", "x\",\"arguments\":{", "\n"] {
            let arguments = json!({ "a": { "b": [1] } });
            let expected =
                RawObject::new(&CallToolRequestParams::new(name).arguments(RawObject::new(&arguments).unwrap()));
            assert_eq!(encoded(name, &arguments), Ok(expected.unwrap().to_string()));
            for (arguments, found) in [(json!([1]), "an array"), (json!(null), "null"), (json!("{"), "a string")] {
                let error = encoded(name, &arguments).unwrap_err();
                assert!(error.ends_with(&format!("expected an object, found {found}")), "{error}");
            }
        }
        let bare = Params::tool("t".to_owned()).encode().map(|(params, name)| (params.to_string(), name));
        assert_eq!(bare.ok(), Some((r#"{"name":"t"}"#.to_owned(), Some("t".to_owned()))));
    }
}
