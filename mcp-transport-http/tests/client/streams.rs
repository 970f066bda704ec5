//! Streams of legacy servers, and coming back to them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use mcp_client::types::{Revision, SubscriptionFilter};
use mcp_client::{Change, CloseReason, Error};
use mcp_testkit::envelope::tool_result;
use serde_json::json;

use crate::scripted::{Reply, Scripted, Seen, answer, call, event, legacy, legacy_builder, shake_hands, within};

/// A call whose stream ends without the answer is waited for by one GET, not before the time that the server wants,
/// from where the stream ended; the session's own stream stays as it is.
// covers: B-103, S4.56
#[tokio::test]
async fn a_call_is_resumed() {
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let mut asked: Option<Seen> = None;
        let server = Scripted::start(legacy(move |seen| match (seen.verb.as_str(), seen.header("last-event-id")) {
            ("POST", _) => {
                asked = Some(seen.clone());
                Reply::events("id: e1\nretry: 150\ndata:\n\n")
            }
            ("GET", Some("e1")) => Reply::events(&event(&answer(asked.as_ref().unwrap(), &tool_result("resumed")))),
            ("GET", None) => Reply::open_events("id: g1\ndata:\n\n"),
            _ => Reply::status(405),
        }))
        .await;
        let client = within(legacy_builder().revisions([revision]).connect(server.transport())).await.unwrap();
        assert_eq!(call(&client).await.unwrap(), "resumed");
        let call = server.seen_of("tools/call").pop().unwrap();
        let gets = server.seen_of("GET");
        let resumed: Vec<_> = gets.iter().filter(|get| get.header("last-event-id").is_some()).collect();
        assert_eq!((gets.len(), resumed.len()), (2, 1));
        assert_eq!(resumed[0].header("mcp-session-id"), Some("s1"));
        assert_eq!(resumed[0].header("accept"), Some("text/event-stream"));
        assert!(resumed[0].at.duration_since(call.at) >= Duration::from_millis(150));
        within(client.close()).await;
    }
}

/// Coming back has an end, and so has a server that does not go on with the stream.
// covers: S4.56
#[tokio::test]
async fn resuming_has_an_end() {
    for (status, gets, what) in [(503, 3, "503"), (405, 1, "refused to resume"), (200, 3, "each time")] {
        let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
            "POST" => Reply::events("id: e1\nretry: 1\ndata:\n\n"),
            "GET" if status == 200 => Reply::events(": nothing\n\n"),
            _ => Reply::status(status),
        }))
        .await;
        let transport = server.transport().standalone_stream(false).max_reconnects(3);
        let client = within(legacy_builder().connect(transport)).await.unwrap();
        let Err(Error::Interrupted(why)) = call(&client).await else { panic!("not interrupted") };
        assert!(why.contains(what), "{why}");
        assert_eq!(server.seen_of("GET").len(), gets);
    }
}

/// A stream without ids cannot be resumed, and a session that is gone ends the call, which is not made again: the server
/// has seen it.
#[tokio::test]
async fn what_cannot_be_resumed_is_over() {
    let server = Scripted::start(legacy(|seen| match (seen.verb.as_str(), seen.header("mcp-session-id")) {
        ("POST", Some("s2")) => Reply::json(&answer(seen, &tool_result("renewed"))),
        ("POST", _) if seen.body["params"]["name"] == "without" => Reply::events("data: {}\n\n"),
        ("POST", _) => Reply::events("id: e1\nretry: 1\ndata:\n\n"),
        ("GET", _) => Reply::status(404),
        _ => Reply::status(405),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    let error = within(client.call_tool("without").arguments(&json!({}))).await.unwrap_err();
    assert!(matches!(error, Error::Interrupted(_)), "{error:?}");
    assert!(server.seen_of("GET").is_empty());
    let Err(Error::Interrupted(why)) = call(&client).await else { panic!("not interrupted") };
    assert!(why.contains("404"), "{why}");
    assert_eq!(server.seen_of("tools/call").len(), 2);
    assert_eq!(call(&client).await.unwrap(), "renewed");
}

/// The session's own stream is come back to, from where it was, and what it brings is handed on.
// covers: S4.55, S4.56
#[tokio::test]
async fn the_stream_of_the_session_comes_back() {
    let mut streams = 0;
    let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
        "GET" => {
            streams += 1;
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/custom", "params": { "n": streams } });
            match streams {
                1 => Reply::events(&format!("id: a\nretry: 5\n{}", event(&note))),
                2 => Reply::close(),
                3 => Reply::status(503),
                _ => Reply::open_events(&event(&note)),
            }
        }
        _ => Reply::status(405),
    }))
    .await;
    let (sender, receiver) = mpsc::channel();
    let builder = legacy_builder().on_notification(move |_, _, params| {
        let _ = sender.send(params.decode::<serde_json::Value>().unwrap()["n"].clone());
    });
    let client = within(builder.connect(server.transport())).await.unwrap();
    server.until(|seen| seen.iter().filter(|seen| seen.verb == "GET").count() == 4).await;
    let heard = tokio::task::spawn_blocking(move || [receiver.recv(), receiver.recv()]);
    assert_eq!(within(heard).await.unwrap(), [Ok(json!(1)), Ok(json!(4))]);
    let ids: Vec<_> =
        server.seen_of("GET").iter().map(|seen| seen.header("last-event-id").map(str::to_owned)).collect();
    assert_eq!(ids, [None, Some("a".to_owned()), Some("a".to_owned()), Some("a".to_owned())]);
    within(client.close()).await;
}

