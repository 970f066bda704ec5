//! Limits.

use super::{finish, id, insert, load, owner, queued, replace, replaced, task, try_insert, usage, write};
use crate::{
    QueueAction, StoredTask, TaskLimit, TaskLimits, TaskPart, TaskStore, TaskStoreError, TaskUsage, TaskWrite,
};

fn of(owned_by: u8, tool: &str, now: u64) -> StoredTask {
    StoredTask { owner: Some(owner(owned_by)), tool: tool.into(), ..task(now, "x") }
}

async fn refusal(store: &impl TaskStore, now: u64, task: &StoredTask) -> TaskLimit {
    let before = usage(store, now).await;
    let id = id();
    let error = try_insert(store, now, queued(id, task)).await.expect_err("there is no room");
    assert_eq!(usage(store, now).await, before, "what was refused changes nothing");
    assert_eq!(load(store, now, id).await, None, "what was refused is not there");
    let TaskStoreError::Full { limit, max } = error else { panic!("it is full: {error:?}") };
    assert_eq!(max, store.limits().max(limit), "the error names the setting");
    limit
}

pub(super) async fn unfinished_tasks_are_limited<S: TaskStore>(make: &impl AsyncFn(TaskLimits) -> S, now: u64) {
    let limits = TaskLimits::default().max_unfinished_per_owner(2).max_unfinished_per_tool(3).max_unfinished(5);
    let store = &make(limits).await;
    assert_eq!(*store.limits(), limits);
    let first = insert(store, now, &of(1, "a", now)).await;
    let second = insert(store, now, &of(1, "b", now)).await;
    assert_eq!(refusal(store, now, &of(1, "c", now)).await, TaskLimit::UnfinishedPerOwner);
    insert(store, now, &of(2, "a", now)).await;
    insert(store, now, &of(3, "a", now)).await;
    assert_eq!(refusal(store, now, &of(4, "a", now)).await, TaskLimit::UnfinishedPerTool);
    // Anonymous callers share the other limits.
    let anonymous = |tool: &str| StoredTask { owner: None, ..of(0, tool, now) };
    assert_eq!(refusal(store, now, &anonymous("a")).await, TaskLimit::UnfinishedPerTool);
    insert(store, now, &anonymous("b")).await;
    assert_eq!(refusal(store, now, &anonymous("b")).await, TaskLimit::Unfinished);
    assert_eq!(refusal(store, now, &of(4, "b", now)).await, TaskLimit::Unfinished);

    // One that is finished makes room, and so does one that is removed; one that only waits does not.
    replaced(&replace(store, now, first, TaskWrite { queue: QueueAction::Done, ..write(1, "x") }).await);
    assert_eq!(refusal(store, now, &of(4, "b", now)).await, TaskLimit::Unfinished);
    replaced(&replace(store, now, first, finish(2, "x")).await);
    insert(store, now, &of(1, "a", now)).await;
    assert_eq!(refusal(store, now, &of(1, "a", now)).await, TaskLimit::UnfinishedPerOwner);
    assert!(store.remove(now, second).await.expect("the store responds"));
    insert(store, now, &of(1, "b", now)).await;
    assert_eq!(refusal(store, now, &of(4, "c", now)).await, TaskLimit::Unfinished);
    let usage = usage(store, now).await;
    assert_eq!((usage.kept, usage.unfinished), (6, 5));
}

pub(super) async fn kept_tasks_are_limited<S: TaskStore>(make: &impl AsyncFn(TaskLimits) -> S, now: u64) {
    let limits = TaskLimits::default().max_kept_per_owner(3).max_kept(5);
    let store = &make(limits).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = insert(store, now, &of(1, "a", now)).await;
        replaced(&replace(store, now, id, finish(1, "x")).await);
        ids.push(id);
    }
    assert_eq!(refusal(store, now, &of(1, "a", now)).await, TaskLimit::KeptPerOwner);
    insert(store, now, &of(2, "a", now)).await;
    insert(store, now, &StoredTask { owner: None, ..of(0, "a", now) }).await;
    assert_eq!(refusal(store, now, &of(2, "a", now)).await, TaskLimit::Kept);
    assert_eq!(refusal(store, now, &StoredTask { owner: None, ..of(0, "a", now) }).await, TaskLimit::Kept);
    for id in &ids {
        assert!(load(store, now, *id).await.is_some(), "none was evicted");
    }
    assert!(store.remove(now, ids[0]).await.expect("the store responds"));
    insert(store, now, &of(1, "a", now)).await;
    assert_eq!(usage(store, now).await, TaskUsage { kept: 5, unfinished: 3, queued: 3, claimed: 0, bytes: 5 });
}

