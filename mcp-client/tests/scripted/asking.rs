//! Legacy servers that ask while a call is open.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ClientCapability, ElicitAction, ElicitResult, Root};
use mcp_client::{CloseReason, CommandError, Error, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ScriptedServer, Task, envelope, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder};

fn form() -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

/// Questions come as requests, and are answered by the same functions.
// covers: DU-26, EL-4
#[test]
fn legacy_servers_are_answered() {
    for kind in KINDS {
        let builder = builder()
            .on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline))
            .roots([Root::new("file:///r")]);
        let (_client, mut server) = ScriptedServer::legacy(kind, builder);
        server.send_request("x", "elicitation/create", form());
        assert_eq!(server.next_message(), json!({ "jsonrpc": "2.0", "id": "x", "result": { "action": "decline" } }));
        server.send_request("y", "roots/list", json!({}));
        assert_eq!(server.next_message()["result"], json!({ "roots": [{ "uri": "file:///r" }] }));
        server.send_request("z", "ping", json!({}));
        assert_eq!(server.next_message(), json!({ "jsonrpc": "2.0", "id": "z", "result": {} }));
    }
}

/// What was not declared is refused.
// covers: EL-1, SA-3
#[test]
fn what_was_not_declared_is_refused() {
    for kind in KINDS {
        let builder = builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline));
        let (_client, mut server) = ScriptedServer::legacy(kind, builder);
        let url = json!({ "mode": "url", "message": "?", "url": "https://a", "elicitationId": "1" });
        for (method, params) in [
            ("roots/list", json!({})),
            ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
            ("elicitation/create", url),
            ("elicitation/create", json!({ "message": 7 })),
            ("who/knows", json!({})),
        ] {
            server.send_request("x", method, params);
            assert!(server.next_message()["error"]["code"].is_i64(), "{method}");
        }
    }
}

/// A modern server cannot ask; it gets no answer.
// covers: DU-45, M-16, IO-3
#[test]
fn modern_servers_cannot_ask() {
    for kind in KINDS {
        let (_client, mut server) = ScriptedServer::modern(kind, builder().roots([]));
        server.send_request("x", "roots/list", json!({}));
        server.assert_quiet();
    }
}

/// A question that the server calls off is let go of, and its id can be used again.
// covers: B-40, K-8
#[test]
fn questions_can_be_called_off() {
    for kind in KINDS {
        let at_work = Arc::new(());
        let (asked, calls) = (Arc::clone(&at_work), Arc::new(Mutex::new(0)));
        let builder = builder().on_form_elicitation(move |_, _| {
            let (work, first) = (Arc::clone(&asked), {
                let mut calls = calls.lock().unwrap();
                *calls += 1;
                *calls == 1
            });
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                drop(work);
                ElicitResult::new(ElicitAction::Cancel)
            }
        });
        let (_client, mut server) = ScriptedServer::legacy(kind, builder);
        server.send_request("x", "elicitation/create", form());
        assert_eq!(Arc::strong_count(&at_work), 3);
        server.notify("notifications/cancelled", json!({ "requestId": "x" }));
        server.assert_quiet();
        assert_eq!(Arc::strong_count(&at_work), 2);
        server.send_request("x", "elicitation/create", form());
        assert_eq!(server.next_message()["result"], json!({ "action": "cancel" }));
    }
}

/// The end of a session, of a server or of the client lets go of those who are asked.
// covers: S4.53, IO-14
#[test]
fn questions_end_with_who_asked_them() {
    for stage in 0..3 {
        let at_work = Arc::new(());
        let asked = Arc::clone(&at_work);
        let builder = builder().on_form_elicitation(move |_, _| {
            let work = Arc::clone(&asked);
            async move {
                std::future::pending::<()>().await;
                drop(work);
                ElicitResult::new(ElicitAction::Cancel)
            }
        });
        let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, builder);
        server.send_request("x", "elicitation/create", form());
        assert_eq!(Arc::strong_count(&at_work), 3);
        match stage {
            0 => {
                server.handle.handle_session_lost(None, true, mcp_client::SessionLossReason::Unknown { status: 404 });
                server.expect_request("initialize");
            }
            1 => {
                let _ = server.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
                server.assert_quiet();
            }
            _ => {
                drop(client);
                assert!(server.is_closed());
                server.close(CloseReason::ByClient);
            }
        }
        assert!(Arc::strong_count(&at_work) <= 2, "stage {stage}");
    }
}

/// Legacy servers hear that roots changed; modern ones ask each time.
// covers: RO-1, B-46
#[test]
fn roots_change() {
    let (client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder().roots([]));
    let changing = client.clone();
    expect_ready(async move { changing.set_roots([Root::new("file:///b")]).await }).unwrap();
    server.expect_notification("notifications/roots/list_changed");
    server.send_request("x", "roots/list", json!({}));
    assert_eq!(server.next_message()["result"]["roots"][0]["uri"], "file:///b");
    drop(client);
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().roots([]));
    expect_ready(async move { client.set_roots([Root::new("file:///b")]).await }).unwrap();
    server.assert_quiet();
    let (client, _server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let refused = expect_ready(async move { client.set_roots([]).await });
    assert!(matches!(refused, Err(Error::Command(CommandError::MissingCapability(ClientCapability::Roots)))));
}

