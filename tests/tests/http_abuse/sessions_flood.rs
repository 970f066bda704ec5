//! Handshakes that nothing follows.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, Response};
use mcp_server::Principal;
use mcp_session::{EndReason, SessionError};
use mcp_transport_http::{HttpOptions, HttpService, ResponseBody, SessionMode, SessionOptions};
use tokio::runtime::{Builder, Handle};
use tokio::time::sleep;
use tower_service::Service;

use crate::arena::server;
use crate::heap::{allocated, alone};
use crate::mistreat::{compare, mistreat_sessions};
use crate::sessions::{HELLO, Session, ask, request, short};
use crate::tally::repeated;
use crate::wire::{post, within};

/// Asks the service itself, without a socket.
async fn send(service: &HttpService, session: Option<&str>, who: Option<&str>, body: &str) -> Response<ResponseBody> {
    let mut request = Request::post("/mcp")
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    if let Some(who) = who {
        request = request.extension(Principal::new(None, who));
    }
    service.clone().call(request.body(body.to_owned()).expect("a request")).await.expect("an answer")
}

async fn begin(service: &HttpService, who: Option<&str>) -> Option<String> {
    let answer = send(service, None, who, HELLO).await;
    let id = answer.headers().get("mcp-session-id").map(|id| id.to_str().expect("text").to_owned());
    assert_eq!(id.is_some(), answer.status() == 200, "{answer:?}");
    id
}

async fn end(service: &HttpService, session: &str, who: &str) -> u16 {
    let request = Request::delete("/mcp").header(HOST, "localhost").header("mcp-session-id", session);
    let request = request.extension(Principal::new(None, who)).body(String::new()).expect("a request");
    service.clone().call(request).await.expect("an answer").status().as_u16()
}