/// Every legacy session over Streamable HTTP has a stream, also one of the revision that knew HTTP+SSE alone: servers
/// that agree on it at this address tell changes, and ask, on the stream like in any other session.
// covers: S4.62
#[tokio::test]
async fn every_legacy_revision_has_a_stream() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
            "GET" => Reply::open_events(": open\n\n"),
            _ => Reply::status(405),
        }))
        .await;
        let client = within(legacy_builder().revisions([revision]).connect(server.transport())).await.unwrap();
        server.until(|seen| seen.iter().any(|seen| seen.verb == "GET")).await;
        assert_eq!(server.seen_of("GET")[0].header("mcp-session-id"), Some("s1"), "{revision}");
        within(client.close()).await;
    }
}

/// A stream that comes back from nowhere may have missed changes, so everything is reported as changed; one that goes
/// on where it was has missed nothing.
// covers: S4.55
#[tokio::test]
async fn a_stream_that_was_away_may_have_missed_changes() {
    for (first, is_gap) in [("", true), ("id: a\ndata:\n\n", false)] {
        let mut streams = 0;
        let is_heard = Arc::new(AtomicBool::new(false));
        let may_go_on = Arc::clone(&is_heard);
        let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
            "GET" => {
                streams += 1;
                let told = json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed" });
                match (streams, may_go_on.load(Ordering::Relaxed)) {
                    (1, _) => Reply::events(first),
                    (_, false) => Reply::status(503),
                    (_, true) => Reply::open_events(&event(&told)),
                }
            }
            _ => Reply::status(405),
        }))
        .await;
        let transport = server.transport().reconnect_interval(Duration::from_millis(50));
        let client = within(legacy_builder().connect(transport)).await.unwrap();
        let filter = SubscriptionFilter::default().tools_list_changed(true).prompts_list_changed(true);
        let mut listener = within(client.listen(filter)).await.unwrap();
        is_heard.store(true, Ordering::Relaxed);
        let heard = within(listener.next()).await.unwrap().unwrap();
        assert_eq!(heard, if is_gap { Change::Tools } else { Change::Prompts });
        within(client.close()).await;
    }
}

/// A server that has not noticed yet that the old stream is gone refuses a second one, for a while: both the TypeScript
/// and the Python servers say 409.
// covers: S4.55
#[tokio::test]
async fn a_conflict_passes() {
    let mut streams = 0;
    let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
        "GET" => {
            streams += 1;
            match streams {
                1 => Reply::events(""),
                2 => Reply::status(409),
                3 => Reply::status(408),
                _ => Reply::open_events(""),
            }
        }
        _ => Reply::status(405),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    server.until(|seen| seen.iter().filter(|seen| seen.verb == "GET").count() == 4).await;
    within(client.close()).await;
}

