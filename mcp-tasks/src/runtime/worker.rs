//! Claims tasks, and runs them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::runtime::run::Run;
use crate::runtime::write::Backoff;
use crate::runtime::{Shared, Stage};
use crate::{ClaimedTask, TaskClaim, TaskStoreError, TaskTicket};

/// Claims tasks until the shutdown.
pub(crate) async fn work(shared: Arc<Shared>) {
    tokio::select! {
        // Nothing is claimed after a shutdown.
        biased;
        () = shared.reached(Stage::Draining) => {}
        () = claim_all(&shared) => {}
    }
}

async fn claim_all(shared: &Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(shared.settings.max_running.clamp(1, Semaphore::MAX_PERMITS)));
    let mut backoff = Backoff::default();
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // The lease begins at the earliest when the store is asked for it.
        let asked = Instant::now();
        match claim_one(shared).await {
            Ok(Some(claimed)) => {
                backoff = Backoff::default();
                let run = Run::claimed(shared, claimed, asked);
                tokio::spawn(async move {
                    run.await;
                    drop(slot);
                });
            }
            Ok(None) => {
                drop(slot);
                // Leases that expire are not announced.
                let _ = timeout(idle_time(shared), shared.hub.queued.notified()).await;
            }
            Err(error) => {
                drop(slot);
                tracing::warn!(target: "mcp", %error, "no task can be claimed");
                backoff.wait().await;
            }
        }
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

/// Renews the lease of a run, which was asked for at a time, until it is lost: another process may take over as soon as it has
/// expired.
pub(crate) async fn keep_lease(shared: &Shared, ticket: TaskTicket, asked: Instant) {
    let lease = shared.settings.lease;
    let mut valid_until = asked + lease;
    loop {
        let renewed = timeout_at(valid_until, async {
            sleep(lease / 3).await;
            (Instant::now(), shared.store.renew(shared.now(), ticket, lease).await)
        });
        match renewed.await {
            Ok((asked, Ok(true))) => valid_until = asked + lease,
            Ok((_, Err(error))) => tracing::warn!(target: "mcp", %error, "the lease of a task cannot be renewed"),
            Ok((_, Ok(false))) | Err(_) => return,
        }
    }
}
