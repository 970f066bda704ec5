//! Redis that is away, hangs, is full, or holds nonsense.

use std::time::Duration;

use mcp_redis::Redis;
use mcp_session::{EventStore as _, RecordVersion, SaveOutcome, SessionStore as _};
use tokio::time::{Instant, sleep};

use crate::fixtures::{HOUR, append, connect, connect_with, eventually, id, options, record, replay};
use crate::server::{Server, Way, limited};

/// After an end and a beginning, everything goes on without a restart of this process.
#[tokio::test]
async fn redis_comes_back() {
    let Some(mut server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_timeout(Duration::from_secs(1))).await;
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        sessions.save(id, record("a"), RecordVersion::NONE, HOUR).await.unwrap();
        append(&events, id, 0, 1..=3);
        assert_eq!(replay(&events, id, 0, 1).await, Some(vec![2, 3]));

        server.stop();
        for _ in 0..5 {
            let begin = Instant::now();
            let error = sessions.load(id).await.unwrap_err().to_string();
            assert!(error.contains("Redis does not respond: "), "{error}");
            let error = sessions.save(id, record("b"), RecordVersion(1), HOUR).await.unwrap_err().to_string();
            assert!(error.contains("Redis does not respond: "), "{error}");
            assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        }
        append(&events, id, 0, [4]);
        let error = events.replay(id, 0, 1).await.unwrap_err().to_string();
        assert!(error.contains("1 events"), "{error}");

        server.restart().await;
        eventually("sessions are found again", async || sessions.load(id).await.is_ok()).await;
        assert_eq!(sessions.load(id).await.unwrap(), None, "nothing was on a disk");
        assert_eq!(
            sessions.save(id, record("a"), RecordVersion::NONE, HOUR).await.unwrap(),
            SaveOutcome::Saved(RecordVersion(1))
        );
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
        assert_eq!(
            sessions.save(id, record("a"), RecordVersion::NONE, HOUR).await.unwrap(),
            SaveOutcome::Saved(RecordVersion(1))
        );
    })
    .await;
}

/// A server that hangs is worse than none: each command ends in time, and what was saved was saved once.
#[tokio::test]
async fn redis_hangs() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_timeout(Duration::from_millis(400))).await;
        let (sessions, id) = (redis.sessions(), id());
        sessions.save(id, record("a"), RecordVersion::NONE, HOUR).await.unwrap();
        server.freeze();
        let begin = Instant::now();
        let error = sessions.save(id, record("b"), RecordVersion(1), HOUR).await.unwrap_err().to_string();
        assert!(error.contains("no response within 400ms"), "{error}");
        let results = tokio::join!(sessions.load(id), sessions.touch(id, HOUR), sessions.remove(self::id()));
        assert!(results.0.is_err() && results.1.is_err() && results.2.is_err());
        assert!(begin.elapsed() < Duration::from_millis(1200), "{:?}", begin.elapsed());
        let brief = options().command_timeout(Duration::from_millis(200));
        Redis::connect(&server.url(), brief).await.unwrap_err();
        server.thaw();
        eventually("sessions are found again", async || sessions.load(id).await.is_ok()).await;
        let found = sessions.load(id).await.unwrap().unwrap();
        assert!(found.version <= RecordVersion(2), "it was not done twice: {:?}", found.version);
    })
    .await;
}

/// A connection on which nothing comes any more, and which nobody closes, is replaced.
#[tokio::test]
async fn connections_go_silent() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let way = Way::to(&server).await;
        let options = options().command_timeout(Duration::from_millis(400));
        let redis = Redis::connect(&way.url(), options).await.unwrap();
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        sessions.save(id, record("a"), RecordVersion::NONE, HOUR).await.unwrap();
        append(&events, id, 0, 1..=3);
        events.flush().await.unwrap();
        way.silence();
        append(&events, id, 0, 4..=6);
        let error = sessions.save(id, record("b"), RecordVersion(1), HOUR).await.unwrap_err().to_string();
        assert!(error.contains("no response within 400ms"), "{error}");
        let found = sessions.load(id).await.unwrap().unwrap();
        assert_eq!(
            (found.record, found.version),
            (record("a"), RecordVersion(1)),
            "what did not arrive was not sent again"
        );
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
        sessions.save(other, record("other"), RecordVersion::NONE, HOUR).await.unwrap();
        let other_key = server.keys("mcp:session:*").await.pop().unwrap();
        let json: String = server.command(&["HGET", &other_key, "record"]).await;
        sessions.save(victim, record("victim"), RecordVersion::NONE, HOUR).await.unwrap();
        let key = server.keys("mcp:session:*").await.into_iter().find(|key| *key != other_key).unwrap();

        let cases: [(&[&str], &str); 9] = [
            (&["HSET", &key, "record", "nonsense"], "cannot be decoded"),
            (&["HSET", &key, "record", ""], "cannot be decoded"),
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
            sessions.save(victim, record("victim"), RecordVersion::NONE, HOUR).await.unwrap();
            if !matches!(command[0], "HSET" | "HDEL") {
                let _: i64 = server.command(&["DEL", &key]).await;
            }
            let _: redis::Value = server.command(command).await;
            let error = sessions.load(victim).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{command:?}: {error}");
            sessions.save(victim, record("new"), RecordVersion(7), HOUR).await.unwrap_err();
            sessions.save(victim, record("new"), RecordVersion::NONE, HOUR).await.unwrap_err();
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

/// Redis that has no memory left takes events when it has some again.
#[tokio::test]
async fn redis_is_full() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().command_timeout(Duration::from_millis(500))).await;
        let (sessions, events, session) = (redis.sessions(), redis.events(), id());
        let _: redis::Value = server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
        let error = sessions.save(session, record("a"), RecordVersion::NONE, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("Redis refused the command: ") && error.contains("OOM"), "{error}");
        append(&events, session, 0, 1..=3);
        events.flush().await.unwrap_err();
        let _: redis::Value = server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
        eventually("events are written again", async || events.flush().await.is_ok()).await;
        assert_eq!((replay(&events, session, 0, 0).await, events.dropped()), (Some(vec![1, 2, 3]), 0));
    })
    .await;
}
