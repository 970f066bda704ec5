//! One run of a task.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_server::tasks::{DetachedRequest, RoundJournal, TaskRun};
use mcp_server::{Extensions, Response, Server};
use mcp_types::{ErrorObject, Method, RawJson, RequestParams, TaskStatus};
use tokio::time::{sleep, timeout};

use crate::runtime::lease::LeaseTime;
use crate::runtime::metrics::ActiveGuard;
use crate::runtime::outcome::Ending;
use crate::runtime::port::{EarlyEnd, RunPort, RunState};
use crate::runtime::write::{Change, ReadRecord, WriteError};
use crate::runtime::{RunCount, Shared, Stage, credentials};
use crate::{ClaimedTask, QueueAction, TaskRecord, TaskTicket};

/// A task that this process runs.
pub(crate) struct Run {
    state: Arc<RunState>,
    _count: RunCount,
    _metric: ActiveGuard,
}

/// How the run of a handler ended.
enum RunEnd {
    Returned(Result<Response, ErrorObject>),
    Early(EarlyEnd),
    Stopped,
}

impl Run {
    /// Runs a task that was claimed.
    pub(crate) fn claimed(
        shared: &Arc<Shared>,
        claimed: ClaimedTask,
        asked: LeaseTime,
        count: RunCount,
    ) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(shared);
        async move {
            let ClaimedTask { ticket, task, is_taken_over } = claimed;
            if is_taken_over {
                shared.metrics.task_taken_over();
            }
            let read = match ReadRecord::decode(ticket.id, &task) {
                Ok(read) => read,
                // A newer version of the server may be able to read it, when the lease has expired.
                Err(error) => return tracing::error!(target: "mcp", task = ?ticket.id, %error, "a task cannot be run"),
            };
            let Some(server) = shared.server() else { return release(&shared, ticket).await };
            let metric = shared.metrics.run();
            let state = Arc::new(RunState::new(shared, ticket, read.clone(), asked));
            let run = Self { state, _count: count, _metric: metric };
            if ticket.run > 1 && !read.record.call.is_restartable {
                let why = "the process that ran the task has ended, and its tool cannot be run again";
                return run.end(Ending::error(ErrorObject::internal_error(why))).await;
            }
            if let Some(error) = read.record.journal().refused_round() {
                return run.end(Ending::refused(error, &read.record.call)).await;
            }
            let port = Arc::new(RunPort(Arc::clone(&run.state)));
            match start(&server, &read.record, port) {
                Ok(handler) => {
                    drop(server);
                    run.drive(handler, Vec::new()).await;
                }
                Err(error) => run.end(Ending::error(error)).await,
            }
        }
    }

    /// Continues a call that became a task while its handler ran.
    pub(crate) fn adopted(
        shared: &Arc<Shared>,
        ticket: TaskTicket,
        read: ReadRecord,
        handler: TaskRun,
        asked: LeaseTime,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (count, metric) = (shared.count_run(), shared.metrics.run());
        let known: Vec<String> = read.record.journal().steps().map(|(key, _)| key.to_owned()).collect();
        let state = Arc::new(RunState::new(Arc::clone(shared), ticket, read, asked));
        let port = Arc::new(RunPort(Arc::clone(&state)));
        let RoundJournal { journal, .. } = handler.attach(port);
        let run = Self { state, _count: count, _metric: metric };
        // Steps that tasks of the handler have completed while the record was inserted.
        let new = journal.steps().filter(|(key, _)| !known.iter().any(|known| known == key));
        let new: Vec<_> = new.map(|(key, result)| (key.to_owned(), result.clone())).collect();
        run.drive(handler, new)
    }

    /// Ends a task whose handler is not called, for as long as this process may.
    async fn end(&self, ending: Ending) {
        let state = &self.state;
        tokio::select! {
            biased;
            () = state.lease.keep(&state.shared, state.ticket) => {}
            () = self.finish(ending) => {}
            () = async {
                state.shared.reached(Stage::Stopped).await;
                release(&state.shared, state.ticket).await;
            } => {}
        }
    }

    /// Stores steps that are completed, and runs the handler until it ends, or until this process must not run it any more.
    async fn drive(self, handler: TaskRun, steps: Vec<(String, RawJson)>) {
        let state = Arc::clone(&self.state);
        let id = state.ticket.id;
        let mut watch = state.shared.hub.watch(id);
        let changes = async {
            // What has changed between the claim and the beginning of the watch was not seen. Most runs end before they are told.
            let _ = timeout(FIRST_REFRESH, watch.changed()).await;
            while state.refresh().await {
                watch.changed().await;
            }
        };
        let work = async {
            let run = async {
                for (key, result) in &steps {
                    if let Err(error) = state.store_step(key, result).await {
                        state.reject("step", key, error);
                        break;
                    }
                }
                RunFuture { handler, state: &state }.await
            };
            // The handler is dropped before its task changes.
            let end = tokio::select! {
                end = run => end,
                () = state.shared.reached(Stage::Stopped) => RunEnd::Stopped,
            };
            match end {
                RunEnd::Stopped => release(&state.shared, state.ticket).await,
                RunEnd::Early(EarlyEnd::Fail(error)) => self.finish(Ending::error(error)).await,
                RunEnd::Early(EarlyEnd::Park(questions)) => self.finish(Ending::Park(questions, None)).await,
                RunEnd::Returned(served) => {
                    let ending = Ending::of(served, &state.call).unless_refused(&state.journal(), &state.call);
                    self.finish(ending).await;
                }
            }
        };
        tokio::select! {
            // A process that stood still learns that its lease is lost before its handler goes on.
            biased;
            () = state.lease.keep(&state.shared, state.ticket) => {
                tracing::warn!(target: "mcp", task = ?id, "the lease of a task was lost");
            }
            () = work => {}
            // It was cancelled, or has expired.
            () = changes => {}
            () = report_progress(&state) => {}
        }
        state.end();
    }

    /// Writes the end of the run. What cannot be stored is an error of the task.
    async fn finish(&self, ending: Ending) {
        let state = &self.state;
        let written = match ending {
            Ending::Complete(result) => {
                let complete = |record: &mut TaskRecord, now| record.complete(now, result.clone());
                self.end_with(TaskStatus::Completed, complete).await
            }
            Ending::Fail(outcome) => {
                let fail = |record: &mut TaskRecord, now| record.fail(now, outcome.clone());
                self.end_with(TaskStatus::Failed, fail).await
            }
            Ending::Park(questions, request_state) => {
                let is_waiting = std::sync::atomic::AtomicBool::new(true);
                let parked = state.update(|record, now| {
                    let waits = record.park(now, questions.clone(), request_state.clone())?;
                    is_waiting.store(waits, std::sync::atomic::Ordering::Relaxed);
                    Ok(Change::Write(if waits { QueueAction::Done } else { QueueAction::Keep }))
                });
                let parked = parked.await;
                match (&parked, is_waiting.into_inner()) {
                    (Ok(()), true) => state.shared.metrics.task_parked(),
                    // All of them have a response already.
                    (Ok(()), false) => release(&state.shared, state.ticket).await,
                    (Err(_), _) => {}
                }
                parked
            }
        };
        let reason = match written {
            Ok(()) | Err(WriteError::Lost) => return,
            Err(WriteError::Transition(error)) => error.to_string(),
            Err(WriteError::Store(error)) => error.to_string(),
        };
        tracing::error!(target: "mcp", task = ?state.ticket.id, reason, "the outcome of a task cannot be stored");
        let error = ErrorObject::internal_error(format!("the outcome of the task cannot be stored: {reason}"));
        let fail = |record: &mut TaskRecord, now| record.fail(now, crate::TaskOutcome::Error(error.clone()));
        if let Err(error) = self.end_with(TaskStatus::Failed, fail).await {
            tracing::error!(target: "mcp", task = ?state.ticket.id, ?error, "a task cannot be ended");
        }
    }

    async fn end_with(
        &self,
        status: TaskStatus,
        end: impl Fn(&mut TaskRecord, u64) -> Result<(), crate::TransitionError>,
    ) -> Result<(), WriteError> {
        let write = |record: &mut TaskRecord, now: u64| {
            end(record, now)?;
            Ok(Change::Write(QueueAction::Done))
        };
        self.state.update(write).await?;
        self.state.shared.metrics.task_finished(status);
        Ok(())
    }
}

