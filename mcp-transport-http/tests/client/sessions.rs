//! Sessions of legacy servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::Revision;
use mcp_client::{ClientEvent, CloseReason, Error, SessionLoss, SessionLossAction, SessionLossReason};
use mcp_testkit::envelope::tool_result;

use crate::scripted::{Reply, Scripted, Seen, answer, builder, call, legacy, legacy_builder, within};

/// A server that knows only some of its sessions.
fn forgetful(known: &'static [&'static str]) -> impl FnMut(&Seen) -> Reply + Send {
    legacy(move |seen| match (seen.verb.as_str(), seen.header("mcp-session-id")) {
        ("POST", Some(id)) if known.contains(&id) => Reply::json(&answer(seen, &tool_result(id))),
        ("GET" | "DELETE", _) => Reply::status(405),
        _ => Reply::new(
            404,
            &[("content-type", "application/json")],
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"gone"}}"#,
        ),
    })
}

/// A session that is gone is replaced once, and the call is made again in the new one.
// covers: S4.6, S4.53, RB-67, B-19
#[tokio::test]
async fn a_lost_session_is_renewed() {
    let server = Scripted::start(forgetful(&["s2"])).await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    assert_eq!(client.session_id().as_deref(), Some("s1"));
    assert_eq!(call(&client).await.unwrap(), "s2");
    assert_eq!(client.session_id().as_deref(), Some("s2"));
    let expected = ["initialize", "notifications/initialized", "tools/call"];
    assert_eq!(server.methods(), [expected, expected].concat());
}

/// Calls that find out at the same time share one new session.
// covers: RB-67
#[tokio::test]
async fn one_loss_is_one_renewal() {
    let server = Scripted::start(forgetful(&["s2"])).await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client).await })
        })
        .collect();
    for call in calls {
        assert_eq!(within(call).await.unwrap().unwrap(), "s2");
    }
    assert_eq!(server.seen_of("initialize").len(), 2);
}

/// A server that forgets every session is given up, and says why.
// covers: S4.52, S4.54
#[tokio::test]
async fn sessions_that_never_hold_are_given_up() {
    let server = Scripted::start(forgetful(&[])).await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert!(matches!(error, Error::Closed(_) | Error::Interrupted(_)), "{error:?}");
    let why = within(client.closed()).await;
    assert!(matches!(why, CloseReason::SessionLost(_)), "{why:?}");
    assert_eq!(why.http_status(), Some(404));
    assert_eq!(server.seen_of("initialize").len(), 2);
}

/// A client that is not to renew ends when its session is gone, and says how; one that asks a function does what that
/// says; and the application hears of it in any case.
// covers: MIS-12, S4.52..S4.54
#[tokio::test]
async fn mis_12_the_loss_of_a_session_is_told_and_may_be_the_end() {
    let expected = |id: &str| (Some(id.to_owned()), SessionLossReason::Unknown { status: 404 });
    for decision in [None, Some(SessionLossAction::Renew), Some(SessionLossAction::Fail)] {
        for asks in [false, true] {
            let (told, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
            let (events, losses) = (Arc::clone(&told), Arc::clone(&asked));
            let mut builder = legacy_builder().on_event(move |event| events.lock().unwrap().push(event));
            builder = match (decision, asks) {
                (None, _) => builder,
                (Some(decision), false) => builder.on_session_lost(decision),
                (Some(decision), true) => builder.on_session_lost(move |loss: &SessionLoss| {
                    losses.lock().unwrap().push((loss.session_id.clone(), loss.reason));
                    decision
                }),
            };
            let server = Scripted::start(forgetful(&["s2"])).await;
            let client = within(builder.connect(server.transport().standalone_stream(false))).await.unwrap();
            let called = call(&client).await;
            let action = decision.unwrap_or_default();
            match action {
                SessionLossAction::Fail => {
                    assert!(matches!(called, Err(Error::Closed(CloseReason::SessionLost(_)))), "{called:?}");
                    let why = within(client.closed()).await;
                    assert_eq!(why.http_status(), Some(404));
                    assert!(!format!("{why:?}").contains("s1"), "a session is not for logs");
                    assert_eq!(server.seen_of("initialize").len(), 1);
                }
                SessionLossAction::Renew | _ => assert_eq!(called.unwrap(), "s2"),
            }
            let told = told.lock().unwrap().clone();
            let [ClientEvent::SessionLost { loss, action: done }] = &told[..] else { panic!("{told:?}") };
            assert_eq!(((loss.session_id.clone(), loss.reason), *done), (expected("s1"), action));
            if asks && decision.is_some() {
                assert_eq!(*asked.lock().unwrap(), [expected("s1")]);
            }
        }
    }
}

/// Conformance 9.21: that there is no stream, however the server says it, is fine, and begins no new session.
#[tokio::test]
async fn no_stream_is_no_loss() {
    for status in [404, 405, 501, 400] {
        let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
            "GET" => Reply::status(status),
            "DELETE" => Reply::status(405),
            _ => Reply::json(&answer(seen, &tool_result("fine"))),
        }))
        .await;
        let client = within(legacy_builder().connect(server.transport())).await.unwrap();
        server.until(|seen| seen.iter().any(|seen| seen.verb == "GET")).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(call(&client).await.unwrap(), "fine");
        assert_eq!((server.seen_of("GET").len(), server.seen_of("initialize").len()), (1, 1), "{status}");
    }
}

