//! Follows a task to its end.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use mcp_kernel::{CallOptions, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{ErrorCode, InputRequests, InputResponses, Revision, TaskStatus};

use super::budget::Budget;
use super::error::TaskError;
use super::followed::{Registration, related_task};
use super::limits::FollowLimits;
use super::reference::TaskReference;
use super::requests::TaskRequests;
use super::state::{MAX_NAME_BYTES, Snapshot, TaskModel, TaskState, check_id, invalid};
use super::watch::Watch;
use crate::client::Client;
use crate::context::{CallContext, MessageContext};
use crate::error::Error;
use crate::listen::{is_transient, jittered};
use crate::observed;
use crate::request_handlers::BoxFuture;
use crate::state::timers::Sleep;

/// Time between two polls if the server asks for none; it doubles while nothing changes, up to the maximum.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_OWN_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two polls while changes are reported, or the result is waited for, in case that gets lost.
const QUIET_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Delay after the first failure; it doubles with each further one, up to the maximum.
const INITIAL_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Follows a task: polls it, listens to its changes, and answers its input requests. Dropping it cancels the task, unless
/// that has ended or is kept.
///
/// No response and no change is lost if a future of it is dropped.
pub(super) struct Follower {
    requests: TaskRequests,
    revision: Revision,
    limits: FollowLimits,
    state: TaskState,
    /// The end of the task.
    outcome: Option<Result<PayloadBuf, Error>>,
    is_cancelled_on_drop: bool,
    budget: Budget,
    registration: Option<Registration>,
    watch: Watch,
    /// The call that waits for the result of a task of 2025-11-25.
    waiting: Option<BoxFuture<Result<PayloadBuf, Error>>>,
    /// An error of that call, which is the end of the task if it has ended.
    rejection: Option<Error>,
    /// The input requests that were answered, and the responses that the server has not acknowledged.
    answered: BTreeSet<String>,
    responses: InputResponses,
    last_poll: Option<Time>,
    /// Number of consecutive polls in which nothing changed.
    unchanged: u32,
    /// Number of consecutive failures.
    failures: u32,
}

/// Why a follower goes on.
enum Woken {
    /// A poll is due.
    Due,
    /// The server has sent a notification.
    Notified(PayloadBuf),
    /// The call for the result has ended.
    Finished(Result<PayloadBuf, Error>),
}

impl Follower {
    pub(super) fn new(
        client: Client,
        context: CallContext,
        options: CallOptions,
        total_timeout: Option<Duration>,
        reference: TaskReference,
    ) -> Self {
        let limits = client.shared.settings.follow_limits.unwrap_or_default();
        Self {
            requests: TaskRequests { client, id: reference.id.into(), context, options },
            revision: reference.revision,
            limits,
            state: reference.state,
            outcome: None,
            is_cancelled_on_drop: true,
            budget: Budget::new(total_timeout),
            registration: None,
            watch: Watch::default(),
            waiting: None,
            rejection: None,
            answered: reference.answered,
            responses: InputResponses::new(),
            last_poll: None,
            unchanged: 0,
            failures: 0,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.requests.id
    }

    pub(super) fn state(&self) -> &TaskState {
        &self.state
    }

    pub(super) fn reference(&self) -> TaskReference {
        // A response that was not acknowledged would be lost, so its input request counts as open.
        let mut answered = self.answered.clone();
        answered.retain(|key| !self.responses.contains(key));
        TaskReference { id: self.id().to_owned(), revision: self.revision, state: self.state.clone(), answered }
    }

    /// Keeps the task when this is dropped.
    pub(super) fn keep(&mut self) {
        self.is_cancelled_on_drop = false;
    }

    /// Changes what is attached to the requests of the task.
    pub(super) fn context_mut(&mut self) -> &mut CallContext {
        self.registration = None;
        &mut self.requests.context
    }

    /// Waits for the end of the task.
    pub(super) async fn run(&mut self) -> Result<&PayloadBuf, Error> {
        while self.outcome.is_none() {
            self.advance().await?;
        }
        match &self.outcome {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::Cancelled),
        }
    }

    /// Requests the current state.
    pub(super) async fn refresh(&mut self) -> Result<(), Error> {
        let model = self.model()?;
        let payload = self.requests.get().await.map_err(unknown_task)?;
        let snapshot = self.read(model, &payload)?;
        if model == TaskModel::Extension && snapshot.state.is_final() {
            return self.end(snapshot);
        }
        self.state = snapshot.state;
        Ok(())
    }

