//! Legacy servers that ask while a call is open.

use std::sync::{Arc, Mutex};

use mcp_client::types::{ElicitAction, ElicitResult, Root};
use mcp_client::{Closed, Error, Misuse, TransportKind};
use serde_json::{Value, json};

use crate::kit::{KINDS, Scene, builder, now};

fn form() -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

/// DU-26, EL-4: questions come as requests, and are answered by the same functions.
#[test]
fn legacy_servers_are_answered() {
    for kind in KINDS {
        let builder =
            builder().on_form(async |_| ElicitResult::new(ElicitAction::Decline)).roots([Root::new("file:///r")]);
        let (_client, mut scene) = Scene::legacy(kind, builder);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(scene.message(), json!({ "jsonrpc": "2.0", "id": "x", "result": { "action": "decline" } }));
        scene.ask("y", "roots/list", json!({}));
        assert_eq!(scene.message()["result"], json!({ "roots": [{ "uri": "file:///r" }] }));
        scene.ask("z", "ping", json!({}));
        assert_eq!(scene.message(), json!({ "jsonrpc": "2.0", "id": "z", "result": {} }));
    }
}

/// EL-1, SA-3: what was not declared is refused.
#[test]
fn what_was_not_declared_is_refused() {
    for kind in KINDS {
        let builder = builder().on_form(async |_| ElicitResult::new(ElicitAction::Decline));
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

/// DU-45, M-16, IO-3: a modern server cannot ask; it gets no answer.
#[test]
fn modern_servers_cannot_ask() {
    for kind in KINDS {
        let (_client, mut scene) = Scene::modern(kind, builder().roots([]));
        scene.ask("x", "roots/list", json!({}));
        scene.silence();
    }
}

/// B-40, K-8: a question that the server calls off is let go of, and its id can be used again.
#[test]
fn questions_can_be_called_off() {
    for kind in KINDS {
        let at_work = Arc::new(());
        let (asked, calls) = (Arc::clone(&at_work), Arc::new(Mutex::new(0)));
        let builder = builder().on_form(move |_| {
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

/// S4.53, IO-14: the end of a session, of a server or of the client lets go of those who are asked.
#[test]
fn questions_end_with_who_asked_them() {
    for stage in 0..3 {
        let at_work = Arc::new(());
        let asked = Arc::clone(&at_work);
        let builder = builder().on_form(move |_| {
            let work = Arc::clone(&asked);
            async move {
                std::future::pending::<()>().await;
                drop(work);
                ElicitResult::new(ElicitAction::Cancel)
            }
        });
        let (client, mut scene) = Scene::legacy(TransportKind::Requests, builder);
        scene.ask("x", "elicitation/create", form());
        assert_eq!(Arc::strong_count(&at_work), 3);
        match stage {
            0 => {
                scene.link.session_lost(None, true);
                scene.request("initialize");
            }
            1 => {
                let _ = scene.link.lost(&Closed::Lost("it died".to_owned()));
                scene.silence();
            }
            _ => {
                drop(client);
                assert!(scene.is_over());
                scene.end(Closed::ByClient);
            }
        }
        assert!(Arc::strong_count(&at_work) <= 2, "stage {stage}");
    }
}

/// RO-1, B-46: legacy servers hear that roots changed; modern ones ask each time.
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
    assert!(matches!(refused, Err(Error::Misuse(Misuse::MissingCapability("roots")))));
}