fn echo() -> String {
    request(1, "tools/call", r#"{"name":"echo","arguments":{"text":"x"}}"#)
}

/// There are no more than may be idle, the oldest that were never used go first, and who works is left alone: one that
/// has its stream open, and one that calls now and then.
#[test]
fn handshakes_without_end() {
    const IDLE: usize = 1000;
    const HANDSHAKES: usize = 20_000;
    let alone = alone();
    let options = SessionOptions::default()
        .idle_limit(IDLE)
        .idle_timeout(Some(Duration::from_secs(10)))
        .sweep_interval(Duration::from_millis(20));
    let options = HttpOptions::default().session_options(options);
    mistreat_sessions(&alone, "handshakes without end", 1, options, async |arena| {
        let (listening, calling) = (Session::begin(arena).await, Session::begin(arena).await);
        let (mut stream, _) = listening.stream(arena, None).await;
        let before = arena.allocated();
        let mut most = 0;
        for count in 0..HANDSHAKES {
            begin(&arena.service, None).await.expect("a session");
            assert!(arena.sessions() <= IDLE + 3, "{:?}", arena.service.session_metrics());
            if count % 100 == 0 {
                calling.works(arena).await;
                listening.works(arena).await;
                most = most.max(arena.allocated().saturating_sub(before));
            }
        }
        assert!(most < IDLE * 8192, "{most} bytes for {IDLE} sessions");
        let metrics = arena.service.session_metrics().expect("there are sessions");
        assert!(metrics.ended(EndReason::Evicted) > 0 && metrics.ended(EndReason::Idle) == 0, "{metrics:?}");
        // Those that nobody uses end, and others do not.
        within(async {
            while arena.sessions() > 2 {
                calling.works(arena).await;
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        arena.server.publish(&mcp_server::Change::Tools);
        // Before that there may have been comments.
        while !String::from_utf8_lossy(&stream.chunk().await.expect("an event")).contains("list_changed") {}
        calling.end(arena).await;
        listening.end(arena).await;
        assert!(stream.chunk().await.is_none());
        repeated(HANDSHAKES, "sessions")
    });
}

/// A session takes little more memory than the text of its handshake, and all that are idle take no more together than
/// they may; who was there before is not ended by them.
// covers: SEC-5
#[test]
fn sec_5_fat_handshakes() {
    const BUDGET: usize = 8 << 20;
    let alone = alone();
    let entries: Vec<String> = (0..5500).map(|number| format!(r#""e{number:04}":{{}}"#)).collect();
    let fat = HELLO.replace(r#"{"elicitation":{}}"#, &format!(r#"{{"experimental":{{{}}}}}"#, entries.join(",")));
    let options = SessionOptions::default()
        .idle_timeout(Some(Duration::from_secs(10)))
        .idle_bytes_limit(BUDGET)
        .sweep_interval(Duration::from_millis(20));
    let options = HttpOptions::default().session_options(options);
    mistreat_sessions(&alone, "fat handshakes", 1, options, async |arena| {
        let honest = Session::begin(arena).await;
        honest.works(arena).await;
        let before = arena.allocated();
        for count in 1..=400 {
            let answer = ask(arena, &post("", fat.as_bytes())).await;
            assert!(answer.status == 200 && answer.header("mcp-session-id").is_some(), "{answer:?}");
            if count == 50 {
                let each = arena.allocated().saturating_sub(before) / count;
                assert!(each <= fat.len() + 4096, "{each} bytes for a session whose handshake has {}", fat.len());
            }
            if count % 2 == 0 {
                honest.works(arena).await;
                let all = arena.allocated().saturating_sub(before);
                assert!(all < BUDGET + (2 << 20), "{all} bytes for all sessions");
            }
        }
        let metrics = arena.service.session_metrics().expect("there are sessions");
        assert!(metrics.ended(EndReason::Evicted) > 0 && metrics.idle_bytes <= BUDGET + fat.len() * 2, "{metrics:?}");
        honest.works(arena).await;
        honest.end(arena).await;
        repeated(400, "sessions")
    });
}

/// With a clock that jumps, a client that only shakes hands has two hours like others, and one that calls lives on.
// covers: MIS-10
#[test]
fn those_that_are_never_used() {
    let _alone = alone();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    let round = async || {
        let options = HttpOptions::default().sessions(SessionMode::Stateful);
        let service = HttpService::with_options(server(&std::sync::Arc::default()), options);
        let metrics = || service.session_metrics().expect("there are sessions");
        let honest = begin(&service, None).await.expect("a session");
        let left = begin(&service, None).await.expect("a session");
        for session in [&honest, &left] {
            assert_eq!(send(&service, Some(session), None, &echo()).await.status(), 200);
        }
        for _ in 0..2000 {
            begin(&service, None).await.expect("a session");
        }
        for _ in 0..7 {
            sleep(Duration::from_secs(1000)).await;
            assert_eq!(send(&service, Some(&honest), None, &echo()).await.status(), 200);
        }
        assert_eq!(metrics().live, 2002, "there is room for all");
        sleep(Duration::from_secs(300)).await;
        assert_eq!(
            (metrics().live, metrics().ended(EndReason::NeverUsed), metrics().ended(EndReason::Idle)),
            (1, 2000, 1)
        );
        assert_eq!(send(&service, Some(&left), None, &echo()).await.status(), 404);
        service.drain(Duration::ZERO).await;
        assert_eq!(metrics().live, 0);
        assert!(begin(&service, None).await.is_none(), "there are no new ones");
        repeated(2000, "sessions")
    };
    let at_rest = async || {
        while Handle::current().metrics().num_alive_tasks() > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        allocated()
    };
    runtime.block_on(compare("those that are never used", 2, at_rest, round));
}

/// Who is known has so many, whichever way it asks; its oldest make room, and others keep theirs.
#[test]
fn more_than_one_principal_may_have() {
    let alone = alone();
    mistreat_sessions(&alone, "sessions of one principal", 1, short(), async |arena| {
        let service = &arena.service;
        let refused = |why| service.session_metrics().expect("there are sessions").refused(why);
        let (others, foreign) = (arena.sessions(), refused(SessionError::WrongOwner));
        let ann = begin(service, Some("ann")).await.expect("a session");
        // Often enough to keep the session, however slow the machine is.
        let ann_calls = async || assert_eq!(send(service, Some(&ann), Some("ann"), &echo()).await.status(), 200);
        let mut hers = Vec::new();
        for count in 0..2000 {
            if count % 50 == 0 {
                ann_calls().await;
            }
            hers.push(begin(service, Some("mallory")).await.expect("the oldest makes room"));
            assert!(arena.sessions() <= others + 65, "{:?}", service.session_metrics());
        }
        for id in &hers[..5] {
            assert_eq!(send(service, Some(id), Some("mallory"), &echo()).await.status(), 404);
        }
        // All of hers are at work.
        let (mut waiting, mut used) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            let id = begin(service, Some("eve")).await.expect("a session");
            used.push(id.clone());
            let service = service.clone();
            let wait = request(1, "tools/call", r#"{"name":"wait"}"#);
            waiting.push(tokio::spawn(async move { send(&service, Some(&id), Some("eve"), &wait).await.status() }));
        }
        arena.gate.has_inside(60).await;
        let mut idle = Vec::new();
        for count in 0..500 {
            if count % 50 == 0 {
                ann_calls().await;
            }
            idle.push(begin(service, Some("eve")).await.expect("idle ones make room"));
        }
        for other in ["mallory", "eve"] {
            assert_eq!(send(service, Some(&ann), Some(other), &echo()).await.status(), 403);
        }
        assert_eq!(send(service, Some(&ann), None, &echo()).await.status(), 403);
        assert_eq!(send(service, Some(&ann), Some("ann"), &echo()).await.status(), 200);
        arena.gate.open(60);
        for task in waiting {
            assert_eq!(task.await.expect("it ends"), 200);
        }
        assert_eq!((refused(SessionError::WrongOwner) - foreign, refused(SessionError::TooMany)), (3, 0));
        // Those that were used would stay for two hours.
        for (id, who) in used.iter().map(|id| (id, "eve")).chain([(&ann, "ann")]) {
            assert_eq!(end(service, id, who).await, 204);
        }
        // The others would end by themselves, which the next round does not wait for. One of them does: whoever ends it
        // gives the room back that was needed for all.
        for (ids, who) in [(&hers, "mallory"), (&idle, "eve")] {
            for id in ids.iter().rev().skip(1).take(63) {
                assert!(matches!(end(service, id, who).await, 204 | 404));
            }
        }
        repeated(2000 + 60 + 500, "sessions")
    });
}

/// A handshake that fails leaves no session, whatever is wrong with it.
#[test]
fn handshakes_that_fail() {
    let alone = alone();
    let long = "x".repeat(100_000);
    let hello = |params: &str| request(0, "initialize", params);
    let cases = [
        hello("{}"),
        hello("[]"),
        hello("1"),
        hello("null"),
        hello(r#"{"protocolVersion":1,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#),
        hello(r#"{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"a","version":"1"}}"#),
        hello(r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":"a"}"#),
        hello(r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":7},"clientInfo":{"name":1}}"#),
        hello(&format!(r#"{{"protocolVersion":"{long}"}}"#)),
        hello(&format!(r#"{{"{long}":{{}}}}"#)),
        HELLO.replace("\"id\":0", "\"id\":null"),
        HELLO.replace("\"id\":0", "\"id\":{}"),
        HELLO.replace("2.0", "1.0"),
        format!("[{HELLO}]"),
        format!("[{HELLO},{HELLO}]"),
        HELLO[..HELLO.len() - 1].to_owned(),
        HELLO.replace("\"id\":0,", ""),
    ];
    mistreat_sessions(&alone, "handshakes that fail", 2, short(), async |arena| {
        let session = Session::begin(arena).await;
        for case in cases.iter().cycle().take(cases.len() * 20) {
            let answer = ask(arena, &post("", case.as_bytes())).await;
            let told: String = case.chars().take(120).collect();
            assert!(answer.header("mcp-session-id").is_none(), "{told}: {answer:?}");
            assert!(matches!(answer.status, 200 | 202 | 400), "{told}: {answer:?}");
            assert_eq!(arena.sessions(), 1, "{told}");
        }
        // A revision that nobody knows is answered with one that the server has, which is no failure.
        let unknown = HELLO.replace("2025-11-25", "1999-01-01");
        let answer = ask(arena, &post("", unknown.as_bytes())).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let other = Session(answer.header("mcp-session-id").expect("a session").to_owned());
        other.end(arena).await;
        session.works(arena).await;
        session.end(arena).await;
        repeated(cases.len() * 20, "requests")
    });
}
