//! What the response of a handler means for its task.

use mcp_kernel::CallError;
use mcp_server::{AskError, Response};
use mcp_types::{
    CallToolResult, ClientCapabilities, ClientCapability, Era, ErrorObject, InputRequest, InputRequiredResult,
    RawObject, ResultType, Revision, restrict_raw, restrict_to,
};

use crate::{TaskCall, TaskJournal, TaskOutcome};

/// How a run ends.
pub(crate) enum Ending {
    /// The task completes with a result.
    Complete(RawObject),
    /// The task fails.
    Fail(TaskOutcome),
    /// The task waits for input, with the state of its handler.
    Park(Vec<(String, InputRequest)>, Option<String>),
}

impl Ending {
    pub(crate) fn error(error: ErrorObject) -> Self {
        Self::Fail(TaskOutcome::Error(error))
    }

    /// The end of a run whose handler returns its input requests, one of which the client has refused before: the tool fails, as
    /// outside of a task.
    pub(crate) fn unless_refused(self, journal: &TaskJournal, call: &TaskCall) -> Self {
        let Self::Park(requests, _) = &self else { return self };
        let Some(error) = requests.iter().find_map(|(key, request)| journal.refusal(key, request)) else { return self };
        Self::refused(error, call)
    }

    /// The end of a run that cannot go on because the client has refused an input request.
    pub(crate) fn refused(error: &ErrorObject, call: &TaskCall) -> Self {
        let error = AskError::NoResponse(CallError::Rejected(error.clone()));
        match typed(CallToolResult::error(error.to_string()), call.revision) {
            Ok(result) => Self::Complete(result),
            Err(error) => Self::error(error),
        }
    }

    /// The end of a run whose handler has returned.
    pub(crate) fn of(served: Result<Response, ErrorObject>, call: &TaskCall) -> Self {
        let result = match served {
            Ok(Response::ToolCall(result)) => typed(result, call.revision),
            Ok(Response::Other(result)) => raw(result, call.revision),
            Ok(Response::InputRequired(input)) => return parked(*input, call),
            Ok(_) => Err(ErrorObject::internal_error("the handler did not return the result of a tool")),
            Err(error) => Err(error),
        };
        match result {
            // B-91: whether a result of a tool that failed is a failure of the task, the model of the client decides that asks.
            Ok(result) => Self::Complete(result),
            Err(error) => Self::error(error),
        }
    }
}

/// A result as the revision has it.
type Restricted = Result<RawObject, ErrorObject>;

fn typed(mut result: CallToolResult, revision: Revision) -> Restricted {
    if revision.era() == Era::Modern {
        result.result_type.get_or_insert(ResultType::COMPLETE);
    }
    if !restrict_to(&mut result, revision).may_be_sent() {
        return Err(not_expressible());
    }
    RawObject::new(&result).map_err(|fault| ErrorObject::internal_error(fault.to_string()))
}

/// A result of a raw handler keeps what no revision has.
fn raw(result: RawObject, revision: Revision) -> Restricted {
    let Ok((restricted, restriction)) = restrict_raw::<CallToolResult>(&result, revision) else {
        return Ok(result);
    };
    if !restriction.may_be_sent() {
        return Err(not_expressible());
    }
    Ok(restricted)
}

fn not_expressible() -> ErrorObject {
    ErrorObject::internal_error("the result cannot be sent")
}

fn parked(input: InputRequiredResult, call: &TaskCall) -> Ending {
    let requests: Vec<_> = input.input_requests.unwrap_or_default().into_iter().collect();
    if requests.is_empty() {
        tracing::error!(target: "mcp", "a handler in a task returned an `InputRequiredResult` without input requests");
        return Ending::error(ErrorObject::internal_error("the handler requested no input"));
    }
    if !call.is_restartable {
        tracing::error!(target: "mcp", "a tool that is not restartable cannot return input requests: use `elicit`, `sample` or `list_roots`");
        return Ending::error(ErrorObject::internal_error("the server cannot request input"));
    }
    match undeclared(&requests, &call.client_capabilities) {
        Some(error) => Ending::error(error),
        None => Ending::Park(requests, input.request_state),
    }
}

/// The error for input requests whose capability the client did not declare.
fn undeclared(requests: &[(String, InputRequest)], declared: &ClientCapabilities) -> Option<ErrorObject> {
    let needed = requests.iter().flat_map(|(_, request)| ClientCapability::required_by(request));
    let mut required = None;
    for missing in needed.filter(|needed| !needed.is_declared(declared)) {
        missing.declare(required.get_or_insert_default());
    }
    required.map(ErrorObject::missing_required_client_capability)
}
