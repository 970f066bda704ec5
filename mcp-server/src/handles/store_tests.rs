//! Tests for implementations of [`HandleStore`].
//!
//! # Examples
//!
//! ```
//! use std::cell::Cell;
//! use std::time::Duration;
//!
//! use mcp_server::handles::{MemoryHandleStore, store_tests};
//!
//! # async fn test() {
//! // This store knows no time but that of its arguments. Others need the real time, and to sleep.
//! let now = Cell::new(1_000_000);
//! let sleep = async |time: Duration| now.set(now.get() + time.as_secs());
//! store_tests::check_handle_store(async || MemoryHandleStore::default(), || now.get(), sleep).await;
//! # }
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::handles::{HandleKey, HandleOwner, HandleRecord, HandleStore, ReplaceOutcome, VersionedHandle};

/// Tests an implementation of [`HandleStore`]. `make` creates an empty store, `now` returns the seconds since the Unix
/// epoch, and `sleep` waits.
///
/// # Panics
///
/// Panics if the store does not behave as the trait requires.
pub async fn check_handle_store<S: HandleStore>(
    make: impl AsyncFn() -> S,
    now: impl Fn() -> u64,
    sleep: impl AsyncFn(Duration),
) {
    records_survive(&make().await, now()).await;
    versions_are_compared(&make().await, now()).await;
    records_are_taken(&make().await, now()).await;
    owners_are_apart(&make().await, now()).await;
    one_of_many_wins(&make().await, now()).await;
    records_expire(&make().await, &now, &sleep).await;
}

fn key(number: u8) -> HandleKey {
    HandleKey([number; 32])
}

fn owner(number: u8) -> HandleOwner {
    HandleOwner([number; 32])
}

fn record(now: u64, content: impl Into<Vec<u8>>) -> HandleRecord {
    HandleRecord { owner: Some(owner(1)), content: content.into(), expires: now + 60 }
}

async fn insert(store: &impl HandleStore, now: u64, key: HandleKey, record: &HandleRecord) {
    store.insert(now, key, record.clone()).await.expect("there is room");
}

async fn load(store: &impl HandleStore, now: u64, key: HandleKey) -> Option<VersionedHandle> {
    store.load(now, key).await.expect("the store responds")
}

async fn take(store: &impl HandleStore, now: u64, key: HandleKey) -> Option<HandleRecord> {
    store.take(now, key).await.expect("the store responds")
}

async fn replace(
    store: &impl HandleStore,
    now: u64,
    key: HandleKey,
    record: &HandleRecord,
    read: u64,
) -> ReplaceOutcome {
    store.replace(now, key, record.clone(), read).await.expect("the store responds")
}

async fn list(store: &impl HandleStore, now: u64, owner: HandleOwner) -> Vec<(HandleKey, VersionedHandle)> {
    let mut found = store.list(now, owner).await.expect("the store responds");
    found.sort_by_key(|(key, _)| *key);
    found
}

async fn records_survive(store: &impl HandleStore, now: u64) {
    assert_eq!(load(store, now, key(1)).await, None, "there is nothing at the beginning");
    let all_bytes: Vec<u8> = (0..=255).collect();
    let anonymous = HandleRecord { owner: None, ..record(now, "anonymous") };
    let records = [record(now, ""), record(now, all_bytes), record(now, "ü".repeat(50_000)), anonymous];
    for (number, record) in (1..).zip(&records) {
        insert(store, now, key(number), record).await;
    }
    for (number, record) in (1..).zip(records) {
        let found = load(store, now, key(number)).await;
        assert_eq!(found, Some(VersionedHandle { record, version: 1 }), "a record is found as it was inserted");
    }
    assert_eq!(load(store, now, key(9)).await, None, "other keys have no record");
}

async fn versions_are_compared(store: &impl HandleStore, now: u64) {
    let (first, second) = (record(now, "first"), record(now, "second"));
    let missing = replace(store, now, key(1), &first, 1).await;
    assert_eq!(missing, ReplaceOutcome::Conflict(None), "a record that does not exist is not replaced");
    assert_eq!(load(store, now, key(1)).await, None, "and not created");
    insert(store, now, key(1), &first).await;
    let there = ReplaceOutcome::Conflict(Some(VersionedHandle { record: first.clone(), version: 1 }));
    for read in [0, 2, u64::from(u32::MAX)] {
        assert_eq!(replace(store, now, key(1), &second, read).await, there, "it does not have version {read}");
    }
    let of_other_owner = HandleRecord { owner: Some(owner(2)), ..second.clone() };
    let ReplaceOutcome::Replaced(version) = replace(store, now, key(1), &of_other_owner, 1).await else {
        panic!("the version is the right one");
    };
    assert!(version > 1, "versions grow");
    let there = VersionedHandle { record: second, version };
    assert_eq!(load(store, now, key(1)).await, Some(there.clone()), "the value was replaced, and the owner stayed");
    assert_eq!(list(store, now, owner(2)).await, Vec::new(), "the owner stayed");
    let late = replace(store, now, key(1), &first, 1).await;
    assert_eq!(late, ReplaceOutcome::Conflict(Some(there)), "another call was faster");
}

