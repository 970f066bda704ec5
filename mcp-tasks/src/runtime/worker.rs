//! Claims tasks, and runs them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::runtime::lease::LeaseTime;
use crate::runtime::run::Run;
use crate::runtime::write::Backoff;
use crate::runtime::{Shared, Stage};
use crate::{ClaimedTask, TaskClaim, TaskStoreError};

/// Claims tasks until the shutdown.
pub(crate) async fn work(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    // The semaphore is never closed.
    while let Some(Ok(slot)) = before(&shared, Stage::Draining, Arc::clone(&shared.slots).acquire_owned()).await {
        // A claim that is in flight counts as a run: the store may have granted it already.
        let (count, asked) = (shared.count_run(), LeaseTime::now(&shared));
        let claim = claim_one(&shared);
        let Some(claimed) = before(&shared, Stage::Stopped, claim).await else { return };
        match claimed {
            Ok(Some(claimed)) => {
                backoff = Backoff::default();
                let run = Run::claimed(&shared, claimed, asked, count);
                tokio::spawn(async move {
                    run.await;
                    drop(slot);
                });
            }
            Ok(None) => {
                drop((slot, count));
                // Leases that expire are not announced.
                let queued = timeout(idle_time(&shared), shared.hub.queued.notified());
                let _ = before(&shared, Stage::Draining, queued).await;
            }
            Err(error) => {
                drop((slot, count));
                tracing::warn!(target: "mcp", %error, "no task can be claimed");
                let _ = before(&shared, Stage::Draining, backoff.wait()).await;
            }
        }
    }
}

/// Waits for something, but not after a stage of the shutdown.
async fn before<T>(shared: &Shared, stage: Stage, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shared.reached(stage) => None,
        output = future => Some(output),
    }
}

/// Claims a task of a tool that the server has. Instances of other versions may have others.
async fn claim_one(shared: &Shared) -> Result<Option<ClaimedTask>, TaskStoreError> {
    let Some(tools) = shared.server().map(|server| server.tool_names()) else { return Ok(None) };
    let tools: Vec<&str> = tools.iter().collect();
    let claim = TaskClaim::new(&shared.worker, shared.settings.lease).tools(&tools);
    shared.store.claim(shared.now(), claim).await
}

/// How often leases of other processes are looked at.
fn idle_time(shared: &Shared) -> Duration {
    (shared.settings.lease / 3).max(Duration::from_millis(10))
}
