//! The extension `io.modelcontextprotocol/tasks`.

use std::sync::Arc;

use mcp_server::RequestContext;
use mcp_types::tasks::{
    CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskNotificationParams, TaskRequestParams,
    UpdateTaskRequestParams,
};
use mcp_types::{ErrorObject, RawObject, TaskStatus};

use super::timestamp::timestamp;
use super::{answer, check_responses, decode, encode, end, load, milliseconds, unknown};
use crate::runtime::Shared;
use crate::runtime::new_task::{declares_extension, missing_extension};
use crate::{TaskOutcome, TaskRecord};

/// The result of a call that became a task.
// TK-9..TK-11
pub(crate) fn created(record: &TaskRecord) -> CreateTaskResult {
    task(record).into()
}

/// The state of a task, as listeners get it.
pub(crate) fn notification(record: &TaskRecord) -> TaskNotificationParams {
    detailed(record).into()
}

/// `tasks/get`.
// TK-14
pub(super) async fn get(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let TaskRequestParams { task_id, .. } = decode(params)?;
    let read = load(shared, ctx, &task_id).await?;
    encode(&GetTaskResult::from(detailed(&read.record)))
}

/// `tasks/update`.
pub(super) async fn update(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let UpdateTaskRequestParams { task_id, input_responses, .. } = decode(params)?;
    let most = ctx.server().config().limits.max_input_responses;
    if input_responses.len() > most {
        let why = format!("`inputResponses`: more than {most} responses (`max_input_responses`)");
        return Err(ErrorObject::invalid_params(why));
    }
    let read = load(shared, ctx, &task_id).await?;
    check_responses(&read.record, &input_responses)?;
    answer(shared, read, &input_responses).await?;
    Ok(RawObject::empty())
}

/// `tasks/cancel`, which is acknowledged for finished tasks, too.
// TK-26, TK-27
pub(super) async fn cancel(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let TaskRequestParams { task_id, .. } = decode(params)?;
    let read = load(shared, ctx, &task_id).await?;
    end(shared, read).await?;
    Ok(RawObject::empty())
}

/// The tasks of the caller among those that it wants to listen to.
// TK-29, TK-35
pub(crate) async fn select(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    task_ids: Vec<String>,
) -> Result<Vec<String>, ErrorObject> {
    if !declares_extension(ctx.capabilities()) {
        return Err(missing_extension());
    }
    let mut selected = Vec::with_capacity(task_ids.len());
    for task_id in task_ids {
        if selected.contains(&task_id) {
            continue;
        }
        match load(shared, ctx, &task_id).await {
            Ok(_) => selected.push(task_id),
            Err(error) if error == unknown() => {}
            // The task may be there.
            Err(error) => return Err(error),
        }
    }
    Ok(selected)
}

fn task(record: &TaskRecord) -> Task {
    let (created, updated) = (timestamp(record.created), timestamp(record.updated()));
    let ttl = Some(milliseconds(record.time_to_live()));
    let mut task = Task::new(record.id.to_string(), status(record), created, updated, ttl);
    task.status_message = record.message().map(str::to_owned);
    task.poll_interval_ms = record.poll_interval.map(milliseconds);
    task
}

/// A task of 2025-11-25 fails with a result if the tool does, which is not a failure here.
// B-91, TK-15
fn status(record: &TaskRecord) -> TaskStatus {
    match record.outcome() {
        Some(TaskOutcome::Result(_)) => TaskStatus::Completed,
        Some(TaskOutcome::Error(_)) | None => record.status(),
    }
}

fn detailed(record: &TaskRecord) -> DetailedTask {
    let mut task = DetailedTask::from(task(record));
    if record.status() == TaskStatus::InputRequired {
        task.input_requests = Some(record.journal().input_requests());
    }
    match record.outcome() {
        Some(TaskOutcome::Result(result)) => task.result = Some(result.clone()),
        Some(TaskOutcome::Error(error)) => task.error = Some(error.clone()),
        None => {}
    }
    task
}