/// The handshake, too, may be answered on a stream that breaks off: it is come back to in the session that began.
// covers: B-102
#[tokio::test]
async fn a_handshake_is_resumed() {
    let mut asked: Option<Seen> = None;
    let server = Scripted::start(move |seen: &Seen| match (seen.method(), seen.header("last-event-id")) {
        ("initialize", _) => {
            asked = Some(seen.clone());
            let head = "content-type: text/event-stream\r\nmcp-session-id: s\r\nconnection: close\r\n";
            Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\nid: e1\nretry: 1\ndata:\n\n")).then_close()
        }
        ("GET", Some("e1")) if seen.header("mcp-session-id") == Some("s") => {
            Reply::events(&event(&shake_hands(asked.as_ref().unwrap())))
        }
        ("notifications/initialized", _) => Reply::status(202),
        _ => Reply::status(400),
    })
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    assert_eq!(client.session_id().as_deref(), Some("s"));
}

/// A server whose stream was there, and that cannot be reached any more, closes the transport, which says why; one that
/// only refuses, or never had a stream, does not.
// covers: S4.56
#[tokio::test]
async fn a_server_that_is_gone_ends_it() {
    let html = Reply::new(200, &[("content-type", "text/html")], "<html>");
    for (first, later, gets, is_over) in [
        (Reply::events(""), Reply::close(), 3, true),
        (Reply::events(""), Reply::status(503), 3, false),
        (Reply::close(), Reply::close(), 3, false),
        (html, Reply::close(), 1, false),
    ] {
        let mut first = Some(first);
        let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
            "GET" => first.take().unwrap_or_else(|| later.clone()),
            "POST" => Reply::json(&answer(seen, &tool_result("there"))),
            _ => Reply::status(405),
        }))
        .await;
        let transport = server.transport().max_reconnects(2);
        let client = within(legacy_builder().connect(transport)).await.unwrap();
        if is_over {
            assert!(matches!(within(client.closed()).await, CloseReason::Disconnected(_)));
        } else {
            server.until(|seen| seen.iter().filter(|seen| seen.verb == "GET").count() == gets).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(call(&client).await.unwrap(), "there");
        }
        assert_eq!(server.seen_of("GET").len(), gets);
    }
}

/// A legacy call that is given up is cancelled by a notification, and its stream is closed.
// covers: K-1
#[tokio::test]
async fn giving_up_is_told() {
    let server = Scripted::start(legacy(|seen| match seen.method() {
        "tools/call" => Reply::open_events(": working\n\n"),
        "notifications/cancelled" => Reply::status(202),
        _ => Reply::status(405),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    let call = client.call_tool("t").arguments(&json!({})).idle_timeout(Duration::from_millis(50));
    assert!(matches!(within(call).await, Err(Error::TimedOut)));
    server.until(|seen| seen.iter().any(|seen| seen.method() == "notifications/cancelled")).await;
    let id = &server.seen_of("tools/call")[0].body["id"];
    assert_eq!(&server.seen_of("notifications/cancelled")[0].body["params"]["requestId"], id);
}

/// Questions of the server, on the stream of a call, are answered by requests of their own, in order.
#[tokio::test]
async fn questions_are_answered_in_order() {
    let server = Scripted::start(legacy(|seen| match seen.method() {
        "tools/call" => {
            let pings: String =
                (0..20).map(|id| event(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))).collect();
            Reply::open_events(&pings)
        }
        // Some servers say more than they should.
        "POST" if seen.body["id"] == 3 => Reply::json(&json!({ "jsonrpc": "2.0", "result": {} })),
        "POST" if seen.body["id"] == 4 => Reply::status(204),
        "POST" if seen.body["id"] == 5 => Reply::status(500),
        _ => Reply::status(202),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    let calling = tokio::spawn({
        let client = client.clone();
        async move { call(&client).await }
    });
    server.until(|seen| seen.iter().filter(|seen| seen.method() == "POST").count() == 20).await;
    let ids: Vec<_> = server.seen_of("POST").iter().map(|seen| seen.body["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    calling.abort();
}

/// A server that asks without end, and accepts no answer, is left before it fills the memory.
#[tokio::test]
async fn a_server_that_only_asks_is_left() {
    let server = Scripted::start(legacy(|seen| match seen.method() {
        "tools/call" => {
            let question = event(&json!({ "jsonrpc": "2.0", "id": "q".repeat(50), "method": "ping" }));
            Reply::open_events("").then_repeat(&question, 100_000)
        }
        "DELETE" => Reply::status(405),
        _ => Reply::hang(),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert!(
        matches!(&error, Error::Closed(CloseReason::Disconnected(why)) if why.contains("does not accept messages")),
        "{error:?}"
    );
}
