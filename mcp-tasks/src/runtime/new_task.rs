//! Whether a call becomes a task, and how.

use std::sync::Arc;

use mcp_server::tasks::{RoundJournal, TaskOptions, TaskSupport};
use mcp_server::{RequestContext, Response, ResponseFuture};
use mcp_types::tasks::EXTENSION;
use mcp_types::{ClientCapabilities, Era, ErrorObject, JsonObject, RawJson, RawObject, Revision, TaskMetadata};

use crate::runtime::write::ReadRecord;
use crate::runtime::{Shared, credentials, delayed};
use crate::wire::{core, extension};
use crate::{NewTask, TaskCall, TaskId, TaskJournal, TaskRecord, TaskStart, TaskStoreError, TaskTicket};

/// Decides about a call of a tool. Returns `None` if its handler is to be called as always.
// TK-3, TK-4, TK-7, TK-31, B-81..B-83
pub(crate) fn decide(shared: &Arc<Shared>, ctx: &RequestContext, options: &TaskOptions) -> Option<ResponseFuture> {
    let requested = match ctx.era() {
        Era::Modern => match (options.support(), declares_extension(ctx.capabilities())) {
            (TaskSupport::Never, _) | (TaskSupport::Allowed, false) => return None,
            (TaskSupport::Required, false) => return Some(refuse(missing_extension())),
            (TaskSupport::Allowed | TaskSupport::Required, true) => None,
        },
        Era::Legacy => {
            let augmented =
                Some(ctx.params().get("task")).filter(|_| ctx.revision() == Revision::V2025_11_25).flatten();
            match (options.support(), augmented) {
                (TaskSupport::Never | TaskSupport::Allowed, None) => return None,
                (TaskSupport::Required, None) => {
                    let why = "calls of this tool have to be tasks";
                    return Some(refuse(ErrorObject::method_not_found(why)));
                }
                (TaskSupport::Never, Some(_)) => {
                    let why = "calls of this tool cannot be tasks";
                    return Some(refuse(ErrorObject::method_not_found(why)));
                }
                (TaskSupport::Allowed | TaskSupport::Required, Some(task)) => {
                    match serde_json::from_str::<TaskMetadata>(task.get()) {
                        Ok(task) => task.ttl,
                        Err(fault) => {
                            return Some(refuse(ErrorObject::invalid_params(format!("`task`: {fault}"))));
                        }
                    }
                }
            }
        }
    };
    if !shared.start() {
        tracing::error!(target: "mcp", "tasks need a tokio runtime");
        return Some(refuse(ErrorObject::internal_error("the server cannot run tasks")));
    }
    if ctx.era() == Era::Modern
        && let Some(delay) = options.delay()
    {
        return Some(delayed::call(shared, ctx, options, delay));
    }
    let (shared, ctx, options) = (Arc::clone(shared), ctx.clone(), options.clone());
    Some(Box::pin(async move {
        let journal = RoundJournal::of(&ctx).await?;
        let record = record(&shared, &ctx, &options, requested, journal)?;
        let (read, _) = insert(&shared, record, TaskStart::Queued).await.map_err(|error| refusal(&error))?;
        created(&shared, &ctx, &read.record)
    }))
}

fn refuse(error: ErrorObject) -> ResponseFuture {
    Box::pin(std::future::ready(Err(error)))
}

pub(crate) fn declares_extension(capabilities: &ClientCapabilities) -> bool {
    capabilities.extensions.as_ref().is_some_and(|declared| declared.contains(EXTENSION))
}

pub(crate) fn missing_extension() -> ErrorObject {
    let mut required = ClientCapabilities::default();
    required.extensions.get_or_insert_default().insert(EXTENSION, RawObject::empty());
    ErrorObject::missing_required_client_capability(required)
}

/// The error of a call whose task cannot be stored.
pub(crate) fn refusal(error: &TaskStoreError) -> ErrorObject {
    match error {
        TaskStoreError::Full { .. } => {
            ErrorObject::internal_error(format!("no further tasks are accepted now: {error}"))
        }
        TaskStoreError::TooLarge { .. } => ErrorObject::invalid_params(error.to_string()),
        TaskStoreError::Invalid(_) | TaskStoreError::Failed(_) => {
            tracing::error!(target: "mcp", %error, "the store of tasks failed");
            ErrorObject::internal_error("the store of tasks failed")
        }
    }
}

/// The record of a new task.
pub(crate) fn record(
    shared: &Shared,
    ctx: &RequestContext,
    options: &TaskOptions,
    requested_ttl: Option<i64>,
    journal: RoundJournal,
) -> Result<TaskRecord, ErrorObject> {
    let id = TaskId::random().map_err(|error| ErrorObject::internal_error(error.to_string()))?;
    let tool = ctx.params().get("name").and_then(|name| serde_json::from_str::<String>(name.get()).ok());
    let mut call = TaskCall::new(ctx.revision(), stored_params(ctx)?);
    call.client_capabilities = ctx.capabilities().clone();
    call.client_info = ctx.client_info().cloned();
    call.principal = ctx.principal().cloned();
    call.auth = ctx.auth_info().and_then(|auth| credentials::store(&auth));
    call.is_restartable = options.is_restartable();
    call.has_back_channel = !ctx.is_stateless();
    let ttl = shared.settings.time_to_live(requested_ttl, options.kept_for());
    let RoundJournal { journal, input_responses, request_state, .. } = journal;
    let journal = TaskJournal::from_rounds(&journal).retried(&input_responses, request_state);
    Ok(TaskRecord::new(id, tool.unwrap_or_default(), call, shared.now(), ttl)
        .owner(Shared::owner_of(ctx))
        .poll_interval(options.polled_every().unwrap_or(shared.settings.poll_interval))
        .continuing(journal))
}

/// The parameters, without what belongs to one round, and without the request for a task.
fn stored_params(ctx: &RequestContext) -> Result<RawObject, ErrorObject> {
    let members = ctx.params().members().filter(|(name, _)| !["inputResponses", "requestState", "task"].contains(name));
    let mut params = JsonObject::default();
    for (name, value) in members {
        let value = RawJson::parse(value.get()).map_err(|fault| ErrorObject::invalid_params(fault.to_string()))?;
        params.insert(name, value);
    }
    RawObject::new(&params).map_err(|fault| ErrorObject::invalid_params(fault.to_string()))
}

/// Stores a new task. Its id is told afterwards.
// TK-12
pub(crate) async fn insert(
    shared: &Shared,
    record: TaskRecord,
    start: TaskStart,
) -> Result<(ReadRecord, Option<TaskTicket>), TaskStoreError> {
    let inserted = async {
        let new = NewTask { id: record.id, task: record.encode(shared.store.limits())?, start };
        shared.store.insert(shared.now(), new).await
    };
    match inserted.await {
        Ok(inserted) => {
            shared.metrics.task_created();
            Ok((ReadRecord { record, version: inserted.version }, inserted.ticket))
        }
        Err(error) => {
            shared.metrics.task_refused(&error);
            Err(error)
        }
    }
}

/// The response that tells the id of a task.
pub(crate) fn created(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    record: &TaskRecord,
) -> Result<Response, ErrorObject> {
    let result = match ctx.era() {
        Era::Modern => RawObject::new(&extension::created(record)),
        Era::Legacy => {
            shared.listeners.add_session(shared.now(), record, ctx.connection());
            RawObject::new(&core::created(record))
        }
    };
    let result = result.map_err(|fault| ErrorObject::internal_error(fault.to_string()))?;
    Ok(Response::Other(result))
}
