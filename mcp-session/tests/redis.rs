//! Sessions and events in a Redis server that each test starts for itself.
//!
//! The program `redis-server` has to be there (Debian: `apt-get install redis-server`). Where it cannot be, the variable
//! `MCP_WITHOUT_REDIS` lets these tests do nothing, except in CI.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

#[path = "redis/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use mcp_kernel::server::Principal;
use mcp_session::{
    EventStore as _, Redis, RedisEvents, RedisOptions, Replay, Saved, SessionId, SessionRecord, SessionStore as _,
    StoredEvent, Version, Versioned,
};
use mcp_types::{RawObject, Revision};
use tokio::time::{Instant, sleep};

use server::{Server, Way, limited};

const HOUR: Duration = Duration::from_secs(3600);

fn id() -> SessionId {
    SessionId::random().unwrap()
}

fn record(name: &str) -> SessionRecord {
    let initialize = RawObject::parse(&format!(r#"{{"clientInfo":{{"name":"{name}"}}}}"#)).unwrap();
    SessionRecord::new(initialize, Revision::V2025_11_25, Some(Principal::new(Some("https://issuer.example"), "alice")))
}

/// With more time than usual, because the machine may have other things to do.
fn options() -> RedisOptions {
    RedisOptions::default().command_limit(Duration::from_secs(5))
}

async fn connect(server: &Server) -> Redis {
    connect_with(server, options()).await
}

async fn connect_with(server: &Server, options: RedisOptions) -> Redis {
    Redis::connect(&server.url(), options).await.unwrap()
}

fn event(number: u64) -> StoredEvent {
    StoredEvent { number, message: Bytes::from(format!("message {number}")) }
}

fn append(events: &RedisEvents, session: SessionId, stream: u64, numbers: impl IntoIterator<Item = u64>) {
    numbers.into_iter().for_each(|number| events.append(session, stream, event(number)));
}

/// The numbers that are replayed if these are all, after it was checked that each comes with its message.
async fn replay(events: &RedisEvents, session: SessionId, stream: u64, after: u64) -> Option<Vec<u64>> {
    let replayed = events.replay(session, stream, after).await.unwrap();
    for found in &replayed.events {
        assert_eq!(*found, event(found.number));
    }
    replayed.is_whole.then(|| replayed.events.iter().map(|event| event.number).collect())
}

/// Waits until something holds.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(15);
    while !holds().await {
        assert!(Instant::now() < end, "not within 15 s: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// S4.115: of all that save the same version, one does, whichever instance it is on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writer_wins_each_version() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let id = id();
        let mut writers = Vec::new();
        for writer in 0..12 {
            let sessions = connect(&server).await.sessions();
            writers.push(tokio::spawn(async move {
                let mut won = Vec::new();
                let mut found: Option<Versioned> = None;
                while won.len() < 20 {
                    let (mut next, read) = match found.take() {
                        Some(found) => (found.record, found.version),
                        None => (record("shared"), Version::NONE),
                    };
                    next.subscriptions.push(writer.to_string());
                    match sessions.save(id, next.clone(), read, HOUR).await.unwrap() {
                        Saved::As(version) => {
                            assert_eq!(version, Version(read.0 + 1));
                            won.push(version.0);
                            found = Some(Versioned { record: next, version });
                        }
                        Saved::Not(now) => found = Some(*now.expect("nobody removes it")),
                    }
                }
                won
            }));
        }
        let mut versions = BTreeSet::new();
        for writer in writers {
            for version in writer.await.unwrap() {
                assert!(versions.insert(version), "version {version} was won twice");
            }
        }
        assert_eq!(versions, (1..=240).collect());
        let last = connect(&server).await.sessions().load(id).await.unwrap().unwrap();
        assert_eq!((last.version, last.record.subscriptions.len()), (Version(240), 240), "no change is lost");
    })
    .await;
}

#[tokio::test]
async fn records_come_and_go() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let sessions = connect(&server).await.sessions();
        let (first, second) = (id(), id());
        assert_eq!(sessions.load(first).await.unwrap(), None);
        assert!(!sessions.touch(first, HOUR).await.unwrap());
        assert!(!sessions.remove(first).await.unwrap());
        assert_eq!(sessions.save(first, record("a"), Version(1), HOUR).await.unwrap(), Saved::Not(None));

        let found = Versioned { record: record("a"), version: Version(1) };
        assert_eq!(sessions.save(first, record("a"), Version::NONE, HOUR).await.unwrap(), Saved::As(Version(1)));
        assert_eq!(sessions.load(first).await.unwrap(), Some(found.clone()));
        for wrong in [Version::NONE, Version(2), Version(u64::MAX - 1)] {
            let saved = sessions.save(first, record("b"), wrong, HOUR).await.unwrap();
            assert_eq!(saved, Saved::Not(Some(Box::new(found.clone()))));
        }
        sessions.save(first, record("b"), Version(u64::MAX), HOUR).await.unwrap_err();
        assert_eq!(sessions.load(second).await.unwrap(), None, "another session has nothing of it");
        assert!(sessions.remove(first).await.unwrap());
        assert_eq!(sessions.load(first).await.unwrap(), None);

        // The time to live, the shortest and the longest.
        sessions.save(second, record("c"), Version::NONE, Duration::from_millis(300)).await.unwrap();
        sessions.save(first, record("c"), Version::NONE, Duration::from_millis(300)).await.unwrap();
        assert!(sessions.touch(second, Duration::MAX).await.unwrap());
        assert!(sessions.load(first).await.unwrap().is_some());
        sleep(Duration::from_millis(400)).await;
        assert_eq!(sessions.load(first).await.unwrap(), None);
        assert!(!sessions.touch(first, HOUR).await.unwrap());
        assert!(sessions.load(second).await.unwrap().is_some(), "it was touched");
        sessions.save(first, record("d"), Version::NONE, Duration::MAX).await.unwrap();
        sessions.save(first, record("d"), Version(1), Duration::from_nanos(1)).await.unwrap();
        eventually("a record expires", async || sessions.load(first).await.unwrap().is_none()).await;
    })
    .await;
}