/// Calls the handler of a task.
fn start(server: &Server, record: &TaskRecord, port: Arc<RunPort>) -> Result<TaskRun, ErrorObject> {
    let call = &record.call;
    let mut request = DetachedRequest::new(record.id.to_string(), Method::TOOLS_CALL, call.revision);
    request.capabilities = call.client_capabilities.clone();
    request.client_info.clone_from(&call.client_info);
    request.principal.clone_from(&call.principal);
    let meta = call.params.decode::<RequestParams>().ok().and_then(|params| params.meta);
    request.trace_context = meta.map(|meta| meta.trace_context()).unwrap_or_default();
    request.input_responses = record.journal().responses();
    request.request_state = record.journal().state().map(str::to_owned);
    request.has_back_channel = call.has_back_channel;
    let mut extensions = Extensions::new();
    if let (Some(auth), Some(principal)) = (&call.auth, &call.principal) {
        extensions.insert(credentials::restore(principal, auth));
    }
    TaskRun::detached(server, request, &call.params, extensions, port)
}

/// Hands a task back, so that any process can claim it at once.
async fn release(shared: &Shared, ticket: TaskTicket) {
    if let Err(error) = shared.store.release(shared.now(), ticket).await {
        tracing::warn!(target: "mcp", task = ?ticket.id, %error, "a task cannot be handed back");
    }
}

/// Writes the progress of the handler as the status message, at most once per interval.
async fn report_progress(state: &RunState) {
    let mut progress = state.progress.subscribe();
    // The handler may have reported something before.
    progress.mark_changed();
    while progress.changed().await.is_ok() {
        let Some(message) = progress.borrow_and_update().clone() else { continue };
        let written = state.update(|record, now| {
            record.set_message(now, &message)?;
            Ok(Change::Write(QueueAction::Keep))
        });
        if let Err(WriteError::Lost) = written.await {
            break;
        }
        sleep(PROGRESS_INTERVAL).await;
    }
    // The run ends for another reason.
    std::future::pending::<()>().await;
}

/// The time after which a run reads its record again, unless that is known to have changed.
const FIRST_REFRESH: Duration = Duration::from_secs(1);

/// The minimum time between two status messages of a task.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The handler, until it returns or wants its run to end.
struct RunFuture<'a> {
    handler: TaskRun,
    state: &'a RunState,
}

impl Future for RunFuture<'_> {
    type Output = RunEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<RunEnd> {
        let served = Pin::new(&mut self.handler).poll(cx);
        match (self.state.poll_early_end(cx), served) {
            (Some(EarlyEnd::Fail(error)), _) => Poll::Ready(RunEnd::Early(EarlyEnd::Fail(error))),
            (_, Poll::Ready(served)) => Poll::Ready(RunEnd::Returned(served)),
            (Some(end), Poll::Pending) => Poll::Ready(RunEnd::Early(end)),
            (None, Poll::Pending) => Poll::Pending,
        }
    }
}