async fn records_are_taken(store: &impl HandleStore, now: u64) {
    let (taken, stays) = (record(now, "taken"), record(now, "stays"));
    insert(store, now, key(1), &taken).await;
    insert(store, now, key(2), &stays).await;
    assert_eq!(take(store, now, key(1)).await, Some(taken.clone()));
    assert_eq!(take(store, now, key(1)).await, None, "it can be taken once");
    assert_eq!(load(store, now, key(1)).await, None);
    assert_eq!(replace(store, now, key(1), &taken, 1).await, ReplaceOutcome::Conflict(None), "it stays removed");
    assert_eq!(take(store, now, key(3)).await, None, "there was none");
    assert_eq!(load(store, now, key(2)).await.map(|found| found.record), Some(stays), "others stay");
}

async fn owners_are_apart(store: &impl HandleStore, now: u64) {
    let of = |owner, content: &str| HandleRecord { owner, ..record(now, content) };
    let (one, two) = (of(Some(owner(1)), "one"), of(Some(owner(1)), "two"));
    let (other, anonymous) = (of(Some(owner(2)), "other"), of(None, "anonymous"));
    for (number, record) in (1..).zip([&one, &other, &two, &anonymous]) {
        insert(store, now, key(number), record).await;
    }
    let versioned = |record: &HandleRecord| VersionedHandle { record: record.clone(), version: 1 };
    let expected = vec![(key(1), versioned(&one)), (key(3), versioned(&two))];
    assert_eq!(list(store, now, owner(1)).await, expected);
    assert_eq!(list(store, now, owner(2)).await, vec![(key(2), versioned(&other))]);
    assert_eq!(list(store, now, owner(3)).await, Vec::new());
    take(store, now, key(1)).await.expect("it is there");
    assert_eq!(list(store, now, owner(1)).await, vec![(key(3), versioned(&two))], "taken records are not listed");
}

async fn one_of_many_wins(store: &impl HandleStore, now: u64) {
    insert(store, now, key(1), &record(now, "first")).await;
    let contents: Vec<_> = (0..16).map(|call| record(now, format!("call {call}"))).collect();
    let calls = contents.iter().map(|record| replace(store, now, key(1), record, 1));
    let outcomes = join_all(calls).await;
    let is_replaced = |outcome: &&ReplaceOutcome| matches!(outcome, ReplaceOutcome::Replaced(_));
    assert_eq!(outcomes.iter().filter(is_replaced).count(), 1, "one of those that read the same version wins");
    let taken = join_all((0..16).map(|_| take(store, now, key(1)))).await;
    assert_eq!(taken.iter().flatten().count(), 1, "one of several calls takes the record");
}

async fn records_expire(store: &impl HandleStore, now: &impl Fn() -> u64, sleep: &impl AsyncFn(Duration)) {
    let start = now();
    let expiring = |seconds, content: &str| HandleRecord { expires: start + seconds, ..record(start, content) };
    let (short, renewed) = (expiring(2, "short"), expiring(2, "renewed"));
    for (number, record) in (1..).zip([&short, &renewed]) {
        insert(store, start, key(number), record).await;
    }
    let renewed = expiring(60, "renewed");
    assert!(matches!(replace(store, start, key(2), &renewed, 1).await, ReplaceOutcome::Replaced(_)));
    sleep(Duration::from_secs(3)).await;
    let later = now();
    assert_eq!(load(store, later, key(1)).await, None, "its time is over");
    assert_eq!(take(store, later, key(1)).await, None, "its time is over");
    assert_eq!(replace(store, later, key(1), &expiring(60, "late"), 1).await, ReplaceOutcome::Conflict(None));
    let keys: Vec<_> = list(store, later, owner(1)).await.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [key(2)], "only the one that was renewed is there");
    let found = load(store, later, key(2)).await.map(|found| found.record);
    assert_eq!(found, Some(renewed), "replacing a record sets its expiry");
}

/// Polls all futures in turn until all are ready.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<Option<Pin<Box<F>>>> = futures.map(|future| Some(Box::pin(future))).collect();
    let mut outputs = Vec::new();
    poll_fn(move |cx| {
        for slot in &mut pending {
            if let Some(future) = slot
                && let Poll::Ready(output) = future.as_mut().poll(cx)
            {
                outputs.push(output);
                *slot = None;
            }
        }
        if pending.iter().all(Option::is_none) { Poll::Ready(std::mem::take(&mut outputs)) } else { Poll::Pending }
    })
    .await
}