/// After an end and a beginning, everything goes on without a restart of this process.
#[tokio::test]
async fn redis_comes_back() {
    let Some(mut server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_limit(Duration::from_secs(1))).await;
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        sessions.save(id, record("a"), Version::NONE, HOUR).await.unwrap();
        append(&events, id, 0, 1..=3);
        assert_eq!(replay(&events, id, 0, 1).await, Some(vec![2, 3]));

        server.stop();
        for _ in 0..5 {
            let begin = Instant::now();
            let error = sessions.load(id).await.unwrap_err().to_string();
            assert!(error.contains("Redis does not answer: "), "{error}");
            let error = sessions.save(id, record("b"), Version(1), HOUR).await.unwrap_err().to_string();
            assert!(error.contains("Redis does not answer: "), "{error}");
            assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        }
        append(&events, id, 0, [4]);
        let error = events.replay(id, 0, 1).await.unwrap_err().to_string();
        assert!(error.contains("1 events"), "{error}");

        server.restart().await;
        eventually("sessions are found again", async || sessions.load(id).await.is_ok()).await;
        assert_eq!(sessions.load(id).await.unwrap(), None, "nothing was on a disk");
        assert_eq!(sessions.save(id, record("a"), Version::NONE, HOUR).await.unwrap(), Saved::As(Version(1)));
        // The first three are gone, and this process knows that there were some.
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!(events.dropped(), 0);
        for (after, expected) in [(0, None), (1, None), (2, None), (3, Some(vec![4])), (4, Some(vec![]))] {
            assert_eq!(replay(&events, id, 0, after).await, expected, "after {after}");
        }

        // Where it ended in between and nobody noticed, nothing fails: the end of the connection was seen.
        server.stop();
        server.restart().await;
        sleep(Duration::from_millis(100)).await;
        assert_eq!(sessions.save(id, record("a"), Version::NONE, HOUR).await.unwrap(), Saved::As(Version(1)));
    })
    .await;
}