/// A stream that was there and is 404 later tells that the session is gone; a server that does so again and again is not
/// followed without end.
#[tokio::test]
async fn a_stream_can_tell_of_the_loss() {
    let mut known = 0;
    let server = Scripted::start(legacy(move |seen| match (seen.verb.as_str(), seen.header("mcp-session-id")) {
        ("GET", _) => {
            known += 1;
            if known == 1 { Reply::events("") } else { Reply::status(404) }
        }
        ("DELETE", _) => Reply::status(405),
        (_, id) => Reply::json(&answer(seen, &tool_result(id.unwrap_or("none")))),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    server.until(|seen| seen.iter().filter(|seen| seen.method() == "initialize").count() == 2).await;
    assert_eq!(call(&client).await.unwrap(), "s2");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((server.seen_of("GET").len(), server.seen_of("initialize").len()), (3, 2));
}

/// Nothing is asked in a session before the server knows that it is open.
// covers: B-2
#[tokio::test]
async fn a_session_opens_before_it_is_used() {
    let server = Scripted::start(|seen| match seen.method() {
        "initialize" => {
            let body = crate::scripted::shake_hands(seen).to_string();
            Reply::new(200, &[("content-type", "application/json"), ("mcp-session-id", "s")], &body)
        }
        // It is not accepted before the client loses its patience with the calls.
        "notifications/initialized" => Reply::hang(),
        _ => Reply::json(&answer(seen, &tool_result("too early"))),
    })
    .await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    let call = client.call_tool("t").arguments(&serde_json::json!({})).idle_timeout(Duration::from_millis(50));
    assert!(matches!(within(call).await, Err(Error::TimedOut)));
    assert_eq!(server.methods(), ["initialize", "notifications/initialized"]);
}

/// A session ends with its client, unless it belongs to somebody else; a server that hangs is not waited for.
// covers: S4.59, B-20
#[tokio::test]
async fn owned_sessions_end() {
    for (owns, deletes) in [(true, 1), (false, 0)] {
        let server = Scripted::start(legacy(|_| Reply::status(405))).await;
        let transport = server.transport().end_session_on_close(owns).standalone_stream(false);
        let client = within(legacy_builder().connect(transport)).await.unwrap();
        server.until(|seen| seen.iter().any(|seen| seen.method() == "notifications/initialized")).await;
        assert_eq!(within(client.close()).await, CloseReason::ByClient);
        assert_eq!(server.seen_of("DELETE").len(), deletes);
    }
    let server = Scripted::start(legacy(|_| Reply::hang())).await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
}

/// Who has a session can read its name; who has none, because the server or its era has none, reads nothing.
// covers: S4.51
#[tokio::test]
async fn the_session_can_be_read() {
    let named = Scripted::start(legacy(|_| Reply::status(405))).await;
    let nameless = Scripted::start(|seen| match seen.method() {
        "initialize" => Reply::json(&crate::scripted::shake_hands(seen)),
        _ => Reply::status(405),
    })
    .await;
    let modern = Scripted::start(crate::scripted::modern(|_| Reply::status(405))).await;
    for (server, name) in [(named, Some("s1")), (nameless, None), (modern, None)] {
        let client = server.client().await;
        assert_eq!(client.session_id().as_deref(), name);
        assert_eq!(client.save_session().map(|session| session.id).as_deref(), name);
    }
}

/// The server's own stream is opened unless told, the newest revision is tried first, what was found out need not be
/// found out again, and a revision that is the only one is also the least.
// covers: S4.62, S3.F13
#[tokio::test]
async fn the_stream_is_a_choice() {
    for (opens, gets) in [(None, 1), (Some(true), 1), (Some(false), 0)] {
        let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
            "POST" => Reply::json(&answer(seen, &tool_result("x"))),
            _ => Reply::status(405),
        }))
        .await;
        let transport =
            opens.into_iter().fold(server.transport(), |transport, opens| transport.standalone_stream(opens));
        let client = server.connect(transport).await.unwrap();
        call(&client).await.unwrap();
        server.until(|seen| seen.iter().filter(|seen| seen.verb == "GET").count() >= gets).await;
        within(client.close()).await;
        assert_eq!(server.seen_of("GET").len(), gets, "{opens:?}");
        assert_eq!(server.seen()[0].method(), "server/discover");
        assert_eq!(server.seen()[0].header("mcp-protocol-version"), Some("2026-07-28"));

        let detected = client.detected_revision().unwrap();
        let again = within(builder().detected_revision(detected).connect(server.transport())).await.unwrap();
        within(again.close()).await;
        assert_eq!(server.seen_of("server/discover").len(), 1);
        let pinned = builder().revisions([Revision::V2026_07_28]).connect(server.transport());
        assert!(matches!(within(pinned).await.unwrap_err(), Error::Closed(CloseReason::ConnectFailed(_))));
    }
}

