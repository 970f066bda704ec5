//! The results of requests.

use mcp_kernel::server::{Connection, Delivery, Responder};
use mcp_types::{
    CallToolResult, CompleteResult, ErrorObject, GetPromptResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, RawObject, ReadResourceResult,
    SubscriptionFilter,
};

use crate::handlers::tool_result::RoundResult;

/// The result of a request, by its method. Middleware gets it from the [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Response {
    /// The result of `tools/list`.
    Tools(ListToolsResult),
    /// The result of `tools/call`.
    ToolCall(CallToolResult),
    /// The result of `prompts/list`.
    Prompts(ListPromptsResult),
    /// The result of `prompts/get`.
    Prompt(GetPromptResult),
    /// The result of `resources/list`.
    Resources(ListResourcesResult),
    /// The result of `resources/templates/list`.
    Templates(ListResourceTemplatesResult),
    /// The result of `resources/read`.
    Contents(ReadResourceResult),
    /// The result of `completion/complete`.
    Completion(CompleteResult),
    /// The input requests that the client has to fulfil before it retries.
    InputRequired(Box<InputRequiredResult>),
    /// The kernel responds, after all layers: to `server/discover`, `logging/setLevel` and subscriptions.
    ByProtocol,
    /// The kernel opens the listen stream of `subscriptions/listen` with this filter, which has what the client asked for and
    /// may have. Layers can remove members.
    Listening(Box<SubscriptionFilter>),
    /// The result of a method of an extension, or one of a raw handler (see [`Tool::from_raw`](crate::Tool::from_raw)) that
    /// does not have the type of its method.
    Other(RawObject),
}

impl Response {
    pub(crate) fn of<R>(outcome: RoundResult<R>, complete: impl FnOnce(R) -> Self) -> Self {
        match outcome {
            RoundResult::Complete(result) => complete(result),
            RoundResult::InputRequired(input) => Self::InputRequired(input),
        }
    }

    /// Hands the result to the kernel, which restricts it to the client's revision.
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
            Self::ByProtocol => kernel.respond_builtin(responder),
            Self::Listening(filter) => kernel.respond_listening(responder, *filter),
            Self::Other(result) => kernel.respond_raw(responder, &result),
        }
    }
}

/// Sends a result or an error.
pub(crate) fn send(kernel: &mut Connection, responder: Responder, outcome: Result<Response, ErrorObject>) -> Delivery {
    match outcome {
        Ok(response) => response.send(kernel, responder),
        Err(error) => kernel.respond::<CallToolResult>(responder, Err(error)),
    }
}