/// A server that hangs is worse than none: each command ends in time, and what was saved was saved once.
#[tokio::test]
async fn redis_hangs() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_limit(Duration::from_millis(400))).await;
        let (sessions, id) = (redis.sessions(), id());
        sessions.save(id, record("a"), Version::NONE, HOUR).await.unwrap();
        server.freeze();
        let begin = Instant::now();
        let error = sessions.save(id, record("b"), Version(1), HOUR).await.unwrap_err().to_string();
        assert!(error.contains("nothing came within 400ms"), "{error}");
        let results = tokio::join!(sessions.load(id), sessions.touch(id, HOUR), sessions.remove(self::id()));
        assert!(results.0.is_err() && results.1.is_err() && results.2.is_err());
        assert!(begin.elapsed() < Duration::from_millis(1200), "{:?}", begin.elapsed());
        let brief = options().command_limit(Duration::from_millis(200));
        Redis::connect(&server.url(), brief).await.unwrap_err();
        server.thaw();
        eventually("sessions are found again", async || sessions.load(id).await.is_ok()).await;
        let found = sessions.load(id).await.unwrap().unwrap();
        assert!(found.version <= Version(2), "it was not done twice: {:?}", found.version);
    })
    .await;
}

/// A connection on which nothing comes any more, and which nobody closes, is replaced.
#[tokio::test]
async fn connections_go_silent() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let way = Way::to(&server).await;
        let options = options().command_limit(Duration::from_millis(400));
        let redis = Redis::connect(&way.url(), options).await.unwrap();
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        sessions.save(id, record("a"), Version::NONE, HOUR).await.unwrap();
        append(&events, id, 0, 1..=3);
        events.flush().await.unwrap();
        way.silence();
        append(&events, id, 0, 4..=6);
        let error = sessions.save(id, record("b"), Version(1), HOUR).await.unwrap_err().to_string();
        assert!(error.contains("nothing came within 400ms"), "{error}");
        let found = sessions.load(id).await.unwrap().unwrap();
        assert_eq!((found.record, found.version), (record("a"), Version(1)), "what did not arrive was not sent again");
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!((replay(&events, id, 0, 0).await, events.dropped()), (Some((1..=6).collect()), 0));
    })
    .await;
}

/// What was not written by this crate is an error, for records and for events.
#[tokio::test]
async fn garbage_is_refused() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect(&server).await;
        let (sessions, events) = (redis.sessions(), redis.events());
        let (victim, other) = (id(), id());
        sessions.save(other, record("other"), Version::NONE, HOUR).await.unwrap();
        let other_key = server.keys("mcp:session:*").await.pop().unwrap();
        let json: String = server.command(&["HGET", &other_key, "record"]).await;
        sessions.save(victim, record("victim"), Version::NONE, HOUR).await.unwrap();
        let key = server.keys("mcp:session:*").await.into_iter().find(|key| *key != other_key).unwrap();

        let cases: [(&[&str], &str); 9] = [
            (&["HSET", &key, "record", "nonsense"], "cannot be read"),
            (&["HSET", &key, "record", ""], "cannot be read"),
            (&["HSET", &key, "record", &json], "another session"),
            (&["HSET", &key, "record", r#"{"format":7}"#], "format 7"),
            (&["HSET", &key, "version", "x"], "version"),
            (&["HSET", &key, "version", "-1"], "version"),
            (&["HDEL", &key, "record"], "half a record"),
            (&["SET", &key, "text"], "WRONGTYPE"),
            (&["RPUSH", &key, "list"], "WRONGTYPE"),
        ];
        for (command, reason) in cases {
            let _: i64 = server.command(&["DEL", &key]).await;
            sessions.save(victim, record("victim"), Version::NONE, HOUR).await.unwrap();
            if !matches!(command[0], "HSET" | "HDEL") {
                let _: i64 = server.command(&["DEL", &key]).await;
            }
            let _: redis::Value = server.command(command).await;
            let error = sessions.load(victim).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{command:?}: {error}");
            sessions.save(victim, record("new"), Version(7), HOUR).await.unwrap_err();
            sessions.save(victim, record("new"), Version::NONE, HOUR).await.unwrap_err();
        }
        assert!(sessions.load(other).await.unwrap().is_some());
        assert!(sessions.remove(victim).await.unwrap(), "what cannot be read can be removed");

        // Events: a key of another type, an event of another form, and numbers that are none.
        let stream = |key: &str| key.strip_suffix(":meta").map(str::to_owned);
        let cases: [&[&str]; 5] = [
            &["SET", "<stream>", "text"],
            &["SET", "<meta>", "text"],
            &["HSET", "<meta>", "last", "x"],
            &["HSET", "<meta>", "floor", "1"],
            &["XADD", "<stream>", "9-9", "m", "message"],
        ];
        for case in cases {
            let session = id();
            append(&events, session, 3, 1..=2);
            events.flush().await.unwrap();
            let key = server.keys("mcp:events:*:3:meta").await.iter().find_map(|key| stream(key)).unwrap();
            let case: Vec<_> = case
                .iter()
                .map(|part| part.replace("<stream>", &key).replace("<meta>", &format!("{key}:meta")))
                .collect();
            let command: Vec<_> = case.iter().map(String::as_str).collect();
            let _: redis::Value = server.command(&command).await;
            events.replay(session, 3, 0).await.expect_err(&case.join(" "));
            // More events neither end the writer nor make sense of it.
            append(&events, session, 3, 3..=4);
            let replayed = events.replay(session, 3, 0).await;
            assert!(!replayed.as_ref().is_ok_and(|replayed| replayed.is_whole), "{case:?}: {replayed:?}");
            events.forget(session);
            assert_eq!(replay(&events, session, 3, 0).await, None);
            assert_eq!(server.keys("mcp:events:*:3*").await, Vec::<String>::new());
        }
    })
    .await;
}

