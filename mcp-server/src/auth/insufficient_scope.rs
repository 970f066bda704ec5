//! The error of tokens that lack a scope.

use std::fmt;

use mcp_types::{ErrorCode, ErrorObject};
use serde::{Deserialize, Serialize};

/// The error of a request whose access token lacks a scope that it needs.
///
/// The library creates it for what was registered with [`Tool::requires_scope`](crate::Tool::requires_scope) and the like. A
/// handler whose arguments decide which scopes are needed returns it itself, before it sends anything:
///
/// ```
/// use mcp_server::types::ErrorObject;
/// use mcp_server::{AuthInfo, InsufficientScope, tool_fn};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Remove { area: String }
///
/// async fn remove(auth: AuthInfo, Remove { area }: Remove) -> Result<String, ErrorObject> {
///     let scope = format!("{area}:remove");
///     if !auth.has_scope(&scope) {
///         return Err(InsufficientScope::new([scope]).into());
///     }
///     Ok("removed".to_owned())
/// }
///
/// let remove = tool_fn("remove", remove);
/// ```
///
/// Clients get the JSON-RPC error -32600 with the scopes in its `data`. Over HTTP it is a 403, and the layer of the crate
/// `mcp-auth` adds the challenge (`WWW-Authenticate`) with which clients ask their user for more. The HTTP response has this
/// value among its extensions, for other layers that authenticate.
#[derive(Clone, PartialEq, Eq)]
pub struct InsufficientScope {
    scopes: Vec<String>,
}

/// The `data` of the error.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    required_scopes: Vec<String>,
}

/// The error in a JSON-RPC response.
#[derive(Deserialize)]
struct Failed {
    error: ErrorObject,
}

impl InsufficientScope {
    /// Creates the error of a request that needs all of these scopes.
    pub fn new<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        let mut scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        scopes.sort();
        scopes.dedup();
        Self { scopes }
    }

    /// Returns all scopes that the request needs, in alphabetical order.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().map(String::as_str)
    }

    /// Finds it in an error.
    #[must_use]
    pub fn from_error(error: &ErrorObject) -> Option<Self> {
        let data = error.data.as_ref().filter(|_| error.code == ErrorCode::INVALID_REQUEST)?;
        let Data { required_scopes } = data.decode().ok()?;
        Some(Self::new(required_scopes)).filter(|error| !error.scopes.is_empty())
    }

    /// Finds it in a JSON-RPC error response, for transports that have a status of their own for it.
    #[must_use]
    pub fn from_response(message: &[u8]) -> Option<Self> {
        let Failed { error } = serde_json::from_slice(message).ok()?;
        Self::from_error(&error)
    }
}

impl From<InsufficientScope> for ErrorObject {
    fn from(error: InsufficientScope) -> Self {
        let object = Self::invalid_request(error.to_string());
        // Texts can be written.
        object.clone().data(&Data { required_scopes: error.scopes }).unwrap_or(object)
    }
}

impl fmt::Display for InsufficientScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this request needs an access token with the scopes: {}", self.scopes.join(" "))
    }
}

impl fmt::Debug for InsufficientScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InsufficientScope").field(&self.scopes).finish()
    }
}

impl std::error::Error for InsufficientScope {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_in_responses() {
        let error = InsufficientScope::new(["b", "a", "b"]);
        let object = ErrorObject::from(error.clone());
        assert_eq!(object.message, "this request needs an access token with the scopes: a b");
        assert_eq!(InsufficientScope::from_error(&object), Some(error.clone()));
        let response = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{}}}"#, serde_json::to_string(&object).unwrap());
        assert_eq!(InsufficientScope::from_response(response.as_bytes()), Some(error));
        for other in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a","data":{"requiredScopes":[]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a","data":{"requiredScopes":["a"]}}}"#,
        ] {
            assert_eq!(InsufficientScope::from_response(other.as_bytes()), None, "{other}");
        }
    }
}
