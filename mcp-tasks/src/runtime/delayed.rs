//! Calls that become tasks if they are not done after a time.

use std::sync::Arc;
use std::time::Duration;

use mcp_server::tasks::{RoundJournal, TaskOptions, TaskRun};
use mcp_server::{RequestContext, ResponseFuture};
use mcp_types::ErrorObject;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::runtime::run::Run;
use crate::runtime::{Shared, new_task};
use crate::{TaskRecord, TaskStart};

/// What becomes of a call whose time is over.
enum Switched {
    /// It is a task.
    Task(Box<TaskRecord>),
    /// It goes on without one, as none can be stored.
    Inline(Box<TaskRun>),
    Failed(ErrorObject),
}

/// Calls the handler, and turns the call into a task if it is not done after a time.
pub(crate) fn call(
    shared: &Arc<Shared>,
    ctx: &RequestContext,
    options: &TaskOptions,
    delay: Duration,
) -> ResponseFuture {
    let (shared, ctx, options) = (Arc::clone(shared), ctx.clone(), options.clone());
    let mut handler = Box::new(TaskRun::new(&ctx));
    Box::pin(async move {
        if let Ok(served) = timeout(delay, &mut *handler).await {
            return served;
        }
        let (sender, switched) = oneshot::channel();
        // In a task of its own, so that what is inserted runs, also if the client goes away meanwhile.
        tokio::spawn(switch(Arc::clone(&shared), ctx.clone(), options, handler, sender));
        match switched.await {
            Ok(Switched::Task(record)) => new_task::created(&shared, &ctx, &record),
            Ok(Switched::Inline(handler)) => handler.await,
            Ok(Switched::Failed(error)) => Err(error),
            Err(_) => Err(ErrorObject::internal_error("the task failed")),
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
    let journal = RoundJournal::of(handler.context()).await.map_err(ErrorObject::from);
    let record = journal.and_then(|journal| new_task::record(&shared, &ctx, &options, None, journal));
    let record = match record {
        Ok(record) => record,
        Err(error) => return drop(sender.send(Switched::Failed(error))),
    };
    let asked = Instant::now();
    let start = TaskStart::Claimed { worker: Arc::clone(&shared.worker), lease: shared.settings.lease };
    let (read, ticket) = match new_task::insert(&shared, record, start).await {
        Ok((read, Some(ticket))) => (read, ticket),
        Ok((_, None)) => {
            return drop(sender.send(Switched::Failed(ErrorObject::internal_error("the store of tasks failed"))));
        }
        Err(error) => {
            tracing::warn!(target: "mcp", %error, "a call cannot become a task, and goes on without one");
            return drop(sender.send(Switched::Inline(handler)));
        }
    };
    let told = Box::new(read.record.clone());
    let run = Run::adopted(&shared, ticket, read, *handler, asked);
    let _ = sender.send(Switched::Task(told));
    run.await;
}
