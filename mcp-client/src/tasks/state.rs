//! The state of a task.

use std::time::Duration;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{ErrorObject, InputRequests, RawObject, Revision, TaskStatus, core_tasks, tasks};
use serde::{Deserialize, Serialize};

use crate::call::telemetry::excerpt;
use crate::error::Error;

/// The state of a task, as the server last described it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskState {
    /// Whether the task is running, waits for input, or has ended.
    pub status: TaskStatus,
    /// What the server says about the status, such as the progress of the task.
    pub message: Option<String>,
    /// When the task was created, as an ISO 8601 time of the server's clock.
    pub created_at: String,
    /// When the task last changed, as an ISO 8601 time of the server's clock.
    pub updated_at: String,
    /// How long the server keeps the task, from its creation; `None` is without a limit.
    pub ttl: Option<Duration>,
    /// How often the server wants to be polled. The client keeps to it within its [`FollowLimits`](crate::FollowLimits).
    pub poll_interval: Option<Duration>,
}

impl TaskState {
    /// Returns whether the task has ended: it is completed, failed or cancelled.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self.status, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// The two models of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskModel {
    /// The tasks of 2025-11-25, which a client asks for.
    Core,
    /// The extension `io.modelcontextprotocol/tasks`, whose tasks a server creates as it likes.
    Extension,
}

impl TaskModel {
    /// Returns the model of a revision; `None` if it has no tasks.
    pub(crate) fn of(revision: Revision) -> Option<Self> {
        match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => None,
            Revision::V2025_11_25 => Some(Self::Core),
            Revision::V2026_07_28 | _ => Some(Self::Extension),
        }
    }

    pub(super) fn revision(self) -> Revision {
        match self {
            Self::Core => Revision::V2025_11_25,
            Self::Extension => Revision::LATEST,
        }
    }
}

/// A task that a server has created instead of responding with a result.
#[derive(Debug)]
pub(crate) struct CreatedTask {
    pub(super) model: TaskModel,
    pub(super) id: String,
    pub(super) state: TaskState,
}

/// Maximum length of the id of a task, which becomes a header, and of the key of an input request, which is kept.
pub(super) const MAX_NAME_BYTES: usize = 1024;

impl CreatedTask {
    /// Reads the response to a call.
    // TK-10, B-82
    pub(crate) fn read(model: TaskModel, result: &PayloadBuf) -> Result<Self, Error> {
        let (id, state) = match model {
            TaskModel::Extension => {
                let created: tasks::CreateTaskResult = result.decode().map_err(invalid)?;
                let state = TaskState {
                    status: created.status,
                    message: created.status_message,
                    created_at: created.created_at,
                    updated_at: created.last_updated_at,
                    ttl: created.ttl_ms.map(milliseconds),
                    poll_interval: created.poll_interval_ms.map(milliseconds),
                };
                (created.task_id, state)
            }
            TaskModel::Core => {
                let created: core_tasks::CreateTaskResult = result.decode().map_err(invalid)?;
                of_core(created.task)
            }
        };
        if id.is_empty() || id.len() > MAX_NAME_BYTES {
            return Err(Error::InvalidResponse(format!("the id of a task has {} bytes", id.len())));
        }
        Ok(Self { model, id, state })
    }
}

/// What a server says of a task: its state, and what belongs to it in the extension.
pub(super) struct Snapshot {
    pub(super) state: TaskState,
    pub(super) input_requests: Option<InputRequests>,
    pub(super) result: Option<RawObject>,
    pub(super) error: Option<ErrorObject>,
}

impl Snapshot {
    /// Reads the response to `tasks/get`, or a notification with the same content.
    pub(super) fn read(model: TaskModel, id: &str, payload: &PayloadBuf) -> Result<Self, Error> {
        let (found, snapshot) = match model {
            TaskModel::Extension => {
                let task: tasks::DetailedTask = payload.decode().map_err(invalid)?;
                let state = TaskState {
                    status: task.status,
                    message: task.status_message,
                    created_at: task.created_at,
                    updated_at: task.last_updated_at,
                    ttl: task.ttl_ms.map(milliseconds),
                    poll_interval: task.poll_interval_ms.map(milliseconds),
                };
                let (input_requests, result, error) = (task.input_requests, task.result, task.error);
                (task.task_id, Self { state, input_requests, result, error })
            }
            TaskModel::Core => {
                let (id, state) = of_core(payload.decode().map_err(invalid)?);
                (id, Self { state, input_requests: None, result: None, error: None })
            }
        };
        check_id(id, &found)?;
        Ok(snapshot)
    }
}

/// Checks that a response is about the task that was asked for.
pub(super) fn check_id(id: &str, found: &str) -> Result<(), Error> {
    if id == found {
        return Ok(());
    }
    Err(Error::InvalidResponse(format!("it is about another task, `{}`", excerpt(found))))
}

pub(super) fn of_core(task: core_tasks::Task) -> (String, TaskState) {
    let state = TaskState {
        status: task.status,
        message: task.status_message,
        created_at: task.created_at,
        updated_at: task.last_updated_at,
        ttl: task.ttl.map(milliseconds),
        poll_interval: task.poll_interval.map(milliseconds),
    };
    (task.task_id, state)
}

fn milliseconds(number: i64) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or_default())
}

pub(super) fn invalid(fault: impl std::fmt::Display) -> Error {
    Error::InvalidResponse(fault.to_string())
}
