//! The tasks extension, `io.modelcontextprotocol/tasks`: requests whose result is fetched later.
//!
//! If the client declared the extension, a server may respond to `tools/call` with a [`CreateTaskResult`]. The client then
//! polls with `tasks/get`, responds to input requests with `tasks/update`, and may cancel the task with `tasks/cancel`.
//! Since 2026-07-28. The experimental tasks of 2025-11-25 have a different wire format, see
//! [`core_tasks`](crate::core_tasks).

pub use crate::TaskStatus;
pub use crate::generated::tasks::*;
use crate::{EmptyResult, RawJson, ResultType, SubscriptionFilter};

/// The identifier of the extension in `extensions` of capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Result of `tasks/update`: the input responses were received and may take effect later.
pub type UpdateTaskResult = EmptyResult;

/// Result of `tasks/cancel`: the cancellation was received; the task may still complete or fail.
pub type CancelTaskResult = EmptyResult;

/// The member of [`SubscriptionFilter`] with the ids of tasks.
const TASK_IDS: &str = "taskIds";

/// Moves the members that all task types share.
macro_rules! task_members {
    ($shape:ident { $task:ident, $($member:ident: $value:expr),* $(,)? }) => {
        $shape {
            task_id: $task.task_id,
            status: $task.status,
            status_message: $task.status_message,
            created_at: $task.created_at,
            last_updated_at: $task.last_updated_at,
            ttl_ms: $task.ttl_ms,
            poll_interval_ms: $task.poll_interval_ms,
            extra: $task.extra,
            $($member: $value,)*
        }
    };
}

impl From<Task> for CreateTaskResult {
    // TK-9
    fn from(task: Task) -> Self {
        task_members!(CreateTaskResult { task, result_type: Some(ResultType::TASK), meta: None })
    }
}

impl From<Task> for DetailedTask {
    fn from(task: Task) -> Self {
        task_members!(DetailedTask { task, input_requests: None, result: None, error: None })
    }
}

impl From<DetailedTask> for GetTaskResult {
    fn from(task: DetailedTask) -> Self {
        task_members!(GetTaskResult {
            task,
            result_type: None,
            input_requests: task.input_requests,
            result: task.result,
            error: task.error,
            meta: None,
        })
    }
}

impl From<DetailedTask> for TaskNotificationParams {
    fn from(task: DetailedTask) -> Self {
        task_members!(TaskNotificationParams {
            task,
            input_requests: task.input_requests,
            result: task.result,
            error: task.error,
            meta: None,
        })
    }
}

impl SubscriptionFilter {
    /// Returns the ids of the tasks that the filter selects, if any (extension `io.modelcontextprotocol/tasks`).
    ///
    /// # Errors
    ///
    /// Returns an error if `taskIds` is not a list of strings.
    pub fn decode_task_ids(&self) -> Result<Option<Vec<String>>, serde_json::Error> {
        self.extra.get(TASK_IDS).map(RawJson::decode).transpose()
    }

    /// Selects notifications of these tasks (extension `io.modelcontextprotocol/tasks`).
    #[must_use]
    pub fn task_ids(mut self, task_ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let task_ids: Vec<String> = task_ids.into_iter().map(Into::into).collect();
        self.extra.insert(TASK_IDS, RawJson::from(serde_json::Value::from(task_ids)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorObject;

    fn task(status: TaskStatus) -> Task {
        Task::new("t", status, "2026-08-01T00:00:00Z", "2026-08-01T00:00:00Z", None)
    }

    /// Flat, `ttlMs` always there, no old names.
    // covers: TK-10, TK-11
    #[test]
    fn a_created_task_is_flat() {
        let result = CreateTaskResult::from(task(TaskStatus::Working).poll_interval_ms(500));
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(
            text,
            r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-08-01T00:00:00Z","lastUpdatedAt":"2026-08-01T00:00:00Z","pollIntervalMs":500,"ttlMs":null}"#
        );
        assert_eq!(serde_json::from_str::<CreateTaskResult>(&text).unwrap(), result);
    }

    /// The result of the request comes as it is.
    // covers: TK-14, TK-15
    #[test]
    fn details_follow_the_status() {
        let failed = DetailedTask::from(task(TaskStatus::Failed)).error(ErrorObject::internal_error("it broke"));
        let text = serde_json::to_string(&GetTaskResult::from(failed)).unwrap();
        assert!(text.contains(r#""error":{"code":-32603,"message":"it broke"}"#), "{text}");
        let text = text.replace(r#""error":{"code":-32603,"message":"it broke"}"#, r#""result":{"z":1.50,"a":2}"#);
        let result: GetTaskResult = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
    }

    // covers: L-17
    #[test]
    fn a_filter_may_name_tasks() {
        let filter = SubscriptionFilter::default().tools_list_changed(true).task_ids(["a", "b"]);
        let text = serde_json::to_string(&filter).unwrap();
        assert_eq!(text, r#"{"toolsListChanged":true,"taskIds":["a","b"]}"#);
        let filter: SubscriptionFilter = serde_json::from_str(&text).unwrap();
        assert_eq!(filter.decode_task_ids().unwrap(), Some(vec!["a".to_owned(), "b".to_owned()]));
    }
}
