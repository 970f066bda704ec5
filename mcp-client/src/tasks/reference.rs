//! Tasks that outlive their client.

use std::collections::BTreeSet;
use std::fmt;

use mcp_types::{Revision, core_tasks};
use serde::{Deserialize, Serialize};

use super::state::{CreatedTask, TaskModel, TaskState, of_core};
use crate::detected_revision::{read_revision, write_revision};

/// What is needed to go on with a task, such as in another process: [`Client::resume_task`](crate::Client::resume_task).
///
/// It can be serialized. Keep it secret: with a server that does not authenticate its clients, the id of a task is all that is
/// needed for access to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskReference {
    /// The id of the task.
    pub id: String,
    /// The revision that the task was created with. Tasks of 2025-11-25 and of later revisions are different.
    #[serde(serialize_with = "write_revision", deserialize_with = "read_revision")]
    pub revision: Revision,
    /// The last known state.
    pub state: TaskState,
    /// The keys of the input requests that have a response.
    #[serde(default)]
    pub answered: BTreeSet<String>,
}

impl From<CreatedTask> for TaskReference {
    fn from(created: CreatedTask) -> Self {
        let CreatedTask { model, id, state } = created;
        Self { id, revision: model.revision(), state, answered: BTreeSet::new() }
    }
}

/// A task of the list of a server of 2025-11-25.
impl From<core_tasks::Task> for TaskReference {
    fn from(task: core_tasks::Task) -> Self {
        let (id, state) = of_core(task);
        Self { id, revision: TaskModel::Core.revision(), state, answered: BTreeSet::new() }
    }
}

impl fmt::Debug for TaskReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id may be a secret.
        f.debug_struct("TaskReference")
            .field("revision", &self.revision)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