#[tokio::test]
async fn large_values() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().stream_bytes(4 * 1024 * 1024)).await;
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        let large = record(&"x".repeat(8 * 1024 * 1024));
        sessions.save(id, large.clone(), Version::NONE, HOUR).await.unwrap();
        assert_eq!(sessions.load(id).await.unwrap().unwrap().record, large);

        let bytes = |number, length| StoredEvent { number, message: vec![0xff; length].into() };
        events.append(id, 0, bytes(1, 3 * 1024 * 1024));
        events.append(id, 0, bytes(2, 0));
        let replay = async |after| events.replay(id, 0, after).await.unwrap();
        assert_eq!(replay(0).await.events[0], bytes(1, 3 * 1024 * 1024));
        events.append(id, 0, bytes(3, 2 * 1024 * 1024));
        let left = vec![bytes(2, 0), bytes(3, 2 * 1024 * 1024)];
        assert_eq!(replay(0).await, Replay { events: left.clone(), is_whole: false }, "4 MiB are kept");
        assert_eq!(replay(1).await, Replay { events: left, is_whole: true });
        events.append(id, 0, bytes(4, 5 * 1024 * 1024));
        events.append(id, 0, bytes(5, 20 * 1024 * 1024));
        events.append(id, 0, bytes(6, 1));
        let last = vec![bytes(6, 1)];
        let partial = Replay { events: last.clone(), is_whole: false };
        assert_eq!(replay(3).await, partial, "too large for a stream");
        assert_eq!(replay(4).await, partial, "too large for the queue");
        assert_eq!(replay(5).await, Replay { events: last, is_whole: true });
        assert_eq!((events.dropped(), events.waiting()), (1, (0, 0)));
    })
    .await;
}

