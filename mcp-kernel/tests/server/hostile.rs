//! Texts that are no messages, strays, and whatever else a peer may send.

use mcp_kernel::server::{Event, Route};
use mcp_kernel::{CallOptions, PeerMisbehaved, RequestKey};
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::{CallToolResult, Method, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::Script;

/// What is wrong with a text is told with the id, where that could be read.
// covers: E-1, M-11, M-13
#[test]
fn texts_that_are_no_messages_are_answered() {
    let mut script = Script::new();
    for (text, id, code) in [
        ("{", None, -32700),
        ("", None, -32700),
        ("\u{1}", None, -32700),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"#, Some(json!(7)), -32700),
        ("5", None, -32600),
        (r#"{"id":"a","method":"ping"}"#, Some(json!("a")), -32600),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, Some(json!(3)), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, -32600),
        (r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":[]}"#, Some(json!(4)), -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":""}"#, Some(json!(5)), -32600),
    ] {
        script.send_text(text);
        let reply = script.reply();
        assert_eq!((reply.get("id"), &reply["error"]["code"]), (id.as_ref(), &json!(code)), "{text}");
        assert!(matches!(script.complaint(), PeerMisbehaved::InvalidMessage(_)));
    }
    script.connection.handle_bytes(script.now(), b"\xff\xfe{}", None);
    assert_eq!(script.reply()["error"]["code"], -32700);
    script.complaint();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Older revisions write `null` for an id that is not known.
// covers: AMB-15, B-13
#[test]
fn unknown_ids_are_written_by_revision() {
    for (version, id) in [("2024-11-05", Some(json!(null))), ("2025-06-18", Some(json!(null))), ("2025-11-25", None)] {
        let mut script = Script::initialized(version);
        script.send_text("{");
        assert_eq!(script.reply().get("id"), id.as_ref(), "{version}");
        script.complaint();
        script.assert_nothing_left();
    }
}

/// Neither notifications nor responses are answered, however wrong they are.
// covers: M-14
#[test]
fn what_is_no_request_is_not_answered() {
    let mut script = Script::initialized("2025-11-25");
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":5}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"error":{}}"#,
    ] {
        script.send_text(text);
        assert!(matches!(script.complaint(), PeerMisbehaved::InvalidMessage(_)), "{text}");
    }
    script.assert_nothing_left();
}

/// Stray responses and notifications harm nobody, not even as the first message.
// covers: RB-3, DU-21, M-16
#[test]
fn strays_are_ignored() {
    for mut script in [
        Script::new(),
        Script::modern_request(),
        Script::legacy_request(Revision::V2025_11_25),
        Script::initialized("2025-11-25"),
    ] {
        script.send(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        assert!(matches!(script.complaint(), PeerMisbehaved::StrayResponse(Some(_))));
        script.send(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "m" } }));
        assert!(matches!(script.complaint(), PeerMisbehaved::StrayResponse(None)));
        script.send(notification("notifications/message", json!({ "level": "info", "data": 1 })));
        assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
        script.send(notification("x/unknown", json!({ "a": 1 })));
        let event = script.event();
        let Event::Notification { method, params } = event else { panic!("{event:?}") };
        assert_eq!((method.as_str(), params.as_str()), ("x/unknown", r#"{"a":1}"#));
        let asked = script.served(modern_request(1, "tools/call", json!({})));
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// Notifications that a revision has reach the application, in order.
// covers: B-61, RB-10
#[test]
fn notifications_arrive_in_order() {
    let mut script = Script::initialized("2025-11-25");
    for step in 0..100 {
        script.send(notification("x/step", json!({ "step": step })));
    }
    script.send(notification("notifications/roots/list_changed", json!({})));
    for step in 0..100 {
        let event = script.event();
        let Event::Notification { params, .. } = event else { panic!("{event:?}") };
        assert_eq!(params.as_str(), format!(r#"{{"step":{step}}}"#));
    }
    assert!(matches!(script.event(), Event::Notification { .. }));
    script.assert_nothing_left();
}

/// Bad parameters are `-32602`, and an unknown method stays one.
// covers: RB-4
#[test]
fn bad_parameters_are_not_unknown_methods() {
    let mut script = Script::initialized("2025-11-25");
    script.refused(request(1, "logging/setLevel", json!({ "level": {} })), -32602);
    script.refused(request(1, "no/such", json!({})), -32601);
    script.refused(request(1, "subscriptions/listen", json!({ "notifications": {} })), -32601);
    script.assert_nothing_left();
}

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

fn any_message(dice: &mut Dice) -> Value {
    let id = if dice.roll(2) == 0 { json!(dice.roll(4)) } else { json!(dice.roll(4).to_string()) };
    let methods =
        ["tools/call", "tools/list", "ping", "resources/subscribe", "logging/setLevel", "no/such", "initialize"];
    let params = json!({ "uri": "a:b", "level": "info", "_meta": { "progressToken": dice.roll(3) } });
    match dice.roll(10) {
        0 => initialize(id, ["2025-03-26", "2024-11-05", "x"][dice.roll(3)], json!({ "roots": {} })),
        1 => notification("notifications/initialized", json!({})),
        2 => cancelled(id),
        3 => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        4 => modern_request(id, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })),
        5 => modern_request(id, methods[dice.roll(methods.len())], params),
        6 => json!([request(id.clone(), "tools/call", params), cancelled(id), 5]),
        7 => notification("notifications/progress", json!({ "progressToken": 1, "progress": dice.roll(9) })),
        _ => request(id, methods[dice.roll(methods.len())], params),
    }
}

/// Changes a text somewhere.
fn spoiled(dice: &mut Dice, text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    for _ in 0..dice.roll(4) {
        let at = dice.roll(bytes.len());
        match dice.roll(3) {
            0 => bytes[at] = u8::try_from(dice.roll(256)).expect("a byte"),
            1 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, b"{}[]\",:0"[dice.roll(8)]),
        }
    }
    bytes
}

/// Whatever comes in whatever state, nothing panics, and after the end nothing is left.
#[test]
fn nothing_is_left_after_anything() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let mut script = match dice.roll(4) {
            0 => Script::modern_request(),
            1 => Script::legacy_request(Revision::V2025_03_26),
            2 => Script::initialized("2025-03-26"),
            _ => Script::new(),
        };
        let mut responders = Vec::new();
        let mut keys: Vec<RequestKey> = Vec::new();
        for _ in 0..60 {
            let text = any_message(&mut dice).to_string();
            let now = script.now();
            script.connection.handle_bytes(now, &spoiled(&mut dice, text), None);
            while let Some(event) = script.connection.poll_event() {
                if let Event::Request { responder, .. } = event {
                    keys.push(responder.key());
                    responders.push(responder);
                } else if let Event::Listening { scope, .. } = event {
                    keys.push(scope.key());
                }
            }
            let key = (!keys.is_empty()).then(|| keys[dice.roll(keys.len())]);
            match (dice.roll(9), key) {
                (0, _) if !responders.is_empty() => {
                    let responder = responders.swap_remove(dice.roll(responders.len()));
                    script.connection.respond(responder, Ok(CallToolResult::text("done")));
                }
                (1, Some(key)) => script.connection.handle_stream_closed(key),
                (2, Some(key)) => script.connection.block(Route::Related(key)),
                (3, Some(key)) => drop(script.connection.end_listening(key)),
                (4, Some(key)) => drop(script.connection.progress(key, dice.roll(9), None, None)),
                (5, key) => {
                    let options = CallOptions::default();
                    drop(script.connection.call(now, key, Method::PING, &RawObject::empty(), options));
                }
                (6, _) => script.advance(std::time::Duration::from_secs(30)),
                _ => while script.connection.poll_transmit().is_some() {},
            }
        }
        script.connection.handle_disconnect();
        let mut last = None;
        while let Some(event) = script.connection.poll_event() {
            last = Some(event);
        }
        assert!(matches!(last, Some(Event::Closed)), "seed {seed}: {last:?}");
        script.assert_nothing_left();
    }
}