/// A form that is answered when the test says so.
fn slow_form() -> (mcp_client::ClientBuilder, futures_util::future::AbortHandle) {
    let (answer, answered) = futures_util::future::AbortHandle::new_pair();
    let answered = Arc::new(Mutex::new(Some(answered)));
    let builder = builder().on_form_elicitation(move |_, _| {
        let registration = answered.lock().expect("nobody panicked").take().expect("it is asked once");
        let waiting = futures_util::future::Abortable::new(std::future::pending::<()>(), registration);
        async move {
            let _ = waiting.await;
            ElicitResult::new(ElicitAction::Decline)
        }
    });
    (builder, answer)
}

const IDLE: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(50);

/// While a person fills in a form it is not the server that is silent; after that it has all of its time again.
// covers: SEC-14
#[test]
fn sec_14_a_form_may_take_longer_than_the_server() {
    for kind in KINDS {
        for answers_in_time in [true, false] {
            let (builder, form_is_filled_in) = slow_form();
            let (client, mut server) = ScriptedServer::legacy(kind, builder);
            let mut call = Task::start(client.call_tool("t").idle_timeout(IDLE));
            let request = server.expect_request("tools/call");
            server.advance(IDLE / 2);
            server.send_on(&request, &envelope::request("x", "elicitation/create", form()));
            server.advance(LONG);
            call.assert_pending();
            server.assert_quiet();
            form_is_filled_in.abort();
            assert_eq!(server.next_message()["result"]["action"], "decline");
            server.advance(IDLE * 9 / 10);
            call.assert_pending();
            if answers_in_time {
                server.respond(&request, tool_result("done"));
                call.finish().unwrap();
            } else {
                server.advance(IDLE / 5);
                assert!(matches!(call.finish(), Err(Error::TimedOut)));
                server.expect_cancelled(&request);
            }
        }
    }
}

/// A limit to the whole call is the caller's, whatever the server asks.
// covers: SEC-14
#[test]
fn sec_14_a_form_does_not_extend_the_limit_of_a_call() {
    for kind in KINDS {
        let (builder, _form) = slow_form();
        let (client, mut server) = ScriptedServer::legacy(kind, builder);
        let mut call = Task::start(client.call_tool("t").idle_timeout(IDLE).total_timeout(LONG));
        let request = server.expect_request("tools/call");
        server.send_on(&request, &envelope::request("x", "elicitation/create", form()));
        server.advance(LONG - IDLE);
        call.assert_pending();
        server.advance(IDLE);
        assert!(matches!(call.finish(), Err(Error::TimedOut)));
    }
}

/// Where each call has a stream, the form belongs to one of them; on a pipe it may belong to any.
// covers: SEC-14
#[test]
fn sec_14_other_calls_are_timed_where_they_can_be_told_apart() {
    for kind in KINDS {
        let (builder, form_is_filled_in) = slow_form();
        let (client, mut server) = ScriptedServer::legacy(kind, builder);
        let mut asking = Task::start(client.call_tool("t").idle_timeout(IDLE));
        let request = server.expect_request("tools/call");
        let mut other = Task::start(client.call_tool("t").idle_timeout(IDLE));
        server.expect_request("tools/call");
        server.send_on(&request, &envelope::request("x", "elicitation/create", form()));
        server.advance(IDLE);
        asking.assert_pending();
        match kind {
            TransportKind::RequestPerCall => assert!(matches!(other.finish(), Err(Error::TimedOut))),
            TransportKind::Pipe | _ => other.assert_pending(),
        }
        // The server may call its question off, too.
        server.notify("notifications/cancelled", json!({ "requestId": "x" }));
        server.advance(IDLE);
        assert!(matches!(asking.finish(), Err(Error::TimedOut)));
        form_is_filled_in.abort();
    }
}

/// Questions that are open are bounded by their size, too; one is always heard.
// covers: SEC-7
#[test]
fn sec_7_questions_are_bounded_in_bytes() {
    let (builder, _form) = slow_form();
    let (_client, mut server) = ScriptedServer::legacy(
        TransportKind::Pipe,
        builder.on_sampling(|_, _| std::future::pending::<mcp_client::types::CreateMessageResult>()),
    );
    let large = json!({ "maxTokens": 1, "messages": [{ "role": "user", "content": { "type": "text", "text": "x".repeat(9 << 20) } }] });
    server.send_request("1", "sampling/createMessage", large.clone());
    server.assert_quiet();
    server.send_request("2", "sampling/createMessage", large);
    assert!(server.next_message()["error"].is_object());
    server.send_request("3", "elicitation/create", form());
    server.assert_quiet();
}