/// S4.117: what one instance has sent another can replay, and what one forgets is forgotten.
#[tokio::test]
async fn instances_see_each_other() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let (a, b) = (connect(&server).await, connect(&server).await);
        let (session, other) = (id(), id());
        a.sessions().save(session, record("a"), Version::NONE, HOUR).await.unwrap();
        let found = b.sessions().load(session).await.unwrap().unwrap();
        assert_eq!(found, Versioned { record: record("a"), version: Version(1) });
        b.sessions().save(session, record("b"), found.version, HOUR).await.unwrap();
        assert_eq!(a.sessions().load(session).await.unwrap().unwrap().record, record("b"));

        let (here, there) = (a.events(), b.events());
        append(&here, session, 7, 1..=300);
        append(&here, other, 7, [1]);
        here.flush().await.unwrap();
        assert_eq!(replay(&there, session, 7, 100).await, Some((101..=300).collect()));
        assert_eq!(replay(&there, other, 7, 0).await, Some(vec![1]));
        // The other instance goes on with the stream, and the first one comes back to it, which it cannot know of.
        append(&there, session, 7, [301]);
        assert_eq!(replay(&there, session, 7, 299).await, Some(vec![300, 301]));
        append(&here, session, 7, [302]);
        assert_eq!(replay(&here, session, 7, 300).await, None);
        assert_eq!(replay(&here, session, 7, 301).await, Some(vec![302]));
        // Two that write the same number make nonsense of what was there.
        append(&there, session, 7, [302]);
        assert_eq!(replay(&there, session, 7, 301).await, Some(vec![302]), "it is the same event");
        there.append(session, 7, StoredEvent { number: 302, message: Bytes::from_static(b"not the same") });
        assert_eq!(replay(&there, session, 7, 301).await, None);

        there.forget(session);
        there.flush().await.unwrap();
        assert_eq!(replay(&here, session, 7, 302).await, None);
        assert_eq!(replay(&here, other, 7, 0).await, Some(vec![1]));
        assert!(b.sessions().remove(session).await.unwrap());
        assert_eq!(a.sessions().load(session).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn streams_are_in_order_and_bounded() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(
            &server,
            options().stream_events(10).session_streams(4).stream_time_to_live(Duration::from_millis(1500)),
        );
        let (events, session) = (redis.await.events(), id());
        assert_eq!(replay(&events, session, 0, 0).await, None, "there is no such stream");
        // Numbers have gaps of their own, and are larger than what a floating-point number can count.
        let large = (1 << 60) + 1;
        append(&events, session, 0, [0, 5, 6, 1000, large, large + 1, u64::MAX]);
        for (after, expected) in [
            (0, Some(vec![5, 6, 1000, large, large + 1, u64::MAX])),
            (5, Some(vec![6, 1000, large, large + 1, u64::MAX])),
            (7, Some(vec![1000, large, large + 1, u64::MAX])),
            (large, Some(vec![large + 1, u64::MAX])),
            (u64::MAX, Some(vec![])),
        ] {
            assert_eq!(replay(&events, session, 0, after).await, expected, "after {after}");
        }
        append(&events, session, 1, 1..=25);
        assert_eq!(replay(&events, session, 1, 14).await, None, "15 is gone");
        assert_eq!(replay(&events, session, 1, 15).await, Some((16..=25).collect()));
        assert_eq!(replay(&events, session, 1, 26).await, None, "26 was never sent");

        // Of five streams, the one that was not used for the longest time goes.
        for stream in 2..=4 {
            sleep(Duration::from_millis(5)).await;
            append(&events, session, stream, [1]);
            events.flush().await.unwrap();
        }
        assert_eq!(replay(&events, session, 0, u64::MAX).await, None);
        assert_eq!(replay(&events, session, 1, 24).await, Some(vec![25]));
        // And with time all go, also for those who continue.
        append(&events, session, 4, [2]);
        assert_eq!(replay(&events, session, 4, 0).await, Some(vec![1, 2]));
        sleep(Duration::from_millis(1700)).await;
        assert_eq!(server.keys("*").await, Vec::<String>::new());
        append(&events, session, 4, [3]);
        assert_eq!(replay(&events, session, 4, 1).await, None);
        assert_eq!(replay(&events, session, 4, 2).await, Some(vec![3]));
        assert_eq!(events.dropped(), 0);
    })
    .await;
}

/// A key that Redis evicts takes no event with it unnoticed.
#[tokio::test]
async fn evicted_keys_are_noticed() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let (a, b) = (connect(&server).await.events(), connect(&server).await.events());
        for evicted in ["stream", "meta", "epoch"] {
            let session = id();
            append(&a, session, 9, 1..=3);
            a.flush().await.unwrap();
            let meta = server.keys("mcp:events:*:9:meta").await.pop().unwrap();
            let _: redis::Value = match evicted {
                "stream" => server.command(&["DEL", meta.strip_suffix(":meta").unwrap()]).await,
                "meta" => server.command(&["DEL", &meta]).await,
                _ => server.command(&["SET", "mcp:events:epoch", "another"]).await,
            };
            assert_eq!(replay(&a, session, 9, 1).await, None, "{evicted}");
            append(&a, session, 9, [4]);
            for after in 0..3 {
                assert_eq!(replay(&b, session, 9, after).await, None, "{evicted}, after {after}");
            }
            assert_eq!(replay(&b, session, 9, 3).await, Some(vec![4]), "{evicted}");
            b.forget(session);
            b.flush().await.unwrap();
            assert_eq!(server.keys("mcp:events:*:9*").await, Vec::<String>::new());
        }
        // Scripts go as well, and nobody notices.
        let (sessions, session) = (connect(&server).await.sessions(), id());
        let _: redis::Value = server.command(&["SCRIPT", "FLUSH"]).await;
        assert_eq!(sessions.save(session, record("a"), Version::NONE, HOUR).await.unwrap(), Saved::As(Version(1)));
        let _: redis::Value = server.command(&["SCRIPT", "FLUSH"]).await;
        append(&a, session, 0, 1..=3);
        assert_eq!(replay(&a, session, 0, 0).await, Some(vec![1, 2, 3]));
    })
    .await;
}

