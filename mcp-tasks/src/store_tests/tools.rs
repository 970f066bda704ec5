//! Workers that do not have all tools.

use std::time::Duration;

use super::{LEASE, LONG_LEASE, MOST_OF_A_LEASE, claim_this, finish, insert, renew, replace, replaced, task, usage};
use crate::{ClaimedTask, StoredTask, TaskClaim, TaskStore, TaskUsage, TaskWrite};

async fn claim(store: &impl TaskStore, now: u64, lease: Duration, tools: &[&str]) -> Option<ClaimedTask> {
    store.claim(now, TaskClaim::new("worker", lease).tools(tools)).await.expect("the store responds")
}

fn task_of(tool: &str, now: u64) -> StoredTask {
    StoredTask { tool: tool.into(), ..task(now, tool.to_owned()) }
}

/// A task of a tool that a worker does not have keeps its place, and costs no run.
pub(super) async fn tasks_are_left_to_workers_with_their_tool(store: &impl TaskStore, now: u64) {
    let first = insert(store, now, &task_of("new", now)).await;
    let second = insert(store, now, &task_of("old", now)).await;
    let third = insert(store, now, &task_of("new", now)).await;
    assert_eq!(claim(store, now, LONG_LEASE, &[]).await, None, "it has no tools");
    let claimed = claim(store, now, LONG_LEASE, &["older", "old"]).await.expect("one is for it");
    assert_eq!((claimed.ticket.id, claimed.is_taken_over), (second, false));
    for _ in 0..3 {
        assert_eq!(claim(store, now, LONG_LEASE, &["older", "old"]).await, None, "the others are not");
    }
    let counts = usage(store, now).await;
    assert_eq!((counts.queued, counts.claimed), (2, 1), "they are queued");
    let mut tickets = Vec::new();
    for expected in [first, third] {
        let claimed = claim(store, now, LONG_LEASE, &["old", "new"]).await.expect("one is queued");
        assert_eq!((claimed.ticket.id, claimed.ticket.run), (expected, 1), "in order, and for the first time");
        assert!(!claimed.is_taken_over, "nobody had it");
        tickets.push(claimed.ticket);
    }
    let counts = usage(store, now).await;
    assert_eq!((counts.queued, counts.claimed), (0, 3));
    // A task that was passed over ends as any other, and so does one that is cancelled meanwhile.
    for ticket in tickets {
        assert!(renew(store, now, ticket, LONG_LEASE).await);
        let end = TaskWrite { ticket: Some(ticket), ..finish(1, "done") };
        replaced(&replace(store, now, ticket.id, end).await);
    }
    let fourth = insert(store, now, &task_of("new", now)).await;
    assert_eq!(claim(store, now, LONG_LEASE, &["old"]).await, None);
    replaced(&replace(store, now, fourth, finish(1, "cancelled")).await);
    assert_eq!(claim(store, now, LONG_LEASE, &["new"]).await, None);
    let expected = TaskUsage { kept: 4, unfinished: 1, queued: 0, claimed: 1, bytes: 20 };
    assert_eq!(usage(store, now).await, expected);
}

/// A worker that cannot run a task does not delay those that can take it over.
pub(super) async fn a_dead_run_is_left_to_workers_with_its_tool(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let id = insert(store, now(), &task_of("new", now())).await;
    claim_this(store, now(), LEASE, id).await;
    assert_eq!(claim(store, now(), LEASE, &["new"]).await, None, "it runs");
    sleep(2 * MOST_OF_A_LEASE).await;
    for _ in 0..3 {
        assert_eq!(claim(store, now(), LEASE, &["old"]).await, None);
    }
    let claimed = claim(store, now(), LEASE, &["new"]).await.expect("its lease has expired");
    assert!(claimed.is_taken_over && claimed.ticket.run == 2);
    assert_eq!(claim(store, now(), LEASE, &["new"]).await, None, "the lease lasts");
}

/// At the end of its life a task may be claimed by any worker, which can say why it fails.
pub(super) async fn any_worker_claims_what_is_about_to_expire(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let task = StoredTask { expires: now() + 8_000, ..task_of("new", now()) };
    let id = insert(store, now(), &task).await;
    assert_eq!(claim(store, now(), LONG_LEASE, &["old"]).await, None, "it has just begun");
    sleep(Duration::from_millis(7_400)).await;
    let claimed = claim(store, now(), LONG_LEASE, &["old"]).await.expect("it is about to expire");
    assert_eq!(claimed.ticket.id, id);
}
