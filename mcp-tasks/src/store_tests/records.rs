//! Records and their versions.

use std::sync::Arc;

use super::{
    HOUR, claim, finish, id, insert, load, owner, queued, replace, replaced, task, try_insert, usage, version, write,
};
use crate::{QueueAction, ReplaceOutcome, StoredTask, TaskStore, TaskStoreError, TaskUsage, TaskWrite, VersionedTask};

pub(super) async fn tasks_survive(store: &impl TaskStore, now: u64) {
    assert_eq!(load(store, now, id()).await, None, "there is nothing at the beginning");
    assert_eq!(usage(store, now).await, TaskUsage::default(), "there is nothing at the beginning");
    let all_bytes: Vec<u8> = (0..=255).collect();
    let anonymous = StoredTask { owner: None, tool: "ünï|code 🦀\n\u{0}".into(), ..task(now, "anonymous") };
    let nameless = StoredTask { tool: "".into(), owner: Some(owner(255)), ..task(now, "x") };
    let tasks = [task(now, ""), task(now, all_bytes), task(now, "ü".repeat(50_000)), anonymous, nameless];
    let mut ids = Vec::new();
    for task in &tasks {
        ids.push(insert(store, now, task).await);
    }
    for (id, task) in ids.iter().zip(&tasks) {
        let found = load(store, now, *id).await;
        let expected = VersionedTask { task: task.clone(), version: 1, run: 0 };
        assert_eq!(found, Some(expected), "a task is found as it was inserted");
    }
    assert_eq!(load(store, now, id()).await, None, "other ids have no task");
    let bytes = tasks.iter().map(|task| task.content.len()).sum();
    assert_eq!(usage(store, now).await, TaskUsage { kept: 5, unfinished: 5, queued: 5, claimed: 0, bytes });
    // A second task with the same id.
    let other = try_insert(store, now, queued(ids[0], &task(now, "other"))).await;
    assert!(matches!(other, Err(TaskStoreError::Failed(_))), "ids are unique: {other:?}");
    assert_eq!(load(store, now, ids[0]).await.map(|found| found.task), Some(tasks[0].clone()));
    assert_eq!(usage(store, now).await.kept, 5);
}

pub(super) async fn versions_are_compared(store: &impl TaskStore, now: u64) {
    let missing = replace(store, now, id(), write(1, "x")).await;
    assert_eq!(missing, ReplaceOutcome::Gone, "a task that does not exist is not replaced");
    let id = insert(store, now, &task(now, "first")).await;
    let there = VersionedTask { task: task(now, "first"), version: 1, run: 0 };
    for read in [0, 2, u64::from(u32::MAX)] {
        let outcome = replace(store, now, id, write(read, "second")).await;
        assert_eq!(outcome, ReplaceOutcome::Conflict(Box::new(there.clone())), "it does not have version {read}");
    }
    assert_eq!(load(store, now, id).await, Some(there), "what was not replaced stays");
    let second = replaced(&replace(store, now, id, write(1, "second")).await);
    assert!(second > 1, "versions grow");
    let there = VersionedTask { task: task(now, "second"), version: second, run: 0 };
    assert_eq!(load(store, now, id).await, Some(there.clone()), "only the content is another one");
    let late = replace(store, now, id, write(1, "late")).await;
    assert_eq!(late, ReplaceOutcome::Conflict(Box::new(there)), "another write was faster");
    // A claim counts the run, and leaves the version alone.
    assert!(claim(store, now, super::LONG_LEASE).await.is_some());
    let found = load(store, now, id).await.expect("it is there");
    assert_eq!((found.version, found.run), (second, 1));
    let third = replaced(&replace(store, now, id, write(second, "")).await);
    assert_eq!(usage(store, now).await.bytes, 0, "bytes are those of the latest version");
    assert!(third > second);
}

pub(super) async fn finished_tasks_are_final(store: &impl TaskStore, now: u64) {
    let id = insert(store, now, &task(now, "a")).await;
    let version = replaced(&replace(store, now, id, finish(1, "the end")).await);
    let end = VersionedTask { task: StoredTask { is_finished: true, ..task(now, "the end") }, version, run: 0 };
    for queue in [QueueAction::Keep, QueueAction::Enqueue, QueueAction::Done] {
        for is_finished in [false, true] {
            let outcome = replace(store, now, id, TaskWrite { queue, is_finished, ..write(version, "x") }).await;
            assert_eq!(outcome, ReplaceOutcome::Conflict(Box::new(end.clone())), "the end is final");
        }
    }
    assert_eq!(load(store, now, id).await, Some(end));
    let expected = TaskUsage { kept: 1, unfinished: 0, queued: 0, claimed: 0, bytes: 7 };
    assert_eq!(usage(store, now).await, expected, "it is kept");
    assert_eq!(load(store, now + HOUR / 2, id).await.map(|found| found.version), Some(version), "for its whole life");
}

pub(super) async fn tasks_are_removed(store: &impl TaskStore, now: u64) {
    let (gone, stays) = (insert(store, now, &task(now, "gone")).await, insert(store, now, &task(now, "stays")).await);
    assert!(store.remove(now, gone).await.expect("the store responds"), "it was there");
    assert!(!store.remove(now, gone).await.expect("the store responds"), "but not twice");
    assert_eq!(load(store, now, gone).await, None);
    assert_eq!(replace(store, now, gone, write(1, "x")).await, ReplaceOutcome::Gone, "a late write does not revive it");
    super::claim_this(store, now, super::LONG_LEASE, stays).await;
    assert_eq!(claim(store, now, super::LONG_LEASE).await, None, "it is not queued any more");
    // One that is claimed, and one that is finished.
    assert!(store.remove(now, stays).await.expect("the store responds"));
    let finished = insert(store, now, &task(now, "a")).await;
    replaced(&replace(store, now, finished, finish(1, "b")).await);
    assert!(store.remove(now, finished).await.expect("the store responds"));
    assert_eq!(usage(store, now).await, TaskUsage::default(), "nothing is left");
}

pub(super) async fn one_of_many_replaces(store: impl TaskStore, now: u64) {
    let store = Arc::new(store);
    let id = insert(&*store, now, &task(now, "")).await;
    for round in 0..5 {
        let read = version(&*store, now, id).await;
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let store = Arc::clone(&store);
                let content = format!("{round}/{writer}");
                tokio::spawn(async move {
                    let outcome = replace(&*store, now, id, write(read, content.clone())).await;
                    (content, outcome)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for writer in writers {
            let (content, outcome) = writer.await.expect("the writer ends");
            match outcome {
                ReplaceOutcome::Replaced(version) => winners.push((content, version)),
                ReplaceOutcome::Conflict(_) => {}
                ReplaceOutcome::LeaseLost | ReplaceOutcome::Gone => panic!("it is there, and without a lease"),
            }
        }
        let [(content, version)] = &winners[..] else {
            panic!("one of those who have read the same wins: {winners:?}")
        };
        let found = load(&*store, now, id).await.expect("it is there");
        assert_eq!((&found.task.content[..], found.version), (content.as_bytes(), *version));
    }
}
