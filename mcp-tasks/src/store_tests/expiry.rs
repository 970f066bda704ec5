//! The end of the life of tasks.

use std::time::Duration;

use super::{
    LONG_LEASE, claim, claim_this, finish, insert, load, owner, release, renew, replace, replaced, task, try_insert,
    usage, write,
};
use crate::{ReplaceOutcome, StoredTask, TaskLimit, TaskLimits, TaskPage, TaskStore, TaskStoreError, TaskUsage};

/// How long the tasks of these tests live, and most of it.
const BRIEF: u64 = 1000;
const MOST: Duration = Duration::from_millis(650);

fn brief(now: u64) -> StoredTask {
    StoredTask { expires: now + BRIEF, ..task(now, "brief") }
}

pub(super) async fn tasks_expire(store: &impl TaskStore, now: &impl Fn() -> u64, sleep: &impl AsyncFn(Duration)) {
    let running = insert(store, now(), &brief(now())).await;
    let ticket = claim_this(store, now(), LONG_LEASE, running).await;
    let finished = insert(store, now(), &brief(now())).await;
    let end = StoredTask { is_finished: true, ..brief(now()) };
    replaced(&replace(store, now(), finished, finish(1, "the end")).await);
    let queued = insert(store, now(), &brief(now())).await;
    let replaced_later = insert(store, now(), &brief(now())).await;
    sleep(MOST).await;
    let all = [running, finished, queued, replaced_later];
    for id in all {
        assert!(load(store, now(), id).await.is_some(), "it is never removed earlier");
    }
    assert_eq!(load(store, now(), finished).await.map(|found| found.task.owner), Some(end.owner));
    replaced(&replace(store, now(), replaced_later, write(1, "a write does not extend its life")).await);
    let lasting = insert(store, now(), &task(now(), "lasting")).await;
    sleep(MOST).await;
    for id in all {
        assert_eq!(load(store, now(), id).await, None, "its time is over");
        assert_eq!(replace(store, now(), id, write(1, "late")).await, ReplaceOutcome::Gone, "it stays gone");
        assert!(!store.remove(now(), id).await.expect("the store responds"), "it is gone");
    }
    assert!(!renew(store, now(), ticket, LONG_LEASE).await && !release(store, now(), ticket).await);
    let TaskPage { tasks, next } = store.list(now(), owner(1), None, 100).await.expect("the store responds");
    assert_eq!((tasks.iter().map(|(id, _)| *id).collect::<Vec<_>>(), next), (vec![lasting], None));
    claim_this(store, now(), LONG_LEASE, lasting).await;
    assert_eq!(claim(store, now(), LONG_LEASE).await, None, "nobody runs what is gone");
    assert!(store.remove(now(), lasting).await.expect("the store responds"));
    assert_eq!(usage(store, now()).await, TaskUsage::default(), "nothing is left");
}

pub(super) async fn expired_tasks_make_room<S: TaskStore>(
    make: &impl AsyncFn(TaskLimits) -> S,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let limits = TaskLimits::default().max_unfinished(300).max_unfinished_per_owner(300).max_bytes(1500);
    let store = &make(limits).await;
    for _ in 0..300 {
        insert(store, now(), &brief(now())).await;
    }
    let refused = |limit: TaskLimit| Err(TaskStoreError::Full { limit, max: limits.max(limit) });
    let new = super::queued(super::id(), &brief(now()));
    assert_eq!(try_insert(store, now(), new.clone()).await, refused(TaskLimit::UnfinishedPerOwner));
    sleep(2 * MOST).await;
    for _ in 0..300 {
        insert(store, now(), &StoredTask { expires: now() + super::HOUR, ..brief(now()) }).await;
    }
    assert_eq!(try_insert(store, now(), new).await, refused(TaskLimit::UnfinishedPerOwner));
    let expected = TaskUsage { kept: 300, unfinished: 300, queued: 300, claimed: 0, bytes: 1500 };
    assert_eq!(usage(store, now()).await, expected, "nothing is left of those that have expired");
}
