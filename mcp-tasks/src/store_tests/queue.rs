//! The queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    LONG_LEASE, claim, claim_this, claimed, finish, id, insert, load, replace, replaced, task, try_insert, usage,
    version, write,
};
use crate::{NewTask, QueueAction, ReplaceOutcome, StoredTask, TaskStart, TaskStore, TaskUsage, TaskWrite};

pub(super) async fn tasks_are_claimed_in_order(store: &impl TaskStore, now: u64) {
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "there is nothing to do");
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.push(insert(store, now, &task(now, number.to_string())).await);
    }
    for (number, id) in ids.iter().enumerate() {
        let claimed = claim(store, now, LONG_LEASE).await.expect("a task is queued");
        assert_eq!((claimed.ticket.id, claimed.ticket.run), (*id, 1), "the first comes first");
        assert_eq!(claimed.task.task, task(now, number.to_string()), "with its content");
        assert_eq!((claimed.task.version, claimed.task.run), (1, 1));
        assert_eq!(load(store, now, *id).await, Some(claimed.task));
    }
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "each is claimed once");
    let expected = TaskUsage { kept: 20, unfinished: 20, queued: 0, claimed: 20, bytes: 30 };
    assert_eq!(usage(store, now).await, expected);
}

/// A task is queued at most once, and a place in the queue changes together with the record.
pub(super) async fn a_task_has_one_place(store: &impl TaskStore, now: u64) {
    let id = insert(store, now, &task(now, "1")).await;
    let enqueue = |read, content: &'static str| TaskWrite { queue: QueueAction::Enqueue, ..write(read, content) };
    let second = replaced(&replace(store, now, id, enqueue(1, "2")).await);
    assert_eq!(usage(store, now).await.queued, 1, "it was queued already");
    let ticket = claim_this(store, now, LONG_LEASE, id).await;
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "once");
    let third = replaced(&replace(store, now, id, enqueue(second, "3")).await);
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "it runs, and does not have to be queued");

    // The run ends without an end of the task.
    let conflict = TaskWrite { queue: QueueAction::Done, ticket: Some(ticket), ..write(second, "x") };
    assert!(matches!(replace(store, now, id, conflict).await, ReplaceOutcome::Conflict(_)));
    assert_eq!(usage(store, now).await.claimed, 1, "a conflict changes nothing");
    let park = TaskWrite { queue: QueueAction::Done, ticket: Some(ticket), ..write(third, "4") };
    let fourth = replaced(&replace(store, now, id, park).await);
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "it waits for something else");
    let expected = TaskUsage { kept: 1, unfinished: 1, queued: 0, claimed: 0, bytes: 1 };
    assert_eq!(usage(store, now).await, expected);
    assert!(!super::renew(store, now, ticket, LONG_LEASE).await, "there is no lease any more");
    let late = TaskWrite { ticket: Some(ticket), ..write(fourth, "x") };
    assert_eq!(replace(store, now, id, late).await, ReplaceOutcome::LeaseLost, "nor a right to write");

    let fifth = replaced(&replace(store, now, id, enqueue(fourth, "5")).await);
    let next = claim_this(store, now, LONG_LEASE, id).await;
    assert_eq!(next.run, 2, "each claim is a run");
    let late = TaskWrite { ticket: Some(ticket), ..write(fifth, "x") };
    assert_eq!(replace(store, now, id, late).await, ReplaceOutcome::LeaseLost, "the run before is over");
    let step = TaskWrite { ticket: Some(next), ..write(fifth, "6") };
    replaced(&replace(store, now, id, step).await);
    assert_eq!(load(store, now, id).await.expect("it is there").task.content, "6");
}

pub(super) async fn finished_tasks_are_not_queued(store: &impl TaskStore, now: u64) {
    let (first, second) = (insert(store, now, &task(now, "1")).await, insert(store, now, &task(now, "2")).await);
    // Cancelled before it runs, whatever the caller says about the queue.
    let cancel = TaskWrite { queue: QueueAction::Keep, ..finish(1, "cancelled") };
    replaced(&replace(store, now, first, cancel).await);
    let ticket = claim_this(store, now, LONG_LEASE, second).await;
    // Cancelled while it runs.
    replaced(&replace(store, now, second, finish(1, "cancelled")).await);
    assert!(!super::renew(store, now, ticket, LONG_LEASE).await, "the worker learns it");
    assert!(!super::release(store, now, ticket).await, "and cannot give it back");
    let late = TaskWrite { ticket: Some(ticket), ..finish(version(store, now, second).await, "done") };
    assert_eq!(replace(store, now, second, late).await, ReplaceOutcome::LeaseLost);
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "nobody runs what is finished");
    let finished =
        NewTask { id: id(), task: StoredTask { is_finished: true, ..task(now, "3") }, start: TaskStart::Queued };
    try_insert(store, now, finished).await.expect("there is room");
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "nobody runs what is finished");
    let usage = usage(store, now).await;
    assert_eq!((usage.kept, usage.unfinished, usage.queued, usage.claimed), (3, 0, 0, 0));
}

/// A call that becomes a task while it runs is claimed by its worker from the beginning.
pub(super) async fn tasks_begin_claimed(store: &impl TaskStore, now: u64) {
    let before = insert(store, now, &task(now, "before")).await;
    let mine = id();
    let inserted = try_insert(store, now, claimed(mine, &task(now, "mine"), LONG_LEASE)).await.expect("there is room");
    let ticket = inserted.ticket.expect("it is claimed");
    assert_eq!((inserted.version, ticket.id, ticket.run), (1, mine, 1));
    let after = insert(store, now, &task(now, "after")).await;
    let expected = TaskUsage { kept: 3, unfinished: 3, queued: 2, claimed: 1, bytes: 15 };
    assert_eq!(usage(store, now).await, expected);
    claim_this(store, now, LONG_LEASE, before).await;
    claim_this(store, now, LONG_LEASE, after).await;
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "it runs");
    assert!(super::renew(store, now, ticket, LONG_LEASE).await);
    let step = TaskWrite { ticket: Some(ticket), ..write(1, "a step") };
    let version = replaced(&replace(store, now, mine, step).await);
    let end = TaskWrite { ticket: Some(ticket), ..finish(version, "the end") };
    replaced(&replace(store, now, mine, end).await);
    assert!(!super::renew(store, now, ticket, LONG_LEASE).await);
    assert_eq!(usage(store, now).await.claimed, 2);
}

pub(super) async fn each_task_is_claimed_once(store: impl TaskStore, now: u64) {
    let store = Arc::new(store);
    let mut ids = BTreeSet::new();
    for _ in 0..60 {
        ids.insert(insert(&*store, now, &task(now, "")).await);
    }
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut done = Vec::new();
                while let Some(claimed) = claim(&*store, now, LONG_LEASE).await {
                    let end = TaskWrite { ticket: Some(claimed.ticket), ..finish(claimed.task.version, "done") };
                    replaced(&replace(&*store, now, claimed.ticket.id, end).await);
                    done.push(claimed.ticket.id);
                }
                done
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.append(&mut worker.await.expect("the worker ends"));
    }
    assert_eq!(all.len(), 60, "each was claimed once");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), ids, "and none was forgotten");
    let usage = usage(&*store, now).await;
    assert_eq!((usage.kept, usage.unfinished, usage.queued, usage.claimed), (60, 0, 0, 0));
}
