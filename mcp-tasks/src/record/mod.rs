//! The record of a task, and its transitions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_types::{ErrorObject, InputRequest, InputResponses, RawJson, RawObject, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{StoredTask, TaskCall, TaskId, TaskJournal, TaskLimits, TaskOwner, TaskPart, TaskStoreError};

/// The record of a task.
///
/// Its methods are the transitions of a task. They take the current time in milliseconds since the Unix epoch, and change
/// only this copy: [`encode`](Self::encode) it and [replace](crate::TaskStore::replace) the one in the store, or start
/// again with the record of a conflict. A task that is finished does not change any more.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The id.
    pub id: TaskId,
    /// The owner; `None` for anonymous callers.
    pub owner: Option<TaskOwner>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The call that the task runs. When the task is finished, it has no parameters and credentials any more.
    pub call: TaskCall,
    /// When the task was created, in milliseconds since the Unix epoch.
    pub created: u64,
    /// When the task expires.
    pub expires: u64,
    /// The suggested interval between two polls.
    pub poll_interval: Option<Duration>,
    updated: u64,
    status: TaskStatus,
    message: Option<String>,
    journal: TaskJournal,
    outcome: Option<TaskOutcome>,
}

/// The result or the error of the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a response has one of both")]
pub enum TaskOutcome {
    /// The result.
    Result(RawObject),
    /// The error.
    Error(ErrorObject),
}

/// Why a transition is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransitionError {
    /// The task is finished.
    #[error("the task is {}", .0.as_str())]
    Finished(TaskStatus),
    /// Two input requests of one round have the same key.
    #[error("two different input requests have the key `{0}`: use a different key for each")]
    DuplicateKey(String),
    /// The step has a result already.
    #[error("the step `{0}` was completed before: use a different key for each")]
    StepExists(String),
}

/// What the responses of a client have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other outcomes")]
pub enum ResponseOutcome {
    /// None of them is a response to a pending input request.
    Ignored,
    /// Other input requests are still pending.
    Partial,
    /// No input request is pending any more: the task can go on.
    Ready,
}

impl TaskRecord {
    /// Creates the record of a task that is `working`.
    #[must_use]
    pub fn new(id: TaskId, tool: impl Into<Arc<str>>, call: TaskCall, now: u64, time_to_live: Duration) -> Self {
        let time_to_live = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
        Self {
            id,
            owner: None,
            tool: tool.into(),
            call,
            created: now,
            expires: now.saturating_add(time_to_live),
            poll_interval: None,
            updated: now,
            status: TaskStatus::Working,
            message: None,
            journal: TaskJournal::default(),
            outcome: None,
        }
    }

    /// Sets the owner.
    #[must_use]
    pub fn owner(self, owner: Option<TaskOwner>) -> Self {
        Self { owner, ..self }
    }

    /// Sets the suggested interval between two polls.
    #[must_use]
    pub fn poll_interval(self, poll_interval: Duration) -> Self {
        Self { poll_interval: Some(poll_interval), ..self }
    }

    /// Sets the journal of a request that becomes a task.
    #[must_use]
    pub fn continuing(self, journal: TaskJournal) -> Self {
        Self { journal, ..self }
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> TaskStatus {
        self.status
    }

    /// Returns whether the status is final.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.status {
            TaskStatus::Working | TaskStatus::InputRequired => false,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled => true,
        }
    }

    /// Returns the message about the status.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Returns when the task last changed, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn updated(&self) -> u64 {
        self.updated
    }

    /// Returns the time to live from the creation on.
    #[must_use]
    pub fn time_to_live(&self) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(self.created))
    }

    /// Returns the steps and input requests of the task so far. It is empty when the task is finished.
    #[must_use]
    pub fn journal(&self) -> &TaskJournal {
        &self.journal
    }

    /// Returns the result or the error of a task that is finished and was not cancelled.
    #[must_use]
    pub fn outcome(&self) -> Option<&TaskOutcome> {
        self.outcome.as_ref()
    }
}

