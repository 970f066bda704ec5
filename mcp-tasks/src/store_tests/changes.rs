//! Changes.

use std::time::Duration;

use tokio::time::timeout;

use super::{LONG_LEASE, claim_this, finish, insert, release, replace, replaced, task, write};
use crate::{QueueAction, TaskChange, TaskChanges, TaskStore, TaskWrite};

/// Waits for a change, or for a gap.
async fn expect(changes: &mut TaskChanges, expected: TaskChange) {
    let wait = async {
        loop {
            let change = changes.next().await.expect("the store lives");
            if change == expected || change == TaskChange::Gap {
                return;
            }
        }
    };
    timeout(Duration::from_secs(10), wait).await.unwrap_or_else(|_| panic!("{expected:?} is not reported"));
}

/// Reads changes until none comes for a while.
async fn settle(changes: &mut TaskChanges) {
    while timeout(Duration::from_millis(200), changes.next()).await.is_ok() {}
}

pub(super) async fn changes_are_reported(store: &impl TaskStore, now: u64) {
    let (mut changes, mut others) = (store.changes(), store.changes());
    settle(&mut changes).await;
    let id = insert(store, now, &task(now, "1")).await;
    expect(&mut changes, TaskChange::Queued).await;
    let second = replaced(&replace(store, now, id, write(1, "2")).await);
    expect(&mut changes, TaskChange::Changed(id)).await;
    let ticket = claim_this(store, now, LONG_LEASE, id).await;
    assert!(release(store, now, ticket).await);
    expect(&mut changes, TaskChange::Queued).await;
    let park = TaskWrite { queue: QueueAction::Done, ..write(second, "3") };
    let third = replaced(&replace(store, now, id, park).await);
    expect(&mut changes, TaskChange::Changed(id)).await;
    let resume = TaskWrite { queue: QueueAction::Enqueue, ..write(third, "4") };
    let fourth = replaced(&replace(store, now, id, resume).await);
    expect(&mut changes, TaskChange::Queued).await;
    settle(&mut changes).await;
    replaced(&replace(store, now, id, finish(fourth, "5")).await);
    expect(&mut changes, TaskChange::Changed(id)).await;
    store.remove(now, id).await.expect("the store responds");
    expect(&mut changes, TaskChange::Changed(id)).await;
    expect(&mut others, TaskChange::Changed(id)).await;
}

/// A subscriber that does not read costs a bounded amount of memory, and learns that it has missed something.
pub(super) async fn no_change_is_missed_silently(store: &impl TaskStore, now: u64) {
    let mut changes = store.changes();
    settle(&mut changes).await;
    let first = insert(store, now, &task(now, "")).await;
    replaced(&replace(store, now, first, write(1, "1")).await);
    let id = insert(store, now, &task(now, "")).await;
    for version in 1..3000 {
        replaced(&replace(store, now, id, write(version, version.to_string())).await);
    }
    expect(&mut changes, TaskChange::Changed(first)).await;
    expect(&mut changes, TaskChange::Changed(id)).await;
}
