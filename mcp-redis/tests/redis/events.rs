//! Events of streams: what is kept, and what is known to be lost.

use std::time::Duration;

use bytes::Bytes;
use mcp_session::{EventStore as _, RecordVersion, SaveOutcome, SessionStore as _, StoredEvent, VersionedRecord};
use tokio::time::{Instant, sleep};

use crate::fixtures::{HOUR, append, connect, connect_with, event, eventually, id, options, record, replay};
use crate::server::{Server, limited};

/// What one instance has sent another can replay, and what one forgets is forgotten.
// covers: S4.117
#[tokio::test]
async fn instances_see_each_other() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let (a, b) = (connect(&server).await, connect(&server).await);
        let (session, other) = (id(), id());
        a.sessions().save(session, record("a"), RecordVersion::NONE, HOUR).await.unwrap();
        let found = b.sessions().load(session).await.unwrap().unwrap();
        assert_eq!(found, VersionedRecord { record: record("a"), version: RecordVersion(1) });
        b.sessions().save(session, record("b"), found.version, HOUR).await.unwrap();
        assert_eq!(a.sessions().load(session).await.unwrap().unwrap().record, record("b"));

        let (here, there) = (a.events(), b.events());
        append(&here, session, 7, 1..=300);
        append(&here, other, 7, [1]);
        here.flush().await.unwrap();
        assert_eq!(replay(&there, session, 7, 100).await, Some((101..=300).collect()));
        assert_eq!(replay(&there, other, 7, 0).await, Some(vec![1]));
        // The other instance goes on with the stream, and the first one comes back to it.
        append(&there, session, 7, [301]);
        assert_eq!(replay(&there, session, 7, 299).await, Some(vec![300, 301]));
        append(&here, session, 7, [302]);
        assert_eq!(replay(&here, session, 7, 300).await, Some(vec![301, 302]));
        // One that does not know that another goes on comes too late, and harms nobody.
        append(&there, session, 7, [400, 401]);
        assert_eq!(replay(&there, session, 7, 301).await, Some(vec![302, 400, 401]));
        append(&here, session, 7, [303]);
        here.flush().await.unwrap();
        assert_eq!(replay(&there, session, 7, 302).await, None, "303 is lost");
        assert_eq!(replay(&there, session, 7, 303).await, Some(vec![400, 401]));
        // Of two that write the same number, the first is right.
        append(&there, session, 7, [401]);
        assert_eq!(replay(&there, session, 7, 400).await, Some(vec![401]), "it is the same event");
        there.append(session, 7, StoredEvent { number: 401, message: Bytes::from_static(b"not the same") });
        assert_eq!(replay(&there, session, 7, 400).await, None);
        assert_eq!(there.replay(session, 7, 400).await.unwrap().events, [event(401)]);

        there.forget(session);
        there.flush().await.unwrap();
        assert_eq!(replay(&here, session, 7, 401).await, None);
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
            options().max_stream_events(10).max_session_streams(4).stream_timeout(Duration::from_millis(1500)),
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
        assert_eq!(
            sessions.save(session, record("a"), RecordVersion::NONE, HOUR).await.unwrap(),
            SaveOutcome::Saved(RecordVersion(1))
        );
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
            options().command_timeout(Duration::from_millis(500)).max_queued_events(100).max_queued_bytes(64 * 1024),
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
        let (waiting, bytes) = events.queued();
        assert!(waiting <= 100 && bytes <= 64 * 1024, "{waiting} events, {bytes} bytes");
        let dropped = events.dropped();
        assert_eq!(dropped, 5 + 49_995 + 1 - waiting as u64);
        let begin = Instant::now();
        events.replay(whole, 0, 0).await.unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());

        server.thaw();
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!((events.queued(), events.dropped()), ((0, 0), dropped));
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
        let bounded = options().command_timeout(Duration::from_millis(500)).max_queued_events(3).max_tracked_streams(2);
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
