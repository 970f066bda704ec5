//! Answers that nobody asked for, and questions that nobody answers.

use std::sync::Arc;
use std::time::Duration;

use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

use crate::arena::{Gate, server};
use crate::heap::{allocated, alone};
use crate::mistreat::{compare, mistreat_sessions};
use crate::sessions::{HELLO, Session, accept, all_of, ask, data, request, short};
use crate::tally::repeated;
use crate::wire::{Raw, post};

/// Answers to nothing, twice, in heaps, from the wrong session: the question is answered by whom it was asked.
#[test]
fn answers_of_others() {
    let alone = alone();
    mistreat_sessions(&alone, "answers of others", 3, short(), async |arena| {
        let (mine, yours) = (Session::begin(arena).await, Session::begin(arena).await);
        let (mut client, question) = mine.asked(arena, 1).await;
        arena.gate.has_inside(1).await;
        let wrong = accept(&question, "wrong");
        let heap = format!("[{}]", vec![wrong.as_str(); 100].join(","));
        for body in [wrong.as_str(), &heap] {
            let answer = ask(arena, &yours.post(body.as_bytes())).await;
            assert!(matches!(answer.status, 202 | 400), "{answer:?}");
            let answer = ask(arena, &post("MCP-Protocol-Version: 2025-11-25\r\n", body.as_bytes())).await;
            assert_eq!(answer.status, 400, "{answer:?}");
            let answer = ask(arena, &post("", body.as_bytes())).await;
            assert_eq!(answer.status, 400, "{answer:?}");
        }
        let long = format!("\"{}\"", "x".repeat(100_000));
        for id in ["0", "99999999", "-1", "null", "1.5", "\"01\"", "{}", "[]", &long, "18446744073709551616"] {
            if id == question {
                continue;
            }
            for session in [&mine, &yours] {
                let answer = ask(arena, &session.post(accept(id, "wrong").as_bytes())).await;
                assert!(matches!(answer.status, 202 | 400), "{id:.20}: {answer:?}");
            }
        }
        for body in [&b"[]"[..], b"[1]", b"[[]]", heap.as_bytes(), b"[{\"jsonrpc\":\"2.0\",\"id\":1}]"] {
            // This revision has no batches.
            let answer = ask(arena, &mine.post(body)).await;
            assert_eq!(answer.status, 400, "{answer:?}");
        }
        arena.gate.has_inside(1).await;
        for word in ["right", "again", "again"] {
            let answer = ask(arena, &mine.post(accept(&question, word).as_bytes())).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        let events = all_of(&mut client).await;
        let answer = data(&events).pop().expect("an answer");
        assert_eq!(answer["result"]["content"][0]["text"], "right", "{events}");
        drop(client);
        for session in [mine, yours] {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(6 + 18 + 5 + 3, "requests")
    });
}

/// In the revision that has batches: heaps of answers to nothing, and of what is none.
#[test]
fn heaps_of_answers() {
    let alone = alone();
    let answer = accept("5", "wrong");
    let heap = |what: &str, count: usize| format!("[{}]", vec![what; count].join(","));
    let call = request(9, "tools/call", r#"{"name":"echo","arguments":{"text":"found"}}"#);
    mistreat_sessions(&alone, "heaps of answers", 2, short(), async |arena| {
        let old = |text: &str| text.replace("2025-11-25", "2025-03-26").into_bytes();
        let hello = ask(arena, &post("", &old(HELLO))).await;
        let session = Session(hello.header("mcp-session-id").expect("a session").to_owned());
        let send = async |body: &str| {
            let bytes = old(&String::from_utf8(session.post(body.as_bytes())).expect("text"));
            ask(arena, &bytes).await
        };
        assert_eq!(send(&heap(&answer, 50)).await.status, 202);
        for body in [
            "[]".to_owned(),
            heap("1", 50),
            heap("[]", 50),
            heap("{}", 50),
            heap(r#"{"jsonrpc":"2.0","id":1}"#, 50),
            heap(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, 50),
            heap(r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{}}"#, 50),
            heap(&answer, 100_000 / answer.len()),
            heap(&answer, 10_000),
            format!("[{answer},1,{answer},{{}}]"),
        ] {
            let answer = send(&body).await;
            assert!(matches!(answer.status, 200 | 202 | 400 | 413), "{body:.100}: {answer:?}");
        }
        // What is good in a heap is served.
        let found = send(&format!("[{answer},{call},{answer}]")).await;
        assert!(found.status == 200 && String::from_utf8_lossy(&found.body).contains("found"), "{found:?}");
        let end = old(&String::from_utf8(session.delete()).expect("text"));
        assert_eq!(arena.status(&end).await, Some(204));
        repeated(12, "requests")
    });
}

/// Questions that are open are bounded for each session; what is not answered does not keep others from it.
#[test]
fn questions_without_end() {
    let alone = alone();
    mistreat_sessions(&alone, "questions without end", 1, short(), async |arena| {
        let (mine, yours) = (Session::begin(arena).await, Session::begin(arena).await);
        let mut open = Vec::new();
        for id in 0..62 {
            open.push(mine.asked(arena, id).await.0);
        }
        // There are two places left, and they are enough for all others: a response may be read a moment before its
        // place is free.
        for _ in 0..20 {
            yours.works(arena).await;
            mine.works(arena).await;
            arena.honest().await;
        }
        drop(open);
        arena.gate.has_inside(0).await;
        for session in [mine, yours] {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(62, "requests")
    });
}

/// With a clock that jumps: a question has ten minutes, whoever waits for it; a client that is gone has less.
#[test]
fn questions_that_nobody_answers() {
    let _alone = alone();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let gate = Arc::<Gate>::default();
        let listener = HttpServer::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.address();
        let service = HttpService::with_options(server(&gate), HttpOptions::default().sessions(SessionMode::Stateful));
        tokio::spawn(listener.serve(service.clone(), std::future::pending()));
        let round = async || {
            let mut client = Raw::connect(address).await;
            client.send(&post("", HELLO.as_bytes())).await;
            let answer = client.answer().await.expect("an answer");
            let session = Session(answer.header("mcp-session-id").expect("a session").to_owned());
            let since = Instant::now();
            let mut waiting = Vec::new();
            for id in 0..10 {
                let mut client = Raw::connect(address).await;
                client.send(&session.call(id, "ask", "{}")).await;
                assert_eq!(client.stream.readable().await.ok(), Some(()));
                waiting.push(client);
            }
            gate.has_inside(10).await;
            for client in waiting.drain(5..) {
                client.reset();
            }
            let told = |since: Instant| since.elapsed().as_secs();
            while gate.count() > 5 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert!((295..320).contains(&told(since)), "{}", told(since));
            while gate.count() > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert!((595..620).contains(&told(since)), "{}", told(since));
            for mut client in waiting {
                assert_eq!(client.head().await.map(|head| head.status), Some(200));
                let mut all = String::new();
                while let Some(chunk) = client.chunk().await {
                    all.push_str(&String::from_utf8(chunk).expect("text"));
                }
                assert!(data(&all).iter().any(|message| message["result"]["isError"] == true), "{all}");
            }
            let mut client = Raw::connect(address).await;
            client.send(&session.delete()).await;
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(204));
            repeated(10, "requests")
        };
        let at_rest = async || {
            while Handle::current().metrics().num_alive_tasks() > 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            allocated()
        };
        compare("questions that nobody answers", 2, at_rest, round).await;
        service.drain(Duration::ZERO).await;
        assert_eq!(service.session_metrics().map(|sessions| sessions.live), Some(0));
    });
}

/// Clients of all eras at the same address, while others mistreat it: each is served by its own rules.
#[test]
fn all_eras_at_once() {
    let alone = alone();
    mistreat_sessions(&alone, "all eras at once", 2, short(), async |arena| {
        let session = Session::begin(arena).await;
        let (mut stream, _) = session.stream(arena, None).await;
        let (mut asked, question) = session.asked(arena, 7).await;
        let mut listener = arena.listener(1).await;
        for round in 0..20 {
            let other = Session::begin(arena).await;
            let modern = crate::wire::call(round, "echo", r#"{"text":"x"}"#);
            // A modern request has no session, whatever it names.
            let named = String::from_utf8(modern).expect("text");
            let named = named.replacen("Host:", &format!("Mcp-Session-Id: {}\r\nHost:", other.0), 1);
            let answer = ask(arena, named.as_bytes()).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            // Nor does a legacy one get around the session by leaving the revision out.
            let bare = request(1, "tools/call", r#"{"name":"wait"}"#);
            assert_eq!(arena.status(&post("", bare.as_bytes())).await, Some(400));
            let mut gone = arena.connect().await;
            gone.send(&other.call(1, "ask", "{}")).await;
            gone.reset();
            arena.status(&post("", HELLO.as_bytes())).await;
            other.end(arena).await;
            arena.honest().await;
            session.works(arena).await;
        }
        arena.server.publish(&mcp_server::Change::Resource("test:text".to_owned()));
        assert!(listener.chunk().await.is_some());
        arena.server.publish(&mcp_server::Change::Tools);
        assert!(stream.chunk().await.is_some());
        let answer = ask(arena, &session.post(accept(&question, "right").as_bytes())).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        assert!(all_of(&mut asked).await.contains("right"));
        drop((stream, listener, asked));
        session.end(arena).await;
        repeated(20 * 5, "requests")
    });
}