/// What was said before the end is heard before the end, in order; a server that does not listen is not waited for.
#[tokio::test]
async fn the_last_words_are_said() {
    let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
        "POST" => Reply::status(202),
        _ => Reply::status(405),
    }))
    .await;
    let client = within(legacy_builder().connect(server.transport().standalone_stream(false))).await.unwrap();
    for number in 0..3 {
        within(client.notify(format!("notifications/{number}"), &serde_json::json!({}))).await.unwrap();
    }
    within(client.close()).await;
    let said = ["initialize", "notifications/initialized", "notifications/0", "notifications/1", "notifications/2"];
    assert_eq!(server.methods(), [&said[..], &["DELETE"]].concat());

    let server = Scripted::start(legacy(|_| Reply::hang())).await;
    let client = within(legacy_builder().connect(server.transport().end_session_on_close(false))).await.unwrap();
    within(client.notify("notifications/x", &serde_json::json!({}))).await.unwrap();
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
}

/// A saved session goes on without a handshake, and its stream is listened to at once.
// covers: S4.57, S4.58, S4.60
#[tokio::test]
async fn a_saved_session_goes_on() {
    let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
        "POST" => Reply::json(&answer(seen, &tool_result(seen.header("mcp-session-id").unwrap()))),
        _ => Reply::status(405),
    }))
    .await;
    let transport = server.transport().end_session_on_close(false).standalone_stream(false);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    let session = client.save_session().unwrap();
    // Whoever knows its name can go on with it.
    assert!(!format!("{session:?}").contains("s1"));
    within(client.close()).await;
    let client = within(legacy_builder().resume_session(session).connect(server.transport())).await.unwrap();
    server.until(|seen| seen.iter().any(|seen| seen.verb == "GET")).await;
    assert_eq!(call(&client).await.unwrap(), "s1");
    assert_eq!(server.seen_of("initialize").len(), 1);
    let resumed = server.seen_of("GET").pop().unwrap();
    assert_eq!(
        (resumed.header("mcp-session-id"), resumed.header("mcp-protocol-version")),
        (Some("s1"), Some("2025-11-25"))
    );
}

/// A legacy server without sessions gets none, and a 404 of its is a status.
#[tokio::test]
async fn without_a_session_404_is_a_status() {
    let server = Scripted::start(|seen: &Seen| match seen.method() {
        "initialize" => Reply::json(&crate::scripted::shake_hands(seen)),
        "notifications/initialized" => Reply::status(202),
        _ => Reply::status(404),
    })
    .await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    assert_eq!(client.session_id(), None);
    assert!(matches!(call(&client).await, Err(Error::Status { status: 404, .. })));
    within(client.close()).await;
    assert!(server.seen_of("DELETE").is_empty());
}
