//! The results of input requests.

use std::sync::Arc;

use mcp_types::{CreateMessageResult, ElicitResult, ErrorObject, InputRequest, ListRootsResult, RawObject};
use serde::de::DeserializeOwned;

use crate::request_handlers::BoxFuture;

/// Handles the input requests of one call; `None` leaves a request to the handlers of the client.
pub(crate) type CallInputHandler =
    Arc<dyn Fn(InputRequest) -> BoxFuture<Result<Option<InputResult>, ErrorObject>> + Send + Sync>;

/// The result of an input request, which [`Call::on_input`](crate::Call::on_input) returns. It has to be of the kind of the
/// request.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is returned once for each request of a server")]
#[non_exhaustive]
pub enum InputResult {
    /// The result of an elicitation request.
    Elicit(ElicitResult),
    /// The result of a sampling request.
    CreateMessage(CreateMessageResult),
    /// The result of a roots request.
    ListRoots(ListRootsResult),
    /// The result of a request of any kind, as JSON. A gateway can return what its own client sent.
    Raw(RawObject),
}

impl From<ElicitResult> for InputResult {
    fn from(result: ElicitResult) -> Self {
        Self::Elicit(result)
    }
}

impl From<CreateMessageResult> for InputResult {
    fn from(result: CreateMessageResult) -> Self {
        Self::CreateMessage(result)
    }
}

impl From<ListRootsResult> for InputResult {
    fn from(result: ListRootsResult) -> Self {
        Self::ListRoots(result)
    }
}

impl From<RawObject> for InputResult {
    fn from(result: RawObject) -> Self {
        Self::Raw(result)
    }
}

impl InputResult {
    pub(crate) fn into_elicited(self) -> Result<ElicitResult, ErrorObject> {
        match self {
            Self::Elicit(result) => Ok(result),
            Self::Raw(raw) => decode(&raw),
            Self::CreateMessage(_) | Self::ListRoots(_) => Err(wrong_kind()),
        }
    }

    pub(crate) fn into_sampled(self) -> Result<CreateMessageResult, ErrorObject> {
        match self {
            Self::CreateMessage(result) => Ok(result),
            Self::Raw(raw) => decode(&raw),
            Self::Elicit(_) | Self::ListRoots(_) => Err(wrong_kind()),
        }
    }

    pub(crate) fn into_roots(self) -> Result<ListRootsResult, ErrorObject> {
        match self {
            Self::ListRoots(result) => Ok(result),
            Self::Raw(raw) => decode(&raw),
            Self::Elicit(_) | Self::CreateMessage(_) => Err(wrong_kind()),
        }
    }
}

fn decode<T: DeserializeOwned>(raw: &RawObject) -> Result<T, ErrorObject> {
    raw.decode().map_err(|fault| ErrorObject::internal_error(format!("the result of the handler is invalid: {fault}")))
}

fn wrong_kind() -> ErrorObject {
    ErrorObject::internal_error("the handler returned the result of another kind of request")
}
