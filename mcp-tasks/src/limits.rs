//! The limits of a store.

use std::fmt;

/// The limits of a store of tasks. When one is reached, no further tasks are created until others finish, or expire; none
/// is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    /// The maximum number of tasks that are not finished. Defaults to 10,000.
    pub max_unfinished: usize,
    /// The maximum number of tasks of one tool that are not finished. Defaults to 5,000.
    pub max_unfinished_per_tool: usize,
    /// The maximum number of tasks of one owner that are not finished. Defaults to 50, which is half of what a process runs at a
    /// time. Anonymous callers share the other limits.
    pub max_unfinished_per_owner: usize,
    /// The maximum number of tasks, with those that are finished and have not expired yet. Defaults to 50,000.
    pub max_kept: usize,
    /// The maximum number of tasks of one owner, with those that are finished and have not expired yet. Defaults to 1,000.
    pub max_kept_per_owner: usize,
    /// The maximum size of all records in bytes. Defaults to 256 MiB.
    pub max_bytes: usize,
    /// The maximum size of the records of one owner in bytes. Defaults to 64 MiB.
    pub max_bytes_per_owner: usize,
    /// The maximum size in bytes of a call: its parameters, and what is known of its client. Defaults to 1 MiB.
    pub max_call_bytes: usize,
    /// The maximum size in bytes of a journal: results of steps, input requests and their responses. Defaults to 1 MiB.
    pub max_journal_bytes: usize,
    /// The maximum size in bytes of a result or an error. Defaults to 4 MiB.
    pub max_outcome_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            max_unfinished: 10_000,
            max_unfinished_per_tool: 5_000,
            max_unfinished_per_owner: 50,
            max_kept: 50_000,
            max_kept_per_owner: 1_000,
            max_bytes: 256 * 1024 * 1024,
            max_bytes_per_owner: 64 * 1024 * 1024,
            max_call_bytes: 1024 * 1024,
            max_journal_bytes: 1024 * 1024,
            max_outcome_bytes: 4 * 1024 * 1024,
        }
    }
}

impl TaskLimits {
    /// The bytes by which a record may exceed the limits of all records, and of those of an owner, with the write that finishes the
    /// task: what does not fit fails the task, which has to be stored.
    pub const FINAL_BYTES: usize = 4096;

    /// Sets the maximum number of tasks that are not finished.
    #[must_use]
    pub fn max_unfinished(self, max_unfinished: usize) -> Self {
        Self { max_unfinished, ..self }
    }

    /// Sets the maximum number of tasks of one tool that are not finished.
    #[must_use]
    pub fn max_unfinished_per_tool(self, max_unfinished_per_tool: usize) -> Self {
        Self { max_unfinished_per_tool, ..self }
    }

    /// Sets the maximum number of tasks of one owner that are not finished.
    #[must_use]
    pub fn max_unfinished_per_owner(self, max_unfinished_per_owner: usize) -> Self {
        Self { max_unfinished_per_owner, ..self }
    }

    /// Sets the maximum number of tasks, with those that are finished.
    #[must_use]
    pub fn max_kept(self, max_kept: usize) -> Self {
        Self { max_kept, ..self }
    }

    /// Sets the maximum number of tasks of one owner, with those that are finished.
    #[must_use]
    pub fn max_kept_per_owner(self, max_kept_per_owner: usize) -> Self {
        Self { max_kept_per_owner, ..self }
    }

    /// Sets the maximum size of all records in bytes.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Sets the maximum size of the records of one owner in bytes.
    #[must_use]
    pub fn max_bytes_per_owner(self, max_bytes_per_owner: usize) -> Self {
        Self { max_bytes_per_owner, ..self }
    }

    /// Sets the maximum size of a call in bytes.
    #[must_use]
    pub fn max_call_bytes(self, max_call_bytes: usize) -> Self {
        Self { max_call_bytes, ..self }
    }

    /// Sets the maximum size of a journal in bytes.
    #[must_use]
    pub fn max_journal_bytes(self, max_journal_bytes: usize) -> Self {
        Self { max_journal_bytes, ..self }
    }

    /// Sets the maximum size of a result or an error in bytes.
    #[must_use]
    pub fn max_outcome_bytes(self, max_outcome_bytes: usize) -> Self {
        Self { max_outcome_bytes, ..self }
    }

    /// Returns the maximum size of the content of a record, which follows from those of its parts.
    #[must_use]
    pub fn max_record_bytes(&self) -> usize {
        let parts = [self.max_call_bytes, self.max_journal_bytes, self.max_outcome_bytes, REST_BYTES];
        parts.into_iter().fold(0, usize::saturating_add)
    }

    /// Returns the value of a limit on the number of tasks or on the bytes of all of them.
    #[must_use]
    pub fn max(&self, limit: TaskLimit) -> usize {
        match limit {
            TaskLimit::Unfinished => self.max_unfinished,
            TaskLimit::UnfinishedPerTool => self.max_unfinished_per_tool,
            TaskLimit::UnfinishedPerOwner => self.max_unfinished_per_owner,
            TaskLimit::Kept => self.max_kept,
            TaskLimit::KeptPerOwner => self.max_kept_per_owner,
            TaskLimit::Bytes => self.max_bytes,
            TaskLimit::BytesPerOwner => self.max_bytes_per_owner,
        }
    }
}

/// What a record has beside its parts: times, the status and its message.
const REST_BYTES: usize = 16 * 1024;

/// A limit on the number of tasks, or on the bytes of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskLimit {
    /// [`TaskLimits::max_unfinished`].
    Unfinished,
    /// [`TaskLimits::max_unfinished_per_tool`].
    UnfinishedPerTool,
    /// [`TaskLimits::max_unfinished_per_owner`].
    UnfinishedPerOwner,
    /// [`TaskLimits::max_kept`].
    Kept,
    /// [`TaskLimits::max_kept_per_owner`].
    KeptPerOwner,
    /// [`TaskLimits::max_bytes`].
    Bytes,
    /// [`TaskLimits::max_bytes_per_owner`].
    BytesPerOwner,
}

impl fmt::Display for TaskLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "max_unfinished",
            Self::UnfinishedPerTool => "max_unfinished_per_tool",
            Self::UnfinishedPerOwner => "max_unfinished_per_owner",
            Self::Kept => "max_kept",
            Self::KeptPerOwner => "max_kept_per_owner",
            Self::Bytes => "max_bytes",
            Self::BytesPerOwner => "max_bytes_per_owner",
        })
    }
}

/// A part of a record whose size is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskPart {
    /// The call: [`TaskLimits::max_call_bytes`].
    Call,
    /// The journal: [`TaskLimits::max_journal_bytes`].
    Journal,
    /// The result or the error: [`TaskLimits::max_outcome_bytes`].
    Outcome,
    /// All of it: [`TaskLimits::max_record_bytes`].
    Record,
}

impl fmt::Display for TaskPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "call",
            Self::Journal => "journal",
            Self::Outcome => "outcome",
            Self::Record => "record",
        })
    }
}