/// While Redis hangs, appending does not wait and takes no more than what was allowed; afterwards, what is whole is
/// replayed and what is not is not.
#[tokio::test]
async fn a_full_queue_drops() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(
            &server,
            options().command_limit(Duration::from_millis(500)).queue_events(100).queue_bytes(64 * 1024),
        );
        let (events, whole, broken, late) = (redis.await.events(), id(), id(), id());
        append(&events, whole, 0, 1..=5);
        append(&events, broken, 0, 1..=5);
        events.flush().await.unwrap();
        server.freeze();
        append(&events, whole, 0, 6..=10);
        let begin = Instant::now();
        append(&events, broken, 0, 6..=50_000);
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        append(&events, late, 0, [1]);
        let (waiting, bytes) = events.waiting();
        assert!(waiting <= 100 && bytes <= 64 * 1024, "{waiting} events, {bytes} bytes");
        let dropped = events.dropped();
        assert_eq!(dropped, 5 + 49_995 + 1 - waiting as u64);
        let begin = Instant::now();
        events.replay(whole, 0, 0).await.unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());

        server.thaw();
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!((events.waiting(), events.dropped()), ((0, 0), dropped));
        assert_eq!(replay(&events, whole, 0, 0).await, Some((1..=10).collect()));
        assert_eq!(replay(&events, late, 0, 0).await, None, "its only event was dropped");
        for after in [0, 5, 50, 49_999] {
            assert_eq!(replay(&events, broken, 0, after).await, None, "after {after}");
        }
        append(&events, broken, 0, 50_001..=50_002);
        append(&events, late, 0, [2]);
        assert_eq!(replay(&events, broken, 0, 50_000).await, Some(vec![50_001, 50_002]));
        assert_eq!(replay(&events, broken, 0, 49_999).await, None);
        assert_eq!(replay(&events, late, 0, 0).await, None);
        assert_eq!(replay(&events, late, 0, 1).await, Some(vec![2]));
        let other = connect(&server).await.events();
        assert_eq!(replay(&other, broken, 0, 49_999).await, None, "other instances know as well");
    })
    .await;
}

/// Where there is too much to remember, what was sent counts as lost rather than as whole.
#[tokio::test]
async fn memory_of_streams_is_bounded() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let bounded = options().command_limit(Duration::from_millis(500)).queue_events(3).remembered_streams(2);
        let (events, other) = (connect_with(&server, bounded).await.events(), connect(&server).await.events());
        let sessions = [id(), id(), id()];
        for session in sessions {
            append(&events, session, 0, [4, 5]);
            events.flush().await.unwrap();
        }
        // Nobody knows of one of them any more that there was something before.
        let _: redis::Value = server.command(&["FLUSHALL"]).await;
        for session in sessions {
            append(&events, session, 0, [6]);
            assert_eq!(replay(&other, session, 0, 4).await, None);
            assert_eq!(replay(&events, session, 0, 4).await, None);
            assert_eq!(replay(&events, session, 0, 5).await, Some(vec![6]));
        }

        // Three streams lose something, which is one more than what can be told to Redis one by one.
        let whole = id();
        append(&other, whole, 0, [1, 2]);
        assert_eq!(replay(&other, whole, 0, 1).await, Some(vec![2]));
        server.freeze();
        append(&events, id(), 0, 1..=3);
        sessions.iter().for_each(|session| append(&events, *session, 0, [7]));
        assert_eq!(events.dropped(), 3);
        server.thaw();
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        for session in sessions {
            assert_eq!(replay(&events, session, 0, 6).await, None);
        }
        eventually("Redis answers", async || other.flush().await.is_ok()).await;
        assert_eq!(replay(&other, whole, 0, 1).await, None, "nobody knows that it is whole");
        append(&other, whole, 0, [3]);
        assert_eq!((replay(&other, whole, 0, 1).await, replay(&other, whole, 0, 2).await), (None, Some(vec![3])));
    })
    .await;
}