/// Transitions.
impl TaskRecord {
    /// Sets the message about the status, of which the first kilobyte is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    pub fn set_message(&mut self, now: u64, message: &str) -> Result<(), TransitionError> {
        self.change(now)?;
        self.message = Some(shortened(message));
        Ok(())
    }

    /// Records the result of a step.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished, or if the step has a result.
    pub fn complete_step(&mut self, now: u64, key: &str, result: RawJson) -> Result<(), TransitionError> {
        self.change(now)?;
        if self.journal.complete_step(key, result) { Ok(()) } else { Err(TransitionError::StepExists(key.to_owned())) }
    }

    /// Makes an input request, while the handler waits for its response and possibly for others, and returns the key that
    /// the client knows it by. The status becomes `input_required`.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    pub fn request_input(&mut self, now: u64, key: &str, request: InputRequest) -> Result<String, TransitionError> {
        self.change(now)?;
        self.status = TaskStatus::InputRequired;
        Ok(self.journal.ask(key, request))
    }

    /// Ends a run with all input requests that the handler waits for, and its state if it has one: the handler runs again
    /// from its beginning when all of them have a response. Pending requests that are not among them are withdrawn.
    ///
    /// Returns whether one is pending, and the status is `input_required`. Otherwise the task can go on.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished, or if two different requests have the same key.
    pub fn park(
        &mut self,
        now: u64,
        questions: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> Result<bool, TransitionError> {
        self.change(now)?;
        for (index, (key, request)) in questions.iter().enumerate() {
            let mut others = questions.iter().take(index);
            if others.any(|(other_key, other)| other_key == key && other != request) {
                return Err(TransitionError::DuplicateKey(key.clone()));
            }
        }
        self.journal.begin_round(questions, state);
        let is_waiting = self.journal.is_waiting();
        self.status = if is_waiting { TaskStatus::InputRequired } else { TaskStatus::Working };
        Ok(is_waiting)
    }

    /// Records the responses of a client to pending input requests. Other responses are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    // TK-25
    pub fn respond(&mut self, now: u64, responses: &InputResponses) -> Result<ResponseOutcome, TransitionError> {
        self.check_unfinished()?;
        let mut count = 0;
        for (wire_key, response) in responses.iter() {
            count += usize::from(self.journal.respond(wire_key, response.clone()));
        }
        if count == 0 {
            return Ok(ResponseOutcome::Ignored);
        }
        self.change(now)?;
        Ok(self.go_on_if_ready())
    }

    /// Sets the status when no input request is pending any more.
    fn go_on_if_ready(&mut self) -> ResponseOutcome {
        if self.journal.is_waiting() {
            return ResponseOutcome::Partial;
        }
        self.status = TaskStatus::Working;
        ResponseOutcome::Ready
    }

    /// Records the error of a client that refused a pending input request, of which the handler learns instead of a response.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    pub fn refuse(
        &mut self,
        now: u64,
        wire_key: &str,
        error: &ErrorObject,
    ) -> Result<ResponseOutcome, TransitionError> {
        self.check_unfinished()?;
        // Errors of clients do not fill journals.
        let error = ErrorObject::new(error.code, shortened(&error.message));
        if !self.journal.refuse(wire_key, error) {
            return Ok(ResponseOutcome::Ignored);
        }
        self.change(now)?;
        Ok(self.go_on_if_ready())
    }

    /// Completes the task with a result.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    pub fn complete(&mut self, now: u64, result: RawObject) -> Result<(), TransitionError> {
        self.finish(now, TaskStatus::Completed, Some(TaskOutcome::Result(result)))
    }

    /// Lets the task fail: with an error, or in 2025-11-25 with a tool result that has `isError`. The message becomes that
    /// of the error, if it is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    // TK-15, TK-16, B-91
    pub fn fail(&mut self, now: u64, outcome: TaskOutcome) -> Result<(), TransitionError> {
        self.check_unfinished()?;
        if let TaskOutcome::Error(error) = &outcome {
            self.message = Some(shortened(&error.message));
        }
        self.finish(now, TaskStatus::Failed, Some(outcome))
    }

    /// Cancels the task.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is finished.
    pub fn cancel(&mut self, now: u64) -> Result<(), TransitionError> {
        self.finish(now, TaskStatus::Cancelled, None)
    }

    fn finish(&mut self, now: u64, status: TaskStatus, outcome: Option<TaskOutcome>) -> Result<(), TransitionError> {
        self.change(now)?;
        self.status = status;
        self.outcome = outcome;
        // Nothing runs any more, and a result is kept for a long time.
        self.journal = TaskJournal::default();
        self.call.finish();
        Ok(())
    }

    /// Notes a change. The clocks of instances differ, and time does not go back for a client.
    fn change(&mut self, now: u64) -> Result<(), TransitionError> {
        self.check_unfinished()?;
        self.updated = self.updated.max(now);
        Ok(())
    }

    fn check_unfinished(&self) -> Result<(), TransitionError> {
        if self.is_finished() { Err(TransitionError::Finished(self.status)) } else { Ok(()) }
    }
}

