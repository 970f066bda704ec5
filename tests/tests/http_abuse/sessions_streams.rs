//! Streams of sessions that nobody reads, or that too many read.

use std::time::Duration;

use mcp_server::Change;

use crate::heap::alone;
use crate::mistreat::mistreat_sessions;
use crate::sessions::{Session, all_of, ids, short};
use crate::tally::repeated;
use crate::wire::Raw;

/// Streams that stop reading, while there are thousands of changes: others hear of all, and what is kept is bounded.
#[test]
fn some_do_not_read() {
    const STUCK: usize = 6;
    /// What may wait for a stream in the kernel and in the session, and what is kept of both for later.
    const EACH: usize = 8 << 20;
    let alone = alone();
    mistreat_sessions(&alone, "streams that nobody reads", 1, short(), async |arena| {
        let (mut stuck, mut sessions) = (Vec::new(), Vec::new());
        for _ in 0..STUCK {
            let session = Session::begin(arena).await;
            session.subscribe(arena).await;
            let (stream, _) = session.stream(arena, None).await;
            // The answers to its calls are not read either.
            let mut flood = arena.connect().await;
            flood.send(&session.call(1, "flood", r#"{"messages":200,"bytes":50000}"#)).await;
            assert_eq!(flood.head().await.map(|head| head.status), Some(200));
            stuck.push((stream, flood));
            sessions.push(session);
        }
        let honest = Session::begin(arena).await;
        honest.subscribe(arena).await;
        let (mut stream, _) = honest.stream(arena, None).await;
        let before = arena.allocated();
        for round in 0..300 {
            for _ in 0..10 {
                arena.server.publish(&Change::Resource("test:text".to_owned()));
            }
            let event = stream.chunk().await.expect("an event");
            assert!(event.ends_with(b"\n\n"), "{round}: {}", String::from_utf8_lossy(&event));
            if round % 50 == 0 {
                honest.works(arena).await;
                sessions[round / 50].works(arena).await;
                arena.honest().await;
            }
        }
        let kept = arena.allocated().saturating_sub(before);
        assert!(kept < STUCK * EACH, "{kept} bytes are kept");
        drop((stuck, stream));
        for session in sessions.into_iter().chain([honest]) {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(300 * 10, "changes")
    });
}

/// Hundreds of streams of one session: the last one has it, the others end, and it hears of changes.
#[test]
fn streams_that_are_taken_over() {
    let alone = alone();
    mistreat_sessions(&alone, "streams that are taken over", 2, short(), async |arena| {
        let session = Session::begin(arena).await;
        session.subscribe(arena).await;
        let mut streams: Vec<Raw> = Vec::new();
        for _ in 0..300 {
            streams.push(session.stream(arena, None).await.0);
        }
        let mut last = streams.pop().expect("the last");
        for mut stream in streams {
            assert_eq!(all_of(&mut stream).await, "");
        }
        arena.server.publish(&Change::Resource("test:text".to_owned()));
        let event = String::from_utf8(last.chunk().await.expect("an event")).expect("text");
        assert!(event.contains("updated"), "{event}");
        drop(last);
        session.works(arena).await;
        session.end(arena).await;
        repeated(300, "streams")
    });
}

/// Hundreds come back with the same last event, of the session and of a request: one of them goes on, each is told what
/// it missed at most, and nothing is told twice on one stream.
#[test]
fn coming_back_too_often() {
    let alone = alone();
    let options = short().orphaned_request_timeout(Duration::from_secs(60));
    mistreat_sessions(&alone, "coming back too often", 1, options, async |arena| {
        let session = Session::begin(arena).await;
        session.subscribe(arena).await;
        let (stream, first) = session.stream(arena, None).await;
        let of_session = ids(&first).pop().expect("an id");
        drop(stream);
        let mut call = arena.connect().await;
        call.send(&session.call(1, "flood", r#"{"messages":20,"bytes":100}"#)).await;
        assert_eq!(call.head().await.map(|head| head.status), Some(200));
        let first = String::from_utf8(call.chunk().await.expect("an event")).expect("text");
        let of_call = ids(&first).first().cloned().expect("an id");
        call.reset();
        arena.gate.has_inside(1).await;
        for _ in 0..10 {
            arena.server.publish(&Change::Resource("test:text".to_owned()));
        }
        let mut open = Vec::new();
        for round in 0..300 {
            let id = if round % 2 == 0 { &of_session } else { &of_call };
            let mut client = arena.connect().await;
            client.send(&session.get(Some(id))).await;
            if round % 3 == 0 {
                // Some do not even wait for the answer.
                client.reset();
            } else {
                assert_eq!(client.head().await.map(|head| head.status), Some(200));
                open.push(client);
            }
        }
        // The last of each goes on; all others were sent away with what they missed.
        let (mut of_call, mut of_session) = (open.pop().expect("a client"), open.pop().expect("a client"));
        for mut client in open {
            check(&all_of(&mut client).await);
        }
        arena.gate.open(1);
        let all = all_of(&mut of_call).await;
        check(&all);
        assert!(all.contains("reported 20 times"), "{all}");
        let mut all = String::new();
        while !all.contains("updated") {
            all.push_str(&String::from_utf8(of_session.chunk().await.expect("an event")).expect("text"));
        }
        check(&all);
        drop((of_call, of_session));
        session.works(arena).await;
        session.end(arena).await;
        repeated(300, "streams")
    });
}

/// No event is there twice, and there are no more than were sent.
fn check(events: &str) {
    let seen = ids(events);
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert!(once.len() == seen.len() && seen.len() <= 22, "{events}");
}

/// Answers that are dropped when they begin: what is left of them ends with the grace.
#[test]
fn answers_that_are_dropped() {
    let alone = alone();
    mistreat_sessions(&alone, "answers that are dropped", 1, short(), async |arena| {
        let session = Session::begin(arena).await;
        for round in 0..6 {
            for id in 0..50 {
                let mut client = arena.connect().await;
                let tool = if id % 2 == 0 { "flood" } else { "ask" };
                client.send(&session.call(id, tool, r#"{"messages":10,"bytes":1000}"#)).await;
                if (id + round) % 3 > 0 {
                    assert_eq!(client.head().await.map(|head| head.status), Some(200));
                }
                client.reset();
            }
            arena.gate.has_inside(0).await;
            arena.has_tasks(0).await;
            session.works(arena).await;
        }
        session.end(arena).await;
        repeated(6 * 50, "requests")
    });
}
