//! Legacy servers that ask while a call is open.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ClientCapability, ElicitAction, ElicitResult, Root};
use mcp_client::{CloseReason, CommandError, Error, TransportKind};
use serde_json::{Value, json};

use crate::kit::{KINDS, Scene, Task, builder, now, said};

fn form() -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

/// Questions come as requests, and are answered by the same functions.
// covers: DU-26, EL-4
#[test]
fn legacy_servers_are_answered() {
    for kind in KINDS {
        let builder = builder()
            .on_form_elicitation(async |_| ElicitResult::new(ElicitAction::Decline))
            .roots([Root::new("file:///r")]);
        let (_client, mut scene) = Scene::legacy(kind, builder);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(scene.message(), json!({ "jsonrpc": "2.0", "id": "x", "result": { "action": "decline" } }));
        scene.ask("y", "roots/list", json!({}));
        assert_eq!(scene.message()["result"], json!({ "roots": [{ "uri": "file:///r" }] }));
        scene.ask("z", "ping", json!({}));
        assert_eq!(scene.message(), json!({ "jsonrpc": "2.0", "id": "z", "result": {} }));
    }
}

/// What was not declared is refused.
// covers: EL-1, SA-3
#[test]
fn what_was_not_declared_is_refused() {
    for kind in KINDS {
        let builder = builder().on_form_elicitation(async |_| ElicitResult::new(ElicitAction::Decline));
        let (_client, mut scene) = Scene::legacy(kind, builder);
        let url = json!({ "mode": "url", "message": "?", "url": "https://a", "elicitationId": "1" });
        for (method, params) in [
            ("roots/list", json!({})),
            ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
            ("elicitation/create", url),
            ("elicitation/create", json!({ "message": 7 })),
            ("who/knows", json!({})),
        ] {
            scene.ask("x", method, params);
            assert!(scene.message()["error"]["code"].is_i64(), "{method}");
        }
    }
}

/// A modern server cannot ask; it gets no answer.
// covers: DU-45, M-16, IO-3
#[test]
fn modern_servers_cannot_ask() {
    for kind in KINDS {
        let (_client, mut scene) = Scene::modern(kind, builder().roots([]));
        scene.ask("x", "roots/list", json!({}));
        scene.silence();
    }
}

