//! What the context of a task uses instead of a client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use mcp_kernel::CallError;
use mcp_server::tasks::TaskPort;
use mcp_server::{AskError, BoxFuture, Progress};
use mcp_types::{ErrorObject, InputRequest, RawJson, RawObject};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::runtime::Shared;
use crate::runtime::lease::{Lease, LeaseTime};
use crate::runtime::metrics::ActiveGuard;
use crate::runtime::write::{self, Backoff, Change, ReadRecord, WriteError};
use crate::{QueueAction, TaskCall, TaskJournal, TaskRecord, TaskStoreError, TaskTicket, TransitionError};

/// The state of one run of a task.
pub(crate) struct RunState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ticket: TaskTicket,
    pub(crate) lease: Lease,
    /// The call, without its parameters.
    pub(crate) call: TaskCall,
    /// The record as this run knows it. Locked while it is written, so that writes of one run do not compete.
    current: AsyncMutex<ReadRecord>,
    /// The journal of that record.
    journal: Mutex<TaskJournal>,
    control: Mutex<Control>,
    waiting: Mutex<Waiting>,
    /// Changes with the journal, and at the end of the run.
    refreshed: watch::Sender<bool>,
    /// The last status message that was not written yet.
    pub(crate) progress: watch::Sender<Option<String>>,
}

/// What a handler wants of its run.
#[derive(Default)]
struct Control {
    questions: Vec<(String, InputRequest)>,
    failed: Option<ErrorObject>,
    waker: Option<Waker>,
}

/// The input requests that a handler waits for in memory. However many there are, they count as one task.
#[derive(Default)]
struct Waiting {
    count: usize,
    metric: Option<ActiveGuard>,
}

/// An input request that a handler waits for in memory, until it is dropped.
struct WaitGuard<'a>(&'a RunState);

impl<'a> WaitGuard<'a> {
    fn new(state: &'a RunState) -> Self {
        let mut waiting = state.waiting();
        waiting.count += 1;
        waiting.metric.get_or_insert_with(|| state.shared.metrics.wait_for_input());
        drop(waiting);
        Self(state)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.count = waiting.count.saturating_sub(1);
        if waiting.count == 0 {
            waiting.metric = None;
        }
    }
}

/// How a run ends although its handler is pending.
pub(crate) enum EarlyEnd {
    Park(Vec<(String, InputRequest)>),
    Fail(ErrorObject),
}

impl RunState {
    pub(crate) fn new(shared: Arc<Shared>, ticket: TaskTicket, read: ReadRecord, asked: LeaseTime) -> Self {
        let mut call = read.record.call.clone();
        call.params = RawObject::empty();
        Self {
            shared,
            ticket,
            lease: Lease::new(asked),
            call,
            journal: Mutex::new(read.record.journal().clone()),
            current: AsyncMutex::new(read),
            control: Mutex::default(),
            waiting: Mutex::default(),
            refreshed: watch::Sender::new(false),
            progress: watch::Sender::new(None),
        }
    }