    /// Cancels the task, which has to be followed to see how it ends.
    pub(super) async fn cancel(&mut self) -> Result<(), Error> {
        let model = self.model()?;
        match self.requests.cancel().await {
            // B-88: 2025-11-25 refuses to cancel what has ended; a task that is unknown is none.
            Err(Error::Rejected(error)) if model == TaskModel::Core && error.code == ErrorCode::INVALID_PARAMS => {
                self.refresh().await?;
                if !self.state.is_final() {
                    return Err(Error::Rejected(error));
                }
            }
            Err(error) => return Err(unknown_task(error)),
            Ok(()) => {}
        }
        self.keep();
        Ok(())
    }

    /// Does the next step: waits until there is something to do, gets the state, and answers new input requests. An
    /// outage of the server or the connection is waited out.
    pub(super) async fn advance(&mut self) -> Result<(), Error> {
        let model = self.model()?;
        let step = match model {
            _ if !self.responses.is_empty() => self.send_responses().await,
            TaskModel::Extension => self.advance_extension().await,
            TaskModel::Core => self.advance_core().await,
        };
        match step {
            Ok(()) => self.failures = 0,
            Err(error) if may_succeed_later(&error) && self.failures < self.limits.max_failures => {
                let longest = INITIAL_DELAY.saturating_mul(1 << self.failures.min(16)).min(MAX_DELAY);
                self.failures += 1;
                tracing::debug!(target: "mcp", %error, failures = self.failures, "a request for a task has failed");
                let shared = &self.requests.client.shared;
                self.budget.run(shared, Sleep::new(shared, jittered(longest))).await?;
            }
            Err(error) => {
                // There is nothing to cancel.
                self.is_cancelled_on_drop &= !matches!(error, Error::Task(TaskError::Unknown));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn advance_extension(&mut self) -> Result<(), Error> {
        // TK-17: a task may have ended, or need input, when it is created.
        let is_waiting = self.state.status == TaskStatus::Working || self.last_poll.is_some();
        let mut reported = None;
        if is_waiting && let Woken::Notified(params) = self.wait().await? {
            reported = self.read(TaskModel::Extension, &params).ok();
            if reported.is_none() {
                let shared = &self.requests.client.shared;
                self.budget.run(shared, Sleep::until(shared, self.earliest_poll())).await?;
            }
        }
        // A notification has what `tasks/get` would return; one that does not is a reason to poll.
        let snapshot = match reported {
            Some(snapshot) => snapshot,
            None => {
                let payload = self.poll().await?;
                self.read(TaskModel::Extension, &payload)?
            }
        };
        if snapshot.state.is_final() {
            return self.end(snapshot);
        }
        self.set_state(snapshot.state);
        if let (TaskStatus::InputRequired, Some(requests)) = (self.state.status, snapshot.input_requests) {
            self.answer(requests).await?;
        }
        Ok(())
    }

    // B-85
    async fn advance_core(&mut self) -> Result<(), Error> {
        let needs_result = self.state.is_final() || self.state.status == TaskStatus::InputRequired;
        if self.state.status == TaskStatus::Cancelled {
            self.outcome = Some(Err(TaskError::Cancelled { message: self.state.message.clone() }.into()));
            return Ok(());
        }
        if let Some(error) = self.rejection.take_if(|_| self.state.is_final()) {
            self.outcome = Some(Err(error));
            return Ok(());
        }
        if needs_result && self.waiting.is_none() {
            // In `input_required` the server sends its requests while this call is in flight.
            self.waiting = Some(Box::pin(self.requests.clone().result()));
        }
        match self.wait().await? {
            Woken::Finished(Ok(result)) => {
                if let Some(related) = related_task(&result) {
                    check_id(self.id(), &related)?;
                }
                self.check_size(&result)?;
                self.outcome = Some(Ok(result));
                return Ok(());
            }
            Woken::Finished(Err(error @ Error::Rejected(_))) if self.state.is_final() => {
                self.outcome = Some(Err(error));
                return Ok(());
            }
            // It is the error of the tool call if the task has ended meanwhile, and something else otherwise.
            Woken::Finished(Err(error @ Error::Rejected(_))) if self.rejection.is_none() => {
                self.rejection = Some(error)
            }
            Woken::Finished(Err(error)) => return Err(error),
            Woken::Due | Woken::Notified(_) => {}
        }
        let payload = self.poll().await?;
        let snapshot = self.read(TaskModel::Core, &payload)?;
        self.set_state(snapshot.state);
        match self.rejection.take_if(|_| !self.state.is_final()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns the model of the task, if the connection has it.
    fn model(&self) -> Result<TaskModel, Error> {
        let model = TaskModel::of(self.revision).ok_or(TaskError::OtherRevision(self.revision))?;
        match self.requests.client.revision() {
            Some(revision) if TaskModel::of(revision) != Some(model) => {
                Err(TaskError::OtherRevision(self.revision).into())
            }
            // Without a connection, requests wait for one.
            Some(_) | None => Ok(model),
        }
    }

    /// Returns the time until the next poll.
    // TK-18
    fn interval(&self) -> Duration {
        let own = || POLL_INTERVAL.saturating_mul(1 << self.unchanged.min(16)).min(MAX_OWN_POLL_INTERVAL);
        let interval = self.limits.clamp(self.state.poll_interval.unwrap_or_else(own));
        if self.watch.is_open() || self.waiting.is_some() {
            interval.max(QUIET_POLL_INTERVAL.min(self.limits.max_poll_interval))
        } else {
            interval
        }
    }

    /// Returns when the task may be polled at the earliest, however often the server sends notifications.
    fn earliest_poll(&self) -> Time {
        self.last_poll.map_or(Time::EPOCH, |last| last + self.limits.min_poll_interval)
    }

    /// Waits until the task should be polled, or the server has something to say.
    async fn wait(&mut self) -> Result<Woken, Error> {
        let (interval, earliest) = (self.interval(), self.earliest_poll());
        let TaskRequests { client, id, context, .. } = &self.requests;
        let shared = &client.shared;
        let registration = self.registration.get_or_insert_with(|| Registration::new(shared, id, context));
        let (watch, waiting) = (&mut self.watch, &mut self.waiting);
        // A task that ends soon is not worth a stream.
        if self.last_poll.is_some() && self.revision != Revision::V2025_11_25 {
            watch.open(shared, id, &context.extensions, registration);
        }
        let is_core = self.revision == Revision::V2025_11_25;
        let mut sleep = Sleep::new(shared, interval);
        let waking = poll_fn(|cx| {
            if let Some(call) = waiting
                && let Poll::Ready(outcome) = call.as_mut().poll(cx)
            {
                *waiting = None;
                return Poll::Ready(Woken::Finished(outcome));
            }
            if let Poll::Ready(params) = registration.poll(cx) {
                if !is_core {
                    return Poll::Ready(Woken::Notified(params));
                }
                sleep = Sleep::until(shared, earliest);
            }
            if watch.poll(shared, registration, cx).is_ready() {
                sleep = Sleep::until(shared, earliest);
            }
            Pin::new(&mut sleep).poll(cx).map(|()| Woken::Due)
        });
        self.budget.run(shared, waking).await
    }

    /// Requests the state.
    async fn poll(&mut self) -> Result<PayloadBuf, Error> {
        let shared = &self.requests.client.shared;
        self.last_poll = Some(shared.now());
        self.budget.run(shared, self.requests.get()).await?.map_err(unknown_task)
    }

    fn read(&self, model: TaskModel, payload: &PayloadBuf) -> Result<Snapshot, Error> {
        self.check_size(payload)?;
        // They are counted before they are decoded.
        let limit = self.requests.client.shared.settings.retry_limits.max_input_requests;
        if payload.member_count("inputRequests").unwrap_or_default() > limit {
            return Err(mcp_mrtr::RetryError::TooManyInputRequests { limit }.into());
        }
        Snapshot::read(model, self.id(), payload)
    }

    fn check_size(&self, payload: &PayloadBuf) -> Result<(), Error> {
        let limit = self.limits.max_bytes;
        if payload.as_str().len() > limit { Err(TaskError::TooLong { limit }.into()) } else { Ok(()) }
    }

    fn set_state(&mut self, state: TaskState) {
        self.unchanged = if self.state == state { self.unchanged.saturating_add(1) } else { 0 };
        self.state = state;
    }

    /// Sets the end of a task of the extension.
    // TK-14, TK-15
    fn end(&mut self, snapshot: Snapshot) -> Result<(), Error> {
        let Snapshot { state, result, error, .. } = snapshot;
        let outcome = match (state.status, result, error) {
            (TaskStatus::Completed, Some(result), _) => {
                let limits = &self.requests.client.shared.settings.message_limits;
                Ok(PayloadBuf::parse(result.as_str(), limits).map_err(invalid)?)
            }
            (TaskStatus::Failed, _, Some(error)) => Err(Error::Rejected(error)),
            (TaskStatus::Completed, None, _) => return Err(invalid("the task is completed, but has no `result`")),
            (TaskStatus::Failed, _, None) => return Err(invalid("the task failed, but has no `error`")),
            (TaskStatus::Cancelled | TaskStatus::Working | TaskStatus::InputRequired, _, _) => {
                Err(TaskError::Cancelled { message: state.message.clone() }.into())
            }
        };
        self.state = state;
        self.outcome = Some(outcome);
        Ok(())
    }

    /// Runs the handlers of the input requests that have no response yet, and sends their results.
    // TK-21, TK-22, TK-23
    async fn answer(&mut self, requests: InputRequests) -> Result<(), Error> {
        let settings = &self.requests.client.shared.settings;
        let is_new = |key: &str| !self.answered.contains(key);
        if requests.iter().any(|(key, _)| is_new(key)) {
            observed::input_round(&self.requests.client.shared, &mcp_types::Method::TASKS_GET);
        }
        for (key, request) in requests.iter() {
            if self.answered.contains(key) {
                continue;
            }
            let limit = self.limits.max_input_requests;
            if self.answered.len() >= limit {
                return Err(TaskError::TooManyInputRequests { limit }.into());
            }
            if key.len() > MAX_NAME_BYTES {
                return Err(invalid(format!("the key of an input request has {} bytes", key.len())));
            }
            let context = MessageContext::new(Some(self.requests.context.clone()));
            let result = settings.request_handlers.handle_input(context, request.clone(), Revision::LATEST).await;
            let result = result.map_err(|error| Error::InputRequestFailed { key: key.to_owned(), error })?;
            self.answered.insert(key.to_owned());
            self.responses.insert(key, result);
        }
        if self.responses.is_empty() { Ok(()) } else { self.send_responses().await }
    }

    /// Sends the responses that the server has not acknowledged. It ignores those that it has got before.
    async fn send_responses(&mut self) -> Result<(), Error> {
        let responses = self.responses.clone();
        match self.budget.run(&self.requests.client.shared, self.requests.update(responses)).await? {
            Ok(()) => self.responses = InputResponses::new(),
            Err(Error::Rejected(error)) if !may_succeed_later(&Error::Rejected(error.clone())) => {
                // The same responses would be rejected again, and others may not.
                let rejected = std::mem::take(&mut self.responses);
                self.answered.retain(|key| !rejected.contains(key));
                // A server that does not know the task any more rejects everything.
                return Err(match self.poll().await {
                    Err(unknown @ Error::Task(TaskError::Unknown)) => unknown,
                    Ok(_) | Err(_) => Error::Rejected(error),
                });
            }
            // They are sent again, when the cause is gone.
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let has_ended = self.outcome.is_some() || self.state.is_final();
        if let Some(model) = TaskModel::of(self.revision)
            && self.is_cancelled_on_drop
            && !has_ended
        {
            // Requests that are in flight are cancelled first.
            self.waiting = None;
            self.watch = Watch::Off;
            self.requests.cancel_and_forget(model);
        }
    }
}

/// Returns whether the same request may succeed later: after an outage of the server, or with a new connection.
fn may_succeed_later(error: &Error) -> bool {
    // A result that is too long will be too long again.
    let is_transient = is_transient(error) && !matches!(error, Error::ResponseTooLong { .. });
    is_transient || error.as_rejection().is_some_and(|error| error.code == ErrorCode::INTERNAL_ERROR)
}

/// Converts the error of a request that is rejected only if the server does not know the task.
// TK-28, B-89
fn unknown_task(error: Error) -> Error {
    let is_unknown = error.as_rejection().is_some_and(|error| error.code == ErrorCode::INVALID_PARAMS);
    if is_unknown { TaskError::Unknown.into() } else { error }
}

/// Follows a task to its end; returns its result.
pub(crate) async fn follow(
    client: Client,
    context: CallContext,
    options: CallOptions,
    reference: TaskReference,
) -> Result<PayloadBuf, Error> {
    let mut follower = Follower::new(client, context, options, options.total_timeout, reference);
    follower.run().await.cloned()
}
