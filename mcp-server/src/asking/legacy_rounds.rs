//! Input requests that a handler returns to a legacy client: they are sent as requests, and the handler runs again.

use mcp_types::{
    ErrorObject, InputRequest, InputRequests, InputRequiredResult, InputResponses, Method, RawObject, RequestParams,
};

use crate::asking::error::AskError;
use crate::asking::options::AskOptions;
use crate::handlers::error::HandlerError;
use crate::handlers::error_text;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::Dispatched;
use crate::serve::response::Response;

/// The maximum number of rounds of one request.
const MAX_ROUNDS: usize = 10;

/// Sends the input requests that a handler returned, and calls it again with the responses, until it returns a result.
pub(crate) async fn run(ctx: RequestContext, first: InputRequiredResult) -> Result<Response, ErrorObject> {
    let mut input_required = first;
    for _ in 0..MAX_ROUNDS {
        let responses = match send_all(&ctx, input_required.input_requests.take().unwrap_or_default()).await {
            Ok(responses) => responses,
            Err(error) => return failed(&ctx, error),
        };
        let next_round = ctx.next_round(responses, input_required.request_state.take());
        #[cfg_attr(not(feature = "mrtr"), expect(unused_mut, reason = "nothing else changes it"))]
        let mut served = match ctx.server().endpoint().serve(next_round.clone()) {
            Dispatched::Ready(outcome) => outcome,
            Dispatched::Pending(later) => later.await,
        };
        #[cfg(feature = "mrtr")]
        crate::asking::rounds::reject_mixed_styles(&next_round, &mut served);
        match served {
            Ok(Response::InputRequired(next)) => input_required = *next,
            done => return done,
        }
    }
    tracing::error!(target: "mcp", rounds = MAX_ROUNDS, "a handler still requests input after the maximum number of rounds");
    Err(ErrorObject::internal_error("the handler requested input too often"))
}

async fn send_all(ctx: &RequestContext, requests: InputRequests) -> Result<InputResponses, AskError> {
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        responses.insert(key, send_one(ctx, request, AskOptions::of_users()).await?);
    }
    Ok(responses)
}

/// Sends one request; the kernel checks the capabilities of the client.
pub(crate) async fn send_one(
    ctx: &RequestContext,
    request: InputRequest,
    options: AskOptions,
) -> Result<RawObject, AskError> {
    match request {
        InputRequest::Elicit(elicit) => {
            ctx.send_legacy_request(Method::ELICITATION_CREATE, elicit.params, options).await
        }
        InputRequest::CreateMessage(message) => {
            ctx.send_legacy_request(Method::SAMPLING_CREATE_MESSAGE, message.params, options).await
        }
        InputRequest::ListRoots(_) => {
            ctx.send_legacy_request(Method::ROOTS_LIST, RequestParams::default(), options).await
        }
        InputRequest::Unknown(_) | _ => Err(AskError::InvalidRequest("unknown kind of input request".into())),
    }
}

/// The error as the result of a tool, or as a protocol error elsewhere.
fn failed(ctx: &RequestContext, error: AskError) -> Result<Response, ErrorObject> {
    let error = HandlerError::from(error);
    if *ctx.method() == Method::TOOLS_CALL {
        return error_text::of_tool(ctx, &error);
    }
    Err(error_text::of_handler(ctx, &error))
}