/// A question that the server calls off is let go of, and its id can be used again.
// covers: B-40, K-8
#[test]
fn questions_can_be_called_off() {
    for kind in KINDS {
        let at_work = Arc::new(());
        let (asked, calls) = (Arc::clone(&at_work), Arc::new(Mutex::new(0)));
        let builder = builder().on_form_elicitation(move |_| {
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
        let (_client, mut scene) = Scene::legacy(kind, builder);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(Arc::strong_count(&at_work), 3);
        scene.tell_all("notifications/cancelled", json!({ "requestId": "x" }));
        scene.silence();
        assert_eq!(Arc::strong_count(&at_work), 2);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(scene.message()["result"], json!({ "action": "cancel" }));
    }
}

/// The end of a session, of a server or of the client lets go of those who are asked.
// covers: S4.53, IO-14
#[test]
fn questions_end_with_who_asked_them() {
    for stage in 0..3 {
        let at_work = Arc::new(());
        let asked = Arc::clone(&at_work);
        let builder = builder().on_form_elicitation(move |_| {
            let work = Arc::clone(&asked);
            async move {
                std::future::pending::<()>().await;
                drop(work);
                ElicitResult::new(ElicitAction::Cancel)
            }
        });
        let (client, mut scene) = Scene::legacy(TransportKind::RequestPerCall, builder);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(Arc::strong_count(&at_work), 3);
        match stage {
            0 => {
                scene.handle.handle_session_lost(None, true, mcp_client::SessionLossReason::Unknown { status: 404 });
                scene.request("initialize");
            }
            1 => {
                let _ = scene.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
                scene.silence();
            }
            _ => {
                drop(client);
                assert!(scene.is_over());
                scene.end(CloseReason::ByClient);
            }
        }
        assert!(Arc::strong_count(&at_work) <= 2, "stage {stage}");
    }
}

/// Legacy servers hear that roots changed; modern ones ask each time.
// covers: RO-1, B-46
#[test]
fn roots_change() {
    let (client, mut scene) = Scene::legacy(TransportKind::Pipe, builder().roots([]));
    let changing = client.clone();
    now(async move { changing.set_roots([Root::new("file:///b")]).await }).unwrap();
    scene.notification("notifications/roots/list_changed");
    scene.ask("x", "roots/list", json!({}));
    assert_eq!(scene.message()["result"]["roots"][0]["uri"], "file:///b");
    drop(client);
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder().roots([]));
    now(async move { client.set_roots([Root::new("file:///b")]).await }).unwrap();
    scene.silence();
    let (client, _scene) = Scene::modern(TransportKind::Pipe, builder());
    let refused = now(async move { client.set_roots([]).await });
    assert!(matches!(refused, Err(Error::Command(CommandError::MissingCapability(ClientCapability::Roots)))));
}

/// A form that is answered when the test says so.
fn slow_form() -> (mcp_client::ClientBuilder, futures_util::future::AbortHandle) {
    let (answer, answered) = futures_util::future::AbortHandle::new_pair();
    let answered = Arc::new(Mutex::new(Some(answered)));
    let builder = builder().on_form_elicitation(move |_| {
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
            let (client, mut scene) = Scene::legacy(kind, builder);
            let mut call = Task::new(client.call_tool("t").idle_timeout(IDLE));
            let request = scene.request("tools/call");
            scene.advance(IDLE / 2);
            scene.say(
                Some(&request),
                json!({ "jsonrpc": "2.0", "id": "x", "method": "elicitation/create", "params": form() }),
            );
            scene.advance(LONG);
            call.waits();
            scene.silence();
            form_is_filled_in.abort();
            assert_eq!(scene.message()["result"]["action"], "decline");
            scene.advance(IDLE * 9 / 10);
            call.waits();
            if answers_in_time {
                scene.answer(&request, said("done"));
                call.done().unwrap();
            } else {
                scene.advance(IDLE / 5);
                assert!(matches!(call.done(), Err(Error::TimedOut)));
                scene.given_up(&request);
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
        let (client, mut scene) = Scene::legacy(kind, builder);
        let mut call = Task::new(client.call_tool("t").idle_timeout(IDLE).time_limit(LONG));
        let request = scene.request("tools/call");
        scene.say(
            Some(&request),
            json!({ "jsonrpc": "2.0", "id": "x", "method": "elicitation/create", "params": form() }),
        );
        scene.advance(LONG - IDLE);
        call.waits();
        scene.advance(IDLE);
        assert!(matches!(call.done(), Err(Error::TimedOut)));
    }
}

/// Where each call has a stream, the form belongs to one of them; on a pipe it may belong to any.
// covers: SEC-14
#[test]
fn sec_14_other_calls_are_timed_where_they_can_be_told_apart() {
    for kind in KINDS {
        let (builder, form_is_filled_in) = slow_form();
        let (client, mut scene) = Scene::legacy(kind, builder);
        let mut asking = Task::new(client.call_tool("t").idle_timeout(IDLE));
        let request = scene.request("tools/call");
        let mut other = Task::new(client.call_tool("t").idle_timeout(IDLE));
        scene.request("tools/call");
        scene.say(
            Some(&request),
            json!({ "jsonrpc": "2.0", "id": "x", "method": "elicitation/create", "params": form() }),
        );
        scene.advance(IDLE);
        asking.waits();
        match kind {
            TransportKind::RequestPerCall => assert!(matches!(other.done(), Err(Error::TimedOut))),
            TransportKind::Pipe | _ => other.waits(),
        }
        // The server may call its question off, too.
        scene.tell_all("notifications/cancelled", json!({ "requestId": "x" }));
        scene.advance(IDLE);
        assert!(matches!(asking.done(), Err(Error::TimedOut)));
        form_is_filled_in.abort();
    }
}

/// Questions that are open are bounded by their size, too; one is always heard.
// covers: SEC-7
#[test]
fn sec_7_questions_are_bounded_in_bytes() {
    let (builder, _form) = slow_form();
    let (_client, mut scene) = Scene::legacy(
        TransportKind::Pipe,
        builder.on_sampling(|_| std::future::pending::<mcp_client::types::CreateMessageResult>()),
    );
    let large = json!({ "maxTokens": 1, "messages": [{ "role": "user", "content": { "type": "text", "text": "x".repeat(9 << 20) } }] });
    scene.ask("1", "sampling/createMessage", large.clone());
    scene.silence();
    scene.ask("2", "sampling/createMessage", large);
    assert!(scene.message()["error"].is_object());
    scene.ask("3", "elicitation/create", form());
    scene.silence();
}
