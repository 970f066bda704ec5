//! Tests for implementations of [`SessionStore`] and [`EventStore`].
//!
//! Each function takes a function that creates an empty store, and panics if the store does not behave as its trait
//! requires. They wait with `tokio::time`, so a store that uses the same clock can be tested with a paused one.
//!
//! # Examples
//!
//! ```
//! use mcp_session::{MemoryEventStore, MemorySessionStore, store_tests};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! store_tests::check_session_store(async || MemorySessionStore::new()).await;
//! store_tests::check_event_store(async || MemoryEventStore::default()).await;
//! # }
//! ```

use std::time::Duration;

use bytes::Bytes;
use mcp_kernel::server::Principal;
use mcp_types::{LoggingLevel, RawObject, Revision};
use tokio::time::{Instant, sleep};

use crate::{
    EventStore, RecordVersion, Replay, SaveOutcome, SessionId, SessionRecord, SessionStore, StoredEvent,
    VersionedRecord,
};

/// Tests an implementation of [`SessionStore`].
///
/// # Panics
///
/// Panics if the store does not behave as the trait requires.
// S4.115, S4.116
pub async fn check_session_store<S: SessionStore>(make: impl AsyncFn() -> S) {
    records_survive(&make().await).await;
    versions_are_compared(&make().await).await;
    records_go_in_time(&make().await).await;
    records_are_removed(&make().await).await;
    one_of_many_wins(make().await).await;
}

/// Tests an implementation of [`EventStore`].
///
/// # Panics
///
/// Panics if the store does not behave as the trait requires.
// S4.117
pub async fn check_event_store<S: EventStore>(make: impl AsyncFn() -> S) {
    events_come_back(&make().await).await;
    streams_are_apart(&make().await).await;
    sessions_are_forgotten(&make().await).await;
    any_bytes_survive(&make().await).await;
    the_newest_are_left(&make().await).await;
    many_can_append(make().await).await;
}

/// Returns a record with a value in every member.
pub(crate) fn record() -> SessionRecord {
    let text = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"ein Prüfer 🦀","version":"1"}}"#;
    let initialize = RawObject::parse(text).expect("the text is an object");
    let principal = Principal::new(Some("https://issuer.example/ü"), "ann|🦀 \"quoted\"\n\u{0}");
    let mut record = SessionRecord::new(initialize, Revision::V2025_11_25, Some(principal));
    record.is_ready = true;
    record.log_level = LoggingLevel::Warning;
    record.subscriptions = vec!["file:///a b".into(), String::new(), "test://ünïcode/🦀".into()];
    record
}

fn id() -> SessionId {
    SessionId::random().expect("randomness")
}

const MINUTE: Duration = Duration::from_secs(60);

async fn load(store: &impl SessionStore, id: SessionId) -> Option<VersionedRecord> {
    store.load(id).await.expect("the store responds")
}

async fn save(
    store: &impl SessionStore,
    id: SessionId,
    record: &SessionRecord,
    read: RecordVersion,
    time_to_live: Duration,
) -> SaveOutcome {
    store.save(id, record.clone(), read, time_to_live).await.expect("the store responds")
}

fn saved(saved: SaveOutcome) -> RecordVersion {
    match saved {
        SaveOutcome::Saved(version) => version,
        SaveOutcome::Conflict(found) => panic!("it was not saved: there is {found:?}"),
    }
}

async fn records_survive(store: &impl SessionStore) {
    assert_eq!(load(store, id()).await, None, "there is nothing at the beginning");
    let plain = SessionRecord::new(RawObject::empty(), Revision::V2025_03_26, None);
    let mut large = record();
    large.subscriptions = (0..20_000).map(|number| format!("test://large/{number}/{}", "ü".repeat(20))).collect();
    let mut anonymous = record();
    anonymous.principal = Some(Principal::new(None, ""));
    for record in [plain, record(), large, anonymous] {
        let id = id();
        let version = saved(save(store, id, &record, RecordVersion::NONE, MINUTE).await);
        assert_ne!(version, RecordVersion::NONE, "what is there has a version");
        assert_eq!(load(store, id).await, Some(VersionedRecord { record, version }), "what is found is what was saved");
    }
}

async fn versions_are_compared(store: &impl SessionStore) {
    let (id, mut changed) = (id(), record());
    let nothing = save(store, id, &changed, RecordVersion(7), MINUTE).await;
    assert_eq!(nothing, SaveOutcome::Conflict(None), "what is not there has no version");
    let first = saved(save(store, id, &record(), RecordVersion::NONE, MINUTE).await);
    let there = SaveOutcome::Conflict(Some(Box::new(VersionedRecord { record: record(), version: first })));
    changed.subscriptions.push("test://one/more".into());
    assert_eq!(save(store, id, &changed, RecordVersion::NONE, MINUTE).await, there, "it is there already");
    assert_eq!(save(store, id, &changed, RecordVersion(first.0 + 1), MINUTE).await, there, "no such version was saved");
    assert_eq!(load(store, id).await.map(|found| found.record), Some(record()), "what was not saved changes nothing");
    let second = saved(save(store, id, &changed, first, MINUTE).await);
    assert!(second > first, "versions grow");
    let there = SaveOutcome::Conflict(Some(Box::new(VersionedRecord { record: changed.clone(), version: second })));
    assert_eq!(save(store, id, &record(), first, MINUTE).await, there, "another process was faster");
    assert_eq!(load(store, id).await, Some(VersionedRecord { record: changed, version: second }));
}

