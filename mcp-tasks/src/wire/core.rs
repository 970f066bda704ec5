//! The tasks of 2025-11-25.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use mcp_kernel::CallError;
use mcp_server::{AskError, RequestContext};
use mcp_types::core_tasks::{
    CancelTaskRequestParams, CancelTaskResult, CreateTaskResult, GetTaskPayloadRequestParams, GetTaskPayloadResult,
    GetTaskRequestParams, GetTaskResult, ListTasksResult, Task, TaskStatusNotificationParams,
};
use mcp_types::{
    CallToolResult, ErrorObject, InputResponses, PaginatedRequestParams, RawObject, ResultMeta, TaskStatus,
};

use super::timestamp::timestamp;
use super::{answer, check_responses, decode, encode, end, load, milliseconds, refuse};
use crate::runtime::Shared;
use crate::runtime::new_task::refusal;
use crate::{TaskCursor, TaskOutcome, TaskRecord};

/// The result of a call that became a task.
// B-82, B-86
pub(crate) fn created(record: &TaskRecord) -> CreateTaskResult {
    CreateTaskResult::new(task(record))
}

/// The status of a task, for the session that created it. Its id is a parameter, so that there is no `related-task`.
pub(crate) fn notification(record: &TaskRecord) -> TaskStatusNotificationParams {
    let task = task(record);
    let mut params =
        TaskStatusNotificationParams::new(task.task_id, task.status, task.created_at, task.last_updated_at, task.ttl);
    (params.poll_interval, params.status_message) = (task.poll_interval, task.status_message);
    params
}

/// `tasks/get`.
pub(super) async fn get(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let GetTaskRequestParams { task_id, .. } = decode(params)?;
    let task = task(&load(shared, ctx, &task_id).await?.record);
    let mut result = GetTaskResult::new(task.task_id, task.status, task.created_at, task.last_updated_at, task.ttl);
    (result.poll_interval, result.status_message) = (task.poll_interval, task.status_message);
    encode(&result)
}

/// `tasks/cancel`.
// B-88
pub(super) async fn cancel(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let CancelTaskRequestParams { task_id, .. } = decode(params)?;
    let (record, is_cancelled) = end(shared, load(shared, ctx, &task_id).await?).await?;
    if !is_cancelled {
        return Err(ErrorObject::invalid_params("the task is finished, and cannot be cancelled"));
    }
    let task = task(&record);
    let mut result = CancelTaskResult::new(task.task_id, task.status, task.created_at, task.last_updated_at, task.ttl);
    (result.poll_interval, result.status_message) = (task.poll_interval, task.status_message);
    encode(&result)
}

/// `tasks/list`, for callers whose tasks can be told from those of others.
// B-89, B-90
pub(super) async fn list(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let Some(owner) = Shared::owner_of(ctx) else {
        return Err(ErrorObject::method_not_found("tasks are listed for authenticated users only"));
    };
    let PaginatedRequestParams { cursor, .. } = decode(params)?;
    let invalid = |_| ErrorObject::invalid_params("invalid cursor");
    let after = cursor.map(|cursor| cursor.parse().map(TaskCursor)).transpose().map_err(invalid)?;
    let page = shared.store.list(shared.now(), owner, after, shared.settings.page_size).await;
    let page = page.map_err(|error| refusal(&error))?;
    let mut tasks = Vec::with_capacity(page.tasks.len());
    for (id, stored) in &page.tasks {
        match TaskRecord::decode(*id, &stored.task) {
            Ok(record) => tasks.push(task(&record)),
            // Another version of the server may be able to read it.
            Err(error) => tracing::warn!(target: "mcp", %error, "a task is left out of a list"),
        }
    }
    let mut result = ListTasksResult::new(tasks);
    result.next_cursor = page.next.map(|TaskCursor(position)| position.to_string());
    encode(&result)
}