/// Redis that has no memory left takes events when it has some again.
#[tokio::test]
async fn redis_is_full() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_limit(Duration::from_millis(500))).await;
        let (sessions, events, session) = (redis.sessions(), redis.events(), id());
        let _: redis::Value = server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
        let error = sessions.save(session, record("a"), Version::NONE, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("Redis refuses: ") && error.contains("OOM"), "{error}");
        append(&events, session, 0, 1..=3);
        events.flush().await.unwrap_err();
        let _: redis::Value = server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!((replay(&events, session, 0, 0).await, events.dropped()), (Some(vec![1, 2, 3]), 0));
    })
    .await;
}

#[tokio::test]
async fn prefixes_do_not_mix() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let session = id();
        let prefixes = ["mcp", "mcp:session", "", "mcp:*"];
        let mut all = Vec::new();
        for prefix in prefixes {
            let redis = connect_with(&server, options().prefix(prefix)).await;
            assert_eq!(redis.sessions().load(session).await.unwrap(), None, "{prefix}");
            assert_eq!(replay(&redis.events(), session, 0, 0).await, None, "{prefix}");
            let saved = redis.sessions().save(session, record(prefix), Version::NONE, HOUR).await.unwrap();
            assert_eq!(saved, Saved::As(Version(1)));
            append(&redis.events(), session, 0, 1..=all.len() as u64 + 1);
            redis.events().flush().await.unwrap();
            all.push(redis);
        }
        all[0].events().forget(session);
        all[0].events().flush().await.unwrap();
        all[0].sessions().remove(session).await.unwrap();
        for (index, (redis, prefix)) in all.iter().zip(prefixes).enumerate().skip(1) {
            assert_eq!(redis.sessions().load(session).await.unwrap().unwrap().record, record(prefix));
            assert_eq!(replay(&redis.events(), session, 0, 0).await, Some((1..=index as u64 + 1).collect()));
        }
        assert_eq!(replay(&all[0].events(), session, 0, 0).await, None);

        // Nothing in Redis lets anybody take the session over.
        let id = session.to_string();
        for key in server.keys("*").await {
            assert!(!key.contains(&id), "{key}");
            let dump: Vec<u8> = server.command(&["DUMP", &key]).await;
            assert!(!dump.windows(id.len()).any(|part| part == id.as_bytes()), "{key}");
            let expires: i64 = server.command(&["PTTL", &key]).await;
            assert!(expires > 0, "{key} goes by itself");
        }
    })
    .await;
}

/// The last events are written after all handles are gone, and addresses that are none are errors.
#[tokio::test]
async fn beginnings_and_ends() {
    let Some(mut server) = Server::start().await else { return };
    limited(async {
        let (first, session) = (connect(&server).await, id());
        append(&first.events(), session, 0, 1..=2000);
        drop(first);
        let events = connect(&server).await.events();
        eventually("the last event is written", async || replay(&events, session, 0, 1999).await == Some(vec![2000]))
            .await;
        let _: redis::Value = server.command(&["CONFIG", "SET", "requirepass", "right"]).await;
        let with = |password: &str| server.url().replace("127", &format!(":{password}@127"));
        for url in [server.url(), with("secret")] {
            let error = Redis::connect(&url, RedisOptions::default()).await.unwrap_err().to_string();
            assert!(error.contains("Redis refuses: ") && !error.contains("secret"), "{error}");
        }
        let redis = Redis::connect(&with("right"), RedisOptions::default()).await.unwrap();
        assert!(!format!("{redis:?}{:?}{:?}", redis.sessions(), redis.events()).contains("right"));
        assert_eq!(replay(&redis.events(), session, 0, 1999).await, Some(vec![2000]));
        server.stop();
        for (url, reason) in [
            (server.url(), "Redis does not answer: "),
            ("nonsense".to_owned(), "cannot be used: "),
            ("rediss://user:secret@127.0.0.1/".to_owned(), "cannot be used: "),
        ] {
            let error = Redis::connect(&url, RedisOptions::default()).await.unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
    })
    .await;
}

/// S4.115, S4.116, S4.117, G4: what every store has to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_does_what_stores_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        mcp_session::suite::session_store_suite(async || connect(&server).await.sessions()).await;
        mcp_session::suite::event_store_suite(async || connect(&server).await.events()).await;
    })
    .await;
}
