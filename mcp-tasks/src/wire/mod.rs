//! The methods of tasks, in both models.

pub(crate) mod core;
pub(crate) mod extension;
mod timestamp;

use std::sync::Arc;

use mcp_server::RequestContext;
use mcp_types::{Era, ErrorObject, InputRequest, InputResponses, RawObject, TaskStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::runtime::Shared;
use crate::runtime::new_task::refusal;
use crate::runtime::write::{self, Change, ReadRecord, WriteError};
use crate::{QueueAction, ResponseOutcome, TaskRecord, TransitionError};

/// Serves one of the methods.
// TK-28..TK-30
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    match (ctx.era(), ctx.method().as_str()) {
        (Era::Modern, "tasks/get") => extension::get(shared, ctx, params).await,
        (Era::Modern, "tasks/update") => extension::update(shared, ctx, params).await,
        (Era::Modern, "tasks/cancel") => extension::cancel(shared, ctx, params).await,
        (Era::Legacy, "tasks/get") => core::get(shared, ctx, params).await,
        (Era::Legacy, "tasks/result") => core::result(shared, ctx, params).await,
        (Era::Legacy, "tasks/list") => core::list(shared, ctx, params).await,
        (Era::Legacy, "tasks/cancel") => core::cancel(shared, ctx, params).await,
        (_, method) => Err(ErrorObject::method_not_found(format!("there is no method `{method}` here"))),
    }
}

/// Returns a task of the caller. The tasks of others do not exist for it.
// TK-28, TK-35, B-89, B-90
async fn load(shared: &Arc<Shared>, ctx: &RequestContext, task_id: &str) -> Result<ReadRecord, ErrorObject> {
    let Ok(id) = task_id.parse() else { return Err(unknown()) };
    let read = write::load(shared, id).await.map_err(|error| refusal(&error))?;
    read.filter(|read| read.record.owner == Shared::owner_of(ctx)).ok_or_else(unknown)
}

fn unknown() -> ErrorObject {
    ErrorObject::invalid_params("Unknown task")
}

fn decode<T: DeserializeOwned>(params: &RawObject) -> Result<T, ErrorObject> {
    params.decode().map_err(|fault| ErrorObject::invalid_params(fault.to_string()))
}

fn encode(result: &impl Serialize) -> Result<RawObject, ErrorObject> {
    RawObject::new(result).map_err(|fault| ErrorObject::internal_error(fault.to_string()))
}

/// Cancels a task; returns the record, and whether it was not finished before.
async fn end(shared: &Shared, read: ReadRecord) -> Result<(TaskRecord, bool), ErrorObject> {
    let before = read.record.clone();
    let cancelled = write::apply(shared, read, None, |record, now| {
        record.cancel(now)?;
        Ok(Change::Write(QueueAction::Done))
    });
    match cancelled.await {
        Ok(read) => {
            shared.metrics.task_finished(TaskStatus::Cancelled);
            Ok((read.record, true))
        }
        Err(WriteError::Transition(_)) => Ok((before, false)),
        Err(WriteError::Lost) => Err(unknown()),
        Err(WriteError::Store(error)) => Err(refusal(&error)),
    }
}

/// Stores input responses, and queues the task again when none is missing any more. Those of a finished task are ignored.
// TK-24, TK-25
async fn answer(shared: &Shared, read: ReadRecord, responses: &InputResponses) -> Result<(), ErrorObject> {
    store_input(shared, read, |record, now| record.respond(now, responses)).await
}

/// Stores that a client refused an input request, and queues the task again when no response is missing any more.
async fn refuse(shared: &Shared, read: ReadRecord, wire_key: &str, error: &ErrorObject) -> Result<(), ErrorObject> {
    store_input(shared, read, |record, now| record.refuse(now, wire_key, error)).await
}

async fn store_input(
    shared: &Shared,
    read: ReadRecord,
    change: impl Fn(&mut TaskRecord, u64) -> Result<ResponseOutcome, TransitionError>,
) -> Result<(), ErrorObject> {
    let answered = write::apply(shared, read, None, |record, now| {
        Ok(match change(record, now)? {
            ResponseOutcome::Ignored => Change::None,
            ResponseOutcome::Partial => Change::Write(QueueAction::Keep),
            ResponseOutcome::Ready => Change::Write(QueueAction::Enqueue),
        })
    });
    match answered.await {
        Ok(_) | Err(WriteError::Transition(TransitionError::Finished(_))) => Ok(()),
        Err(WriteError::Lost) => Err(unknown()),
        Err(WriteError::Transition(error)) => Err(ErrorObject::internal_error(error.to_string())),
        Err(WriteError::Store(error)) => Err(refusal(&error)),
    }
}

/// Checks that responses have the types of their requests, of which unknown ones are ignored.
fn check_responses(record: &TaskRecord, responses: &InputResponses) -> Result<(), ErrorObject> {
    for (wire_key, open) in record.journal().open() {
        let Some(response) = responses.get(wire_key) else { continue };
        let fault = match &open.request {
            InputRequest::Elicit(_) => response.decode::<mcp_types::ElicitResult>().err(),
            InputRequest::CreateMessage(_) => response.decode::<mcp_types::CreateMessageResult>().err(),
            InputRequest::ListRoots(_) => response.decode::<mcp_types::ListRootsResult>().err(),
            InputRequest::Unknown(_) | _ => None,
        };
        if let Some(fault) = fault {
            return Err(ErrorObject::invalid_params(format!("`inputResponses.{wire_key}`: {fault}")));
        }
    }
    Ok(())
}

/// The milliseconds of a duration, as the protocol has them.
fn milliseconds(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