/// `tasks/result`: waits for the end of the task, and sends its input requests to the client meanwhile.
// B-85, B-86
pub(super) async fn result(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    params: &RawObject,
) -> Result<RawObject, ErrorObject> {
    let GetTaskPayloadRequestParams { task_id, .. } = decode(params)?;
    let mut questions = Questions { ctx, task_id: &task_id, open: Vec::new() };
    let id = task_id.parse().ok();
    loop {
        // Before the record is read, so that no change is missed.
        let mut watch = id.map(|id| shared.hub.watch(id));
        let read = load(shared, ctx, &task_id).await?;
        if read.record.is_finished() {
            return outcome(&read.record, &task_id);
        }
        questions.update(&read.record);
        let answered = tokio::select! {
            answered = questions.next() => Some(answered),
            () = async { if let Some(watch) = &mut watch { watch.changed().await } } => None,
            // A task that expires is not announced.
            () = tokio::time::sleep(shared.settings.lease) => None,
        };
        if let Some((key, response)) = answered {
            match response {
                Ok(response) => {
                    let mut responses = InputResponses::new();
                    responses.insert(key, response);
                    check_responses(&read.record, &responses)?;
                    answer(shared, read, &responses).await?;
                }
                // The handler learns of it, as outside of a task.
                Err(AskError::NoResponse(CallError::Rejected(error))) => refuse(shared, read, &key, &error).await?,
                // A client that cannot answer may poll, and another one may answer instead.
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The input requests of a task that were sent to its client. Those that are dropped are cancelled.
struct Questions<'a> {
    ctx: &'a RequestContext,
    task_id: &'a str,
    open: Vec<(String, BoxQuestion<'a>)>,
}

type BoxQuestion<'a> = Pin<Box<dyn Future<Output = Result<RawObject, AskError>> + Send + 'a>>;

impl<'a> Questions<'a> {
    /// Sends the requests that are new, and withdraws those that have a response.
    fn update(&mut self, record: &TaskRecord) {
        self.open.retain(|(key, _)| record.journal().open().any(|(open, _)| open == key));
        for (key, question) in record.journal().open() {
            if !self.open.iter().any(|(open, _)| open == key) {
                let ctx: &'a RequestContext = self.ctx;
                let asked = ctx.forward(question.request.clone(), self.task_id);
                self.open.push((key.to_owned(), Box::pin(asked)));
            }
        }
    }

    /// Waits for the next response.
    async fn next(&mut self) -> (String, Result<RawObject, AskError>) {
        poll_fn(|cx| {
            for index in 0..self.open.len() {
                if let Poll::Ready(response) = self.open[index].1.as_mut().poll(cx) {
                    let (key, _) = self.open.swap_remove(index);
                    return Poll::Ready((key, response));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The result or the error of the call, as the call would have had it.
fn outcome(record: &TaskRecord, task_id: &str) -> Result<RawObject, ErrorObject> {
    match record.outcome() {
        Some(TaskOutcome::Result(result)) => {
            let mut result: GetTaskPayloadResult = decode(result)?;
            result.meta.get_or_insert_with(|| Box::new(ResultMeta::default())).set_related_task(task_id);
            encode(&result)
        }
        Some(TaskOutcome::Error(error)) => Err(error.clone()),
        None => Err(ErrorObject::invalid_request("the task was cancelled")),
    }
}

fn task(record: &TaskRecord) -> Task {
    let (created, updated) = (timestamp(record.created), timestamp(record.updated()));
    let ttl = Some(milliseconds(record.time_to_live()));
    let mut task = Task::new(record.id.to_string(), status(record), created, updated, ttl);
    task.status_message = record.message().map(str::to_owned);
    task.poll_interval = record.poll_interval.map(milliseconds);
    task
}

/// A task of the extension completes with a result also if the tool failed, which is a failure here.
// B-91
fn status(record: &TaskRecord) -> TaskStatus {
    let failed =
        |result: &RawObject| result.decode::<CallToolResult>().is_ok_and(|result| result.is_error == Some(true));
    match record.outcome() {
        Some(TaskOutcome::Result(result)) if failed(result) => TaskStatus::Failed,
        Some(_) | None => record.status(),
    }
}