pub(super) async fn bytes_are_limited<S: TaskStore>(make: &impl AsyncFn(TaskLimits) -> S, now: u64) {
    let limits = TaskLimits::default().max_call_bytes(0).max_journal_bytes(0).max_outcome_bytes(1000);
    let max = limits.max_record_bytes();
    let store = &make(limits.max_bytes(max + 100)).await;
    let content = |bytes: usize| "x".repeat(bytes);
    let too_large = TaskStoreError::TooLarge { part: TaskPart::Record, bytes: max + 1, max };
    let refused = try_insert(store, now, queued(id(), &task(now, content(max + 1)))).await;
    assert_eq!(refused, Err(too_large.clone()));
    let id = insert(store, now, &task(now, content(max))).await;
    assert_eq!(store.replace(now, id, write(1, content(max + 1))).await, Err(too_large));

    let other = insert(store, now, &task(now, content(90))).await;
    assert_eq!(refusal(store, now, &task(now, content(11))).await, TaskLimit::Bytes);
    let full = Err(TaskStoreError::Full { limit: TaskLimit::Bytes, max: max + 100 });
    assert_eq!(store.replace(now, other, write(1, content(101))).await.map(drop), full);
    assert_eq!(load(store, now, other).await.map(|found| found.version), Some(1), "what was refused changes nothing");
    let second = replaced(&replace(store, now, other, write(1, content(100))).await);
    assert_eq!(refusal(store, now, &task(now, content(1))).await, TaskLimit::Bytes);
    // What takes no more than before is always possible, and what is given back can be used.
    replaced(&replace(store, now, id, finish(1, content(100))).await);
    replaced(&replace(store, now, other, write(second, content(200))).await);
    assert_eq!(usage(store, now).await.bytes, 300);
    insert(store, now, &task(now, content(max - 200))).await;
    assert_eq!(refusal(store, now, &task(now, content(1))).await, TaskLimit::Bytes);
}

pub(super) async fn bytes_of_owners_are_limited<S: TaskStore>(make: &impl AsyncFn(TaskLimits) -> S, now: u64) {
    let store = &make(TaskLimits::default().max_bytes(1000).max_bytes_per_owner(100)).await;
    let of = |owned_by: u8, bytes: usize| StoredTask { content: "x".repeat(bytes).into(), ..of(owned_by, "a", now) };
    let first = insert(store, now, &of(1, 60)).await;
    let second = insert(store, now, &of(1, 40)).await;
    assert_eq!(refusal(store, now, &of(1, 1)).await, TaskLimit::BytesPerOwner);
    let full = Err(TaskStoreError::Full { limit: TaskLimit::BytesPerOwner, max: 100 });
    assert_eq!(store.replace(now, first, write(1, "x".repeat(61))).await.map(drop), full);
    // A task that does not fit can say so.
    let message = || "x".repeat(60 + TaskLimits::FINAL_BYTES);
    assert_eq!(store.replace(now, first, finish(1, message() + "x")).await.map(drop), full);
    let last = insert(store, now, &StoredTask { owner: Some(owner(3)), ..of(3, 60) }).await;
    replaced(&replace(store, now, last, finish(1, message())).await);
    assert!(store.remove(now, last).await.expect("the store responds"));
    // Others have their own share, and anonymous callers that of all.
    insert(store, now, &of(2, 100)).await;
    insert(store, now, &StoredTask { owner: None, ..of(0, 700) }).await;
    replaced(&replace(store, now, first, finish(1, "x".repeat(50))).await);
    insert(store, now, &of(1, 10)).await;
    assert!(store.remove(now, second).await.expect("the store responds"));
    insert(store, now, &of(1, 40)).await;
    assert_eq!(refusal(store, now, &of(1, 1)).await, TaskLimit::BytesPerOwner);
    assert_eq!(refusal(store, now, &StoredTask { owner: None, ..of(0, 101) }).await, TaskLimit::Bytes);
}

pub(super) async fn floods_stay_within_limits<S: TaskStore>(make: &impl AsyncFn(TaskLimits) -> S, now: u64) {
    let limits =
        TaskLimits::default().max_unfinished(50).max_unfinished_per_owner(10).max_kept(80).max_kept_per_owner(20);
    let store = &make(limits).await;
    let (mut accepted, mut refused) = (0, 0);
    for number in 0..1000_usize {
        let owned_by = u8::try_from(number % 7).unwrap_or_default();
        match try_insert(store, now, queued(id(), &of(owned_by, "a", now))).await {
            Ok(_) => accepted += 1,
            Err(TaskStoreError::Full { .. }) => refused += 1,
            Err(other) => panic!("it is full: {other}"),
        }
        if number % 3 == 0 {
            let claimed = super::claim(store, now, super::LONG_LEASE).await;
            if let Some(claimed) = claimed {
                let end = TaskWrite { ticket: Some(claimed.ticket), ..finish(1, "done") };
                replaced(&replace(store, now, claimed.ticket.id, end).await);
            }
        }
        let usage = usage(store, now).await;
        assert!(usage.kept <= 80 && usage.unfinished <= 50, "{usage:?}");
    }
    let usage = usage(store, now).await;
    assert_eq!(
        (accepted, accepted + refused, usage.kept),
        (80, 1000, 80),
        "there is room for 80, and none was evicted"
    );
}