async fn records_go_in_time(store: &impl SessionStore) {
    let [short, touched, saved_again] = [(); 3].map(|()| id());
    let (short_time, pause) = (Duration::from_millis(1000), Duration::from_millis(600));
    let mut versions = Vec::new();
    for id in [short, touched, saved_again] {
        versions.push(saved(save(store, id, &record(), RecordVersion::NONE, short_time).await));
    }
    sleep(pause).await;
    assert!(store.touch(touched, MINUTE).await.expect("the store responds"), "it is there");
    let version = versions.last().copied().expect("three were saved");
    let version = saved(save(store, saved_again, &record(), version, MINUTE).await);
    sleep(pause).await;
    assert_eq!(load(store, short).await, None, "its time is over");
    assert!(!store.touch(short, MINUTE).await.expect("the store responds"), "what is gone stays gone");
    assert_eq!(load(store, short).await, None, "what is gone stays gone");
    assert!(load(store, touched).await.is_some(), "who is in use stays");
    assert_eq!(load(store, saved_again).await.map(|found| found.version), Some(version), "who is saved stays");
    saved(save(store, short, &record(), RecordVersion::NONE, MINUTE).await);
    assert!(load(store, short).await.is_some(), "there can be one again");
    // Another process may have extended it further.
    assert!(store.touch(touched, short_time).await.expect("the store responds"));
    let version = saved(save(store, saved_again, &record(), version, short_time).await);
    sleep(2 * pause).await;
    assert!(load(store, touched).await.is_some(), "touching does not shorten its life");
    assert_eq!(load(store, saved_again).await.map(|found| found.version), Some(version), "nor does saving");
}

async fn records_are_removed(store: &impl SessionStore) {
    let (gone, stays) = (id(), id());
    for id in [gone, stays] {
        saved(save(store, id, &record(), RecordVersion::NONE, MINUTE).await);
    }
    let version = load(store, gone).await.map(|found| found.version).expect("it was saved");
    assert!(store.remove(gone).await.expect("the store responds"), "it was there");
    assert!(!store.remove(gone).await.expect("the store responds"), "but not twice");
    assert_eq!(load(store, gone).await, None);
    assert!(!store.touch(gone, MINUTE).await.expect("the store responds"));
    assert_eq!(
        save(store, gone, &record(), version, MINUTE).await,
        SaveOutcome::Conflict(None),
        "who was late does not revive it"
    );
    assert!(load(store, stays).await.is_some(), "others stay");
}