    /// Applies a transition to the record. An operation of the store that failed is repeated, for as long as the lease lasts.
    pub(crate) async fn update(
        &self,
        transition: impl Fn(&mut TaskRecord, u64) -> Result<Change, TransitionError>,
    ) -> Result<(), WriteError> {
        let mut current = self.current.lock().await;
        let mut backoff = Backoff::default();
        loop {
            match write::apply(&self.shared, current.clone(), Some(self.ticket), &transition).await {
                Ok(read) => {
                    self.note(&read);
                    *current = read;
                    return Ok(());
                }
                Err(WriteError::Store(TaskStoreError::Failed(reason))) => {
                    tracing::warn!(target: "mcp", reason, "a task cannot be written");
                    backoff.wait().await;
                    // It may have been written.
                    match write::load(&self.shared, self.ticket.id).await {
                        Ok(Some(read)) => *current = read,
                        Ok(None) => return Err(WriteError::Lost),
                        Err(_) => {}
                    }
                }
                Err(WriteError::Transition(TransitionError::Finished(_))) => return Err(WriteError::Lost),
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores the result of a step.
    pub(crate) async fn store_step(&self, key: &str, result: &RawJson) -> Result<(), WriteError> {
        let store = |record: &mut TaskRecord, now| {
            // A write that seemed to fail may have succeeded.
            if record.journal().step(key) == Some(result) {
                return Ok(Change::None);
            }
            record.complete_step(now, key, result.clone())?;
            Ok(Change::Write(QueueAction::Keep))
        };
        self.update(store).await
    }

    /// Reads the record again. Returns whether the run may go on.
    pub(crate) async fn refresh(&self) -> bool {
        let mut current = self.current.lock().await;
        match write::load(&self.shared, self.ticket.id).await {
            Ok(Some(read)) => {
                let is_open = !read.record.is_finished();
                self.note(&read);
                *current = read;
                is_open
            }
            Ok(None) => false,
            Err(error) => {
                // The lease ends the run, if the store stays away.
                tracing::warn!(target: "mcp", %error, "a task cannot be read");
                true
            }
        }
    }

    fn note(&self, read: &ReadRecord) {
        let mut journal = read.record.journal().clone();
        std::mem::swap(&mut *self.journal(), &mut journal);
        self.refreshed.send_modify(|_| ());
    }

    /// Ends the run for tasks of its handler that wait for input.
    pub(crate) fn end(&self) {
        self.refreshed.send_replace(true);
    }

    /// Returns how the run ends before its handler returns, if it does, and wakes the run when it does later.
    pub(crate) fn poll_early_end(&self, cx: &Context<'_>) -> Option<EarlyEnd> {
        let waker = cx.waker().clone();
        let mut control = self.control();
        if let Some(error) = control.failed.take() {
            return Some(EarlyEnd::Fail(error));
        }
        if !control.questions.is_empty() {
            return Some(EarlyEnd::Park(std::mem::take(&mut control.questions)));
        }
        let replaced = control.waker.replace(waker);
        drop(control);
        drop(replaced);
        None
    }

    fn wake(&self, change: impl FnOnce(&mut Control)) {
        let mut control = self.control();
        change(&mut control);
        let waker = control.waker.take();
        drop(control);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns how the client has responded to a request, if it has.
    fn answer(&self, key: &str, request: &InputRequest) -> Option<Result<RawObject, AskError>> {
        let journal = self.journal();
        let refusal = || {
            let error = journal.refusal(key, request)?;
            Some(Err(AskError::NoResponse(CallError::Rejected(error.clone()))))
        };
        journal.response(key, request).cloned().map(Ok).or_else(refusal)
    }

    pub(crate) fn journal(&self) -> MutexGuard<'_, TaskJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the task because something cannot be stored, with an error that says what.
    pub(crate) fn reject(&self, what: &str, key: &str, error: WriteError) {
        let reason = match error {
            // The run ends anyway.
            WriteError::Lost => return,
            WriteError::Transition(error) => error.to_string(),
            WriteError::Store(error) => error.to_string(),
        };
        tracing::error!(target: "mcp", key, reason, "a task fails");
        self.wake(|control| {
            let error = ErrorObject::internal_error(format!("the {what} `{key}` cannot be stored: {reason}"));
            control.failed.get_or_insert(error);
        });
    }

    /// Asks the store whether no other process has the task. If another one has, this waits for the end of the run.
    async fn confirm_lease(&self) -> Result<(), AskError> {
        let mut backoff = Backoff::default();
        loop {
            match self.lease.renew(&self.shared, self.ticket).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(self.ended().await),
                Err(error) => {
                    tracing::warn!(target: "mcp", %error, "a step of a task waits for the store");
                    backoff.wait().await;
                }
            }
        }
    }

    /// Waits for the end of the run.
    async fn ended(&self) -> AskError {
        let _ = self.refreshed.subscribe().wait_for(|is_ended| *is_ended).await;
        AskError::NoBackChannel("the run of the task has ended".into())
    }

    /// Makes a request while the handler waits in memory.
    async fn ask_and_wait(&self, key: &str, request: InputRequest) -> Result<RawObject, AskError> {
        let asked = self.update(|record, now| {
            let journal = record.journal();
            if journal.response(key, &request).is_some() || journal.refusal(key, &request).is_some() {
                return Ok(Change::None);
            }
            record.request_input(now, key, request.clone())?;
            Ok(Change::Write(QueueAction::Keep))
        });
        if let Err(error) = asked.await {
            self.reject("input request", key, error);
            return Err(self.ended().await);
        }
        let _waiting = WaitGuard::new(self);
        let mut refreshed = self.refreshed.subscribe();
        loop {
            let is_ended = *refreshed.borrow_and_update();
            if let Some(answer) = self.answer(key, &request) {
                return answer;
            }
            if is_ended || refreshed.changed().await.is_err() {
                return Err(AskError::NoBackChannel("the run of the task has ended".into()));
            }
        }
    }
}

/// The port of a run, for the context of its handler.
pub(crate) struct RunPort(pub(crate) Arc<RunState>);

impl TaskPort for RunPort {
    fn ask(&self, key: &str, request: InputRequest) -> BoxFuture<Result<RawObject, AskError>> {
        let state = Arc::clone(&self.0);
        if let Some(answer) = state.answer(key, &request) {
            return Box::pin(std::future::ready(answer));
        }
        let key = key.to_owned();
        if !state.call.is_restartable {
            return Box::pin(async move { state.ask_and_wait(&key, request).await });
        }
        Box::pin(async move {
            let mut is_duplicate = false;
            state.wake(|control| {
                let other =
                    control.questions.iter().find(|(other, _)| *other == key).map(|(_, other)| other == &request);
                match other {
                    None => control.questions.push((key, request)),
                    Some(is_same) => is_duplicate = !is_same,
                }
            });
            if is_duplicate {
                let why = "two different input requests have the same key: use a different key for each";
                return Err(AskError::InvalidRequest(why.into()));
            }
            // The handler is dropped meanwhile, and runs again with the response.
            Err(state.ended().await)
        })
    }

    fn step(&self, key: &str) -> Option<RawJson> {
        self.0.journal().step(key).cloned()
    }

    fn begin_step(&self) -> Option<BoxFuture<Result<(), AskError>>> {
        if self.0.lease.is_certain(&self.0.shared) {
            return None;
        }
        let state = Arc::clone(&self.0);
        Some(Box::pin(async move { state.confirm_lease().await }))
    }

    fn complete_step(&self, key: &str, result: RawJson) -> BoxFuture<Result<(), AskError>> {
        let (state, key) = (Arc::clone(&self.0), key.to_owned());
        Box::pin(async move {
            if let Err(error) = state.store_step(&key, &result).await {
                state.reject("step", &key, error);
                return Err(state.ended().await);
            }
            Ok(())
        })
    }

    // TK-33
    fn progress(&self, progress: Progress) {
        let (value, total, message) = progress.into_parts();
        let value = total.map_or_else(|| value.to_string(), |total| format!("{value}/{total}"));
        let text = message.map_or_else(|| value.clone(), |message| format!("{message} ({value})"));
        self.0.progress.send_replace(Some(text));
    }

    fn fail(&self, error: ErrorObject) {
        self.0.wake(|control| {
            control.failed.get_or_insert(error);
        });
    }
}
