//! What a request is answered with.

use mcp_kernel::server::{Connection, Delivery, Responder};
use mcp_types::{
    CallToolResult, CompleteResult, ErrorObject, GetPromptResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, RawObject, ReadResourceResult,
};

use crate::handlers::tool_result::Outcome;

/// The result of a request, by its kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Response {
    /// Of `tools/list`.
    Tools(ListToolsResult),
    /// Of `tools/call`.
    ToolCall(CallToolResult),
    /// Of `prompts/list`.
    Prompts(ListPromptsResult),
    /// Of `prompts/get`.
    Prompt(GetPromptResult),
    /// Of `resources/list`.
    Resources(ListResourcesResult),
    /// Of `resources/templates/list`.
    Templates(ListResourceTemplatesResult),
    /// Of `resources/read`.
    Contents(ReadResourceResult),
    /// Of `completion/complete`.
    Completion(CompleteResult),
    /// Questions that the client has to answer first (modern era).
    InputRequired(Box<InputRequiredResult>),
    /// The protocol's own, which it adds after all layers: of `server/discover`, `logging/setLevel` and subscriptions.
    ByProtocol,
    /// Of a method that an extension adds.
    Other(RawObject),
}

impl Response {
    pub(crate) fn of<R>(outcome: Outcome<R>, complete: impl FnOnce(R) -> Self) -> Self {
        match outcome {
            Outcome::Complete(result) => complete(result),
            Outcome::InputRequired(questions) => Self::InputRequired(questions),
        }
    }

    /// Hands the answer to the kernel, which fits it to the client's revision.
    pub(crate) fn send(self, kernel: &mut Connection, responder: Responder) -> Delivery {
        match self {
            Self::Tools(result) => kernel.respond(responder, Ok(result)),
            Self::ToolCall(result) => kernel.respond(responder, Ok(result)),
            Self::Prompts(result) => kernel.respond(responder, Ok(result)),
            Self::Prompt(result) => kernel.respond(responder, Ok(result)),
            Self::Resources(result) => kernel.respond(responder, Ok(result)),
            Self::Templates(result) => kernel.respond(responder, Ok(result)),
            Self::Contents(result) => kernel.respond(responder, Ok(result)),
            Self::Completion(result) => kernel.respond(responder, Ok(result)),
            Self::InputRequired(result) => kernel.respond(responder, Ok(*result)),
            Self::ByProtocol => kernel.proceed(responder),
            Self::Other(result) => kernel.respond_raw(responder, &result),
        }
    }
}

/// Sends an answer or an error.
pub(crate) fn send(kernel: &mut Connection, responder: Responder, outcome: Result<Response, ErrorObject>) -> Delivery {
    match outcome {
        Ok(answer) => answer.send(kernel, responder),
        Err(error) => kernel.respond::<CallToolResult>(responder, Err(error)),
    }
}
