//! Calls that become tasks if they are not done after a time.

use std::sync::Arc;
use std::time::Duration;

use mcp_server::tasks::{RoundJournal, TaskOptions, TaskRun};
use mcp_server::{RequestContext, ResponseFuture};
use mcp_types::ErrorObject;
use tokio::sync::oneshot;
use tokio::time::{timeout, timeout_at};

use crate::runtime::lease::LeaseTime;
use crate::runtime::run::Run;
use crate::runtime::write::Backoff;
use crate::runtime::{Shared, Stage, new_task};
use crate::{TaskId, TaskRecord, TaskStart, TaskStoreError};

/// What becomes of a call whose time is over.
enum Switched {
    /// It is a task.
    Task(Box<TaskRecord>),
    /// It goes on without one, as none can be stored or run now.
    Inline(Box<TaskRun>),
    /// It never becomes one, as it is too large.
    Never(Box<TaskRun>),
    Failed(ErrorObject),
}

/// The minimum time between two attempts to turn a call into a task.
const MIN_RETRY: Duration = Duration::from_secs(5);

/// Calls the handler, and turns the call into a task if it is not done after a time. If there is no room for a task, this is tried
/// again each time it has passed.
pub(crate) fn call(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    options: &TaskOptions,
    delay: Duration,
) -> ResponseFuture {
    let (shared, ctx, options) = (Arc::clone(shared), ctx.clone(), options.clone());
    let mut handler = Box::new(TaskRun::new(&ctx));
    Box::pin(async move {
        let mut delay = delay;
        loop {
            if let Ok(served) = timeout(delay, &mut *handler).await {
                return served;
            }
            let (sender, switched) = oneshot::channel();
            // In a task of its own, so that what is inserted runs, also if the client goes away meanwhile.
            tokio::spawn(switch(Arc::clone(&shared), ctx.clone(), options.clone(), handler, sender));
            match switched.await {
                Ok(Switched::Task(record)) => return new_task::created(&shared, &ctx, &record),
                Ok(Switched::Inline(back)) => handler = back,
                Ok(Switched::Never(back)) => return back.await,
                Ok(Switched::Failed(error)) => return Err(error),
                Err(_) => return Err(ErrorObject::internal_error("the task failed")),
            }
            delay = delay.max(MIN_RETRY);
        }
    })
}

async fn switch(
    shared: Arc<Shared>,
    ctx: RequestContext,
    options: TaskOptions,
    handler: Box<TaskRun>,
    sender: oneshot::Sender<Switched>,
) {
    if *shared.stage.borrow() >= Stage::Draining {
        return drop(sender.send(Switched::Inline(handler)));
    }
    // Without a permit the request stays in flight, and counts for the limits of its transport.
    let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else {
        return drop(sender.send(Switched::Inline(handler)));
    };
    let journal = RoundJournal::of(handler.context()).await.map_err(ErrorObject::from);
    let record = journal.and_then(|journal| new_task::record(&shared, &ctx, &options, None, journal));
    let record = match record {
        Ok(record) => record,
        Err(error) => return drop(sender.send(Switched::Failed(error))),
    };
    let (id, asked) = (record.id, LeaseTime::now(&shared));
    let start = TaskStart::Claimed { worker: Arc::clone(&shared.worker), lease: shared.settings.lease };
    let (read, ticket) = match new_task::insert(&shared, record, start).await {
        Ok((read, Some(ticket))) => (read, ticket),
        Ok((_, None)) => {
            return drop(sender.send(Switched::Failed(ErrorObject::internal_error("the store of tasks failed"))));
        }
        Err(error) => {
            tracing::warn!(target: "mcp", %error, "a call cannot become a task, and goes on without one");
            let may_exist = matches!(error, TaskStoreError::Failed(_));
            let switched = if matches!(error, TaskStoreError::TooLarge { .. }) {
                Switched::Never(handler)
            } else if !may_exist || timeout_at(asked.at + shared.settings.lease, remove(&shared, id)).await.is_ok() {
                Switched::Inline(handler)
            } else {
                // When its lease has expired, another process may run it.
                Switched::Failed(ErrorObject::internal_error("the store of tasks failed"))
            };
            return drop(sender.send(switched));
        }
    };
    let told = Box::new(read.record.clone());
    let run = Run::adopted(&shared, ticket, read, *handler, asked);
    let _ = sender.send(Switched::Task(told));
    run.await;
    drop(slot);
}

/// Removes a task that may be in the store.
async fn remove(shared: &Shared, id: TaskId) {
    let mut backoff = Backoff::default();
    while let Err(error) = shared.store.remove(shared.now(), id).await {
        tracing::warn!(target: "mcp", %error, "a task that was not created cannot be removed");
        backoff.wait().await;
    }
}