/// The part of a record that is opaque to a store.
#[derive(Serialize, Deserialize)]
struct Content {
    format: u32,
    created: u64,
    updated: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    call: Box<RawValue>,
    journal: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Box<RawValue>>,
}

/// The only format that this version of the crate reads and writes.
const FORMAT: u32 = 1;

/// Encoding.
impl TaskRecord {
    /// Encodes the record for a store.
    ///
    /// # Errors
    ///
    /// Returns an error if a part is larger than its limit.
    pub fn encode(&self, limits: &TaskLimits) -> Result<StoredTask, TaskStoreError> {
        let content = Content {
            format: FORMAT,
            created: self.created,
            updated: self.updated,
            poll_interval_ms: self.poll_interval.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            status: self.status,
            message: self.message.clone(),
            call: part(TaskPart::Call, &self.call, limits.max_call_bytes)?,
            journal: part(TaskPart::Journal, &self.journal, limits.max_journal_bytes)?,
            outcome: match &self.outcome {
                Some(outcome) => Some(part(TaskPart::Outcome, outcome, limits.max_outcome_bytes)?),
                None => None,
            },
        };
        let content = serde_json::to_vec(&content).map_err(not_serializable)?;
        Ok(StoredTask {
            owner: self.owner,
            tool: Arc::clone(&self.tool),
            expires: self.expires,
            is_finished: self.is_finished(),
            content: Bytes::from(content),
        })
    }

    /// Decodes the record of a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the data is not a valid record, or has another format.
    pub fn decode(id: TaskId, stored: &StoredTask) -> Result<Self, TaskStoreError> {
        let invalid =
            |error: serde_json::Error| TaskStoreError::Invalid(format!("a task that cannot be decoded: {error}"));
        let content: Content = serde_json::from_slice(&stored.content).map_err(|error| {
            // A record of another format has its own error.
            match serde_json::from_slice::<Format>(&stored.content) {
                Ok(Format { format }) if format != FORMAT => other_format(format),
                _ => invalid(error),
            }
        })?;
        if content.format != FORMAT {
            return Err(other_format(content.format));
        }
        let record = Self {
            id,
            owner: stored.owner,
            tool: Arc::clone(&stored.tool),
            call: serde_json::from_str(content.call.get()).map_err(invalid)?,
            created: content.created,
            expires: stored.expires,
            poll_interval: content.poll_interval_ms.map(Duration::from_millis),
            updated: content.updated,
            status: content.status,
            message: content.message,
            journal: serde_json::from_str(content.journal.get()).map_err(invalid)?,
            outcome: content.outcome.map(|text| serde_json::from_str(text.get())).transpose().map_err(invalid)?,
        };
        if record.is_finished() != stored.is_finished {
            return Err(TaskStoreError::Invalid("a task whose status does not match".to_owned()));
        }
        Ok(record)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

fn other_format(format: u32) -> TaskStoreError {
    TaskStoreError::Invalid(format!("a task of format {format}, and this version reads format {FORMAT}"))
}

fn part(part: TaskPart, value: &impl Serialize, max: usize) -> Result<Box<RawValue>, TaskStoreError> {
    let text = to_raw_value(value).map_err(not_serializable)?;
    let bytes = text.get().len();
    if bytes > max { Err(TaskStoreError::TooLarge { part, bytes, max }) } else { Ok(text) }
}

fn not_serializable(error: serde_json::Error) -> TaskStoreError {
    TaskStoreError::Failed(format!("the task cannot be written: {error}"))
}

/// The beginning of a message.
fn shortened(message: &str) -> String {
    let end = (0..=message.len().min(MAX_MESSAGE_BYTES)).rev().find(|end| message.is_char_boundary(*end));
    message[..end.unwrap_or_default()].to_owned()
}

const MAX_MESSAGE_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
