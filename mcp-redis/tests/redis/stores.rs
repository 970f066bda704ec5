//! What holds for records and events.

use mcp_redis::{Redis, RedisOptions};
use mcp_session::{EventStore as _, RecordVersion, Replay, SaveOutcome, SessionStore as _, StoredEvent};

use crate::fixtures::{HOUR, append, connect, connect_with, eventually, id, options, record, replay};
use crate::server::{Server, limited};

/// What every store has to do.
// covers: S4.115..S4.117, RB-54
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_does_what_stores_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        mcp_session::store_tests::check_session_store(async || connect(&server).await.sessions()).await;
        mcp_session::store_tests::check_event_store(async || connect(&server).await.events()).await;
    })
    .await;
}

#[tokio::test]
async fn large_values() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let redis = connect_with(&server, options().max_stream_bytes(4 * 1024 * 1024)).await;
        let (sessions, events, id) = (redis.sessions(), redis.events(), id());
        let large = record(&"x".repeat(8 * 1024 * 1024));
        sessions.save(id, large.clone(), RecordVersion::NONE, HOUR).await.unwrap();
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
        assert_eq!((events.dropped(), events.queued()), (1, (0, 0)));
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
            let saved = redis.sessions().save(session, record(prefix), RecordVersion::NONE, HOUR).await.unwrap();
            assert_eq!(saved, SaveOutcome::Saved(RecordVersion(1)));
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
            assert!(error.contains("Redis refused the command: ") && !error.contains("secret"), "{error}");
        }
        let redis = Redis::connect(&with("right"), RedisOptions::default()).await.unwrap();
        assert!(!format!("{redis:?}{:?}{:?}", redis.sessions(), redis.events()).contains("right"));
        assert_eq!(replay(&redis.events(), session, 0, 1999).await, Some(vec![2000]));
        server.stop();
        for (url, reason) in [
            (server.url(), "Redis does not respond: "),
            ("nonsense".to_owned(), "cannot be used: "),
            ("rediss://user:secret@127.0.0.1:1/".to_owned(), "Redis does not respond: "),
        ] {
            let error = Redis::connect(&url, RedisOptions::default()).await.unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
    })
    .await;
}
