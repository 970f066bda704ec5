//! Sessions that end while they are used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;

use crate::arena::Arena;
use crate::heap::alone;
use crate::mistreat::mistreat_sessions;
use crate::sessions::{Session, accept, ask, short};
use crate::tally::repeated;

/// Whoever comes first ends it; everybody else hears that it has ended, or got through before.
#[test]
fn all_at_once() {
    let alone = alone();
    mistreat_sessions(&alone, "all at once", 2, short(), async |arena| {
        let honest = Session::begin(arena).await;
        for round in 0..10 {
            let session = Session::begin(arena).await;
            let deleted = AtomicUsize::new(0);
            let clients = (0..60).map(|number| {
                let (session, deleted) = (&session, &deleted);
                async move {
                    let (bytes, good): (_, &[u16]) = match (number + round) % 6 {
                        0 if number > 20 => (session.delete(), &[204, 404]),
                        // Whoever waits when the session ends gets an error.
                        0 | 1 => (session.call(number, "wait", "{}"), &[200, 404]),
                        2 => (session.get(None), &[200, 404]),
                        3 => (session.call(number, "echo", r#"{"text":"x"}"#), &[200, 404]),
                        4 => (session.call(number, "ask", "{}"), &[200, 404]),
                        _ => (session.post(accept("1", "x").as_bytes()), &[202, 400, 404]),
                    };
                    let answer = ask(arena, &bytes).await;
                    assert!(good.contains(&answer.status), "{number}: {answer:?}");
                    if answer.status == 204 {
                        deleted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            join_all(clients).await;
            assert_eq!(deleted.load(Ordering::Relaxed), 1, "it ends once");
            arena.gate.has_inside(0).await;
            arena.has_sessions(1).await;
        }
        honest.works(arena).await;
        honest.end(arena).await;
        repeated(10 * 60, "requests")
    });
}

/// Those who wait are told at once: a call, a question to the client, a stream.
#[test]
fn while_others_wait() {
    let alone = alone();
    mistreat_sessions(&alone, "while others wait", 5, short(), async |arena| {
        let session = Session::begin(arena).await;
        let (mut stream, _) = session.stream(arena, None).await;
        let mut call = arena.connect().await;
        call.send(&session.call(1, "wait", "{}")).await;
        let (mut asked, question) = session.asked(arena, 2).await;
        arena.gate.has_inside(2).await;
        // A client that is gone, while its call goes on.
        let gone = arena.connect().await;
        leave_running(arena, &session, gone).await;
        session.clone().end(arena).await;
        arena.gate.has_inside(0).await;
        let answer = call.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (200, Some(-32603)));
        assert!(stream.chunk().await.is_none());
        while let Some(rest) = asked.chunk().await {
            assert!(!String::from_utf8_lossy(&rest).contains("result"));
        }
        // The answer to the question comes too late.
        let late = ask(arena, &session.post(accept(&question, "late").as_bytes())).await;
        assert_eq!(late.status, 404, "{late:?}");
        repeated(4, "requests")
    });
}

async fn leave_running(arena: &Arena, session: &Session, mut client: crate::wire::Raw) {
    client.send(&session.call(3, "wait", "{}")).await;
    arena.gate.has_inside(3).await;
    client.reset();
}

/// A call that its own client cancels is over: nothing is said about it any more, and its place is free.
#[test]
fn calls_that_are_cancelled() {
    let alone = alone();
    mistreat_sessions(&alone, "calls that are cancelled", 2, short(), async |arena| {
        let (mine, yours) = (Session::begin(arena).await, Session::begin(arena).await);
        for _ in 0..10 {
            let mut calls = Vec::new();
            for id in 1..=10 {
                let mut client = arena.connect().await;
                client.send(&mine.call(id, "wait", "{}")).await;
                calls.push(client);
            }
            arena.gate.has_inside(10).await;
            for id in 1..=10 {
                let params = format!(r#"{{"requestId":{id}}}"#);
                let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
                // That of another session is nobody's.
                assert_eq!(arena.status(&yours.post(body.as_bytes())).await, Some(202));
                arena.gate.has_inside(11 - id).await;
                assert_eq!(arena.status(&mine.post(body.as_bytes())).await, Some(202));
                arena.gate.has_inside(10 - id).await;
            }
            for mut call in calls {
                let answer = call.answer().await.expect("it is over");
                assert_eq!((answer.status, answer.body.len()), (202, 0), "{answer:?}");
            }
        }
        for session in [mine, yours] {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(10 * 10, "requests")
    });
}

/// Calls whose client goes at once keep their places while they are worked on, and are given up after the grace: nobody
/// gets more done by not waiting.
#[test]
fn calls_that_are_left() {
    let alone = alone();
    let options = short().orphaned_request_timeout(Duration::from_secs(1));
    mistreat_sessions(&alone, "calls that are left", 1, options, async |arena| {
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(Session::begin(arena).await);
        }
        let mut refused = 0;
        for id in 0..84 {
            let mut client = arena.connect().await;
            client.send(&sessions[id % 4].call(id, "wait", "{}")).await;
            if id < 64 {
                arena.gate.has_inside(id + 1).await;
            } else {
                let answer = client.answer().await.expect("an answer");
                assert_eq!(answer.status, 503, "{answer:?}");
                refused += 1;
            }
            client.reset();
        }
        assert_eq!(refused, 20);
        arena.gate.has_inside(0).await;
        // No task for orphaned requests is left either.
        arena.has_tasks(0).await;
        for session in sessions {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(84, "requests")
    });
}