async fn one_of_many_wins(store: impl SessionStore) {
    let (store, id) = (std::sync::Arc::new(store), id());
    let mut read = RecordVersion::NONE;
    for round in 0..5 {
        let tasks: Vec<_> = (0..16)
            .map(|task| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move {
                    let mut record = record();
                    record.subscriptions = vec![format!("test://{round}/{task}")];
                    let saved = save(&*store, id, &record, read, MINUTE).await;
                    (record, saved)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            let (record, saved) = task.await.expect("the task ends");
            if let SaveOutcome::Saved(version) = saved {
                winners.push(VersionedRecord { record, version });
            }
        }
        assert_eq!(winners.len(), 1, "one of those who have read the same can save: {winners:?}");
        assert_eq!(load(&*store, id).await, winners.pop(), "and that is what is there");
        read = load(&*store, id).await.map_or(RecordVersion::NONE, |found| found.version);
    }
}

fn event(number: u64, message: impl Into<Bytes>) -> StoredEvent {
    StoredEvent { number, message: message.into() }
}

/// Returns the events of a stream, if none is missing.
async fn replay(store: &impl EventStore, session: SessionId, stream: u64, after: u64) -> Option<Vec<StoredEvent>> {
    let Replay { events, is_whole } = store.replay(session, stream, after).await.expect("the store responds");
    is_whole.then_some(events)
}

/// Replays until the events are the expected ones: storing an event may take a while.
async fn expect(
    store: &impl EventStore,
    (session, stream, after): (SessionId, u64, u64),
    right: Option<Vec<StoredEvent>>,
) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let found = replay(store, session, stream, after).await;
        if found == right {
            return;
        }
        assert!(Instant::now() < end, "after {after} of {stream} there is {found:?} instead of {right:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn events_come_back(store: &impl EventStore) {
    let mine = id();
    assert_eq!(replay(store, mine, 1, 0).await, None, "there is nothing at the beginning");
    // Numbers grow, and may have holes.
    let events: Vec<_> = [1, 2, 5, 6, 1000, 1 << 40].map(|number| event(number, format!("message {number}"))).into();
    for event in &events {
        store.append(mine, 1, event.clone());
    }
    for (after, from) in [(1 << 40, 6), (1000, 5), (6, 4), (5, 3), (3, 2), (2, 2), (1, 1), (0, 0)] {
        expect(store, (mine, 1, after), Some(events[from..].to_vec())).await;
    }
    store.append(mine, 1, event(1 << 41, "one more"));
    expect(store, (mine, 1, 1 << 40), Some(vec![event(1 << 41, "one more")])).await;
}

async fn streams_are_apart(store: &impl EventStore) {
    let (mine, yours) = (id(), id());
    store.append(mine, 1, event(1, "mine 1"));
    store.append(mine, u64::MAX, event(2, "mine max"));
    store.append(yours, 1, event(1, "yours 1"));
    store.append(mine, 1, event(3, "mine 3"));
    expect(store, (mine, 1, 0), Some(vec![event(1, "mine 1"), event(3, "mine 3")])).await;
    expect(store, (mine, u64::MAX, 1), Some(vec![event(2, "mine max")])).await;
    expect(store, (yours, 1, 0), Some(vec![event(1, "yours 1")])).await;
    for (session, stream) in [(mine, 2), (yours, u64::MAX), (id(), 1)] {
        assert_eq!(replay(store, session, stream, 0).await, None, "there is no such stream");
    }
}

async fn sessions_are_forgotten(store: &impl EventStore) {
    let (gone, stays) = (id(), id());
    for session in [gone, stays] {
        for stream in 1..=3 {
            store.append(session, stream, event(1, "something"));
            expect(store, (session, stream, 0), Some(vec![event(1, "something")])).await;
        }
    }
    store.forget(gone);
    store.forget(id());
    for stream in 1..=3 {
        expect(store, (gone, stream, 0), None).await;
        expect(store, (stays, stream, 0), Some(vec![event(1, "something")])).await;
    }
    // An instance that does not know of the removal does not bring the session back.
    for stream in [1, 4] {
        store.append(gone, stream, event(2, "late"));
        store.append(stays, stream, event(2, "something more"));
        expect(store, (stays, stream, 1), Some(vec![event(2, "something more")])).await;
        expect(store, (gone, stream, 1), None).await;
    }
    store.forget(gone);
    store.append(gone, 1, event(3, "later"));
    expect(store, (gone, 1, 2), None).await;
}

async fn any_bytes_survive(store: &impl EventStore) {
    let mine = id();
    let all: Vec<u8> = (0..=255).collect();
    let large = "ü".repeat(100 * 1024);
    let events = vec![
        event(1, ""),
        event(2, "ünï\u{0}code 🦀\r\n\r\ndata: x"),
        event(3, all),
        event(4, large),
        event(5, "last"),
    ];
    for event in &events {
        store.append(mine, 1, event.clone());
    }
    expect(store, (mine, 1, 0), Some(events)).await;
}

/// Whatever the limits of a store: a replay is in order, ends with the newest event, and states whether one is missing.
async fn the_newest_are_left(store: &impl EventStore) {
    let (mine, count) = (id(), 3000);
    for number in 1..=count {
        store.append(mine, 1, event(number, number.to_string()));
        if number % 100 == 0 {
            expect(store, (mine, 1, number - 1), Some(vec![event(number, number.to_string())])).await;
        }
    }
    let mut was_whole = false;
    for after in [0, 1, 2, 10, 100, 500, 1000, 1500, 2000, 2500, 2900, 2990, 2999, 3000] {
        let Replay { events, is_whole } = store.replay(mine, 1, after).await.expect("the store responds");
        assert!(is_whole || !was_whole, "who has missed less gets it as well: after {after}");
        let first = events.first().map_or(count + 1, |event| event.number);
        assert!(first > after && is_whole == (first == after + 1), "after {after} comes {first}: {is_whole}");
        let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (first..=count).collect::<Vec<_>>(), "after {after}");
        assert!(after == count || !events.is_empty(), "the newest is there: after {after}");
        was_whole = is_whole;
    }
    assert!(was_whole, "something is kept");
}

async fn many_can_append(store: impl EventStore) {
    let (store, mine) = (std::sync::Arc::new(store), id());
    let tasks: Vec<_> = (0..8)
        .map(|stream| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                for number in 1..=50 {
                    store.append(mine, stream, event(number, format!("{stream}/{number}")));
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("the task ends");
    }
    for stream in 0..8 {
        let all = (1..=50).map(|number| event(number, format!("{stream}/{number}"))).collect();
        expect(&*store, (mine, stream, 0), Some(all)).await;
    }
}
