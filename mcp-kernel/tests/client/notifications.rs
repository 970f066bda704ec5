//! What a server tells a client, and what a client may tell a server.

use mcp_kernel::client::Event;
use mcp_kernel::{CallOptions, Change, CommandError};
use mcp_types::{LoggingLevel, Method, ProgressNotificationParams, RawObject, Revision, SubscriptionFilter};
use serde_json::{Value, json};

use crate::Script;

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Tokens are tracked: progress of nothing that is open, or of another kind of token, reaches nobody.
// covers: P-7
#[test]
fn progress_of_nothing_reaches_nobody() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (call, id) = script.call();
    let deadline = script.client.poll_timeout();
    script.now += std::time::Duration::from_secs(1);
    let progress =
        |token: Value| notification("notifications/progress", json!({ "progressToken": token, "progress": 0.5 }));
    for token in [json!(4711), json!(id.to_string()), json!(null), json!({})] {
        script.say(&progress(token.clone()));
        let event = script.client.poll_event();
        assert!(event.is_none(), "{token}: {event:?}");
        assert_eq!(script.client.poll_timeout(), deadline, "{token} does not keep the call alive");
    }
    script.say(&progress(id.clone()));
    assert!(matches!(script.event(), Event::CallProgress { call: of, .. } if of == call));
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
    assert!(matches!(script.event(), Event::CallFinished { .. }));
    script.say(&progress(id));
    script.assert_nothing_left();
}

/// Progress goes to the client only in the modern revision; before, both sides could report it.
// covers: P-8
#[test]
fn modern_clients_report_no_progress() {
    for (revision, may) in [(Revision::V2026_07_28, false), (Revision::V2025_11_25, true)] {
        let mut script = Script::ready(revision);
        let method = Method::NOTIFICATIONS_PROGRESS;
        let told = script.client.notify(&method, &ProgressNotificationParams::new("t", 1));
        if may {
            assert_eq!(told, Ok(()));
            assert_eq!(script.sent()["params"], json!({ "progressToken": "t", "progress": 1 }));
        } else {
            assert_eq!(told, Err(CommandError::NotInRevision { method, revision }));
        }
        script.assert_nothing_left();
    }
}

/// The server decides what an address covers, so an update below a subscribed one is believed.
// covers: L-15
#[test]
fn what_lies_below_an_address_may_change() {
    let uri = "file:///a/b.txt";
    let mut script = Script::ready(Revision::V2026_07_28);
    let filter = SubscriptionFilter::default().resource_subscriptions(vec!["file:///a".to_owned()]);
    let listen = script.client.listen(script.now, filter, None).expect("modern");
    let id = script.sent()["id"].clone();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let honoured = json!({ "resourceSubscriptions": ["file:///a"] });
    let acknowledged = json!({ "notifications": honoured, "_meta": meta });
    script.say(&notification("notifications/subscriptions/acknowledged", acknowledged));
    assert!(matches!(script.event(), Event::Listening { .. }));
    script.say(&notification("notifications/resources/updated", json!({ "uri": uri, "_meta": meta })));
    let event = script.event();
    let Event::Changed { call, change } = event else { panic!("{event:?}") };
    assert_eq!((call, change), (Some(listen), Change::Resource(uri.to_owned())));
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "_meta": meta } }));
    assert!(matches!(script.event(), Event::CallFinished { call, outcome: Ok(_) } if call == listen));
    script.assert_nothing_left();

    let mut script = Script::ready(Revision::V2025_11_25);
    script.say(&notification("notifications/resources/updated", json!({ "uri": uri })));
    let event = script.event();
    assert!(matches!(&event, Event::Changed { call: None, change: Change::Resource(of) } if of == uri), "{event:?}");
    script.assert_nothing_left();
}

/// What is logged is any JSON, `null` included, and must be there.
// covers: Y-9
#[test]
fn logs_carry_any_json() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut script = Script::ready(revision);
        for data in ["null", "1.50", r#""text""#, r#"[{"b":1,"a":null}]"#] {
            let params = format!(r#"{{"level":"info","data":{data}}}"#);
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
            script.client.handle_bytes(script.now, text.as_bytes());
            let event = script.event();
            let Event::Log { log, .. } = event else { panic!("{event:?}") };
            assert_eq!((log.level, log.data.as_str()), (LoggingLevel::Info, data));
        }
        script.say(&notification("notifications/message", json!({ "level": "info" })));
        let event = script.client.poll_event();
        assert!(!matches!(event, Some(Event::Log { .. })), "{event:?}");
        script.assert_nothing_left();
    }
}

/// What the connection says by itself is not said by hand.
// covers: K-2, K-3, B-1
#[test]
fn what_the_connection_says_by_itself_is_reserved() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut script = Script::ready(revision);
        for method in [Method::NOTIFICATIONS_CANCELLED, Method::NOTIFICATIONS_INITIALIZED] {
            let told = script.client.notify(&method, &json!({ "requestId": 4711 }));
            assert_eq!(told, Err(CommandError::Reserved(method)));
        }
        for method in [Method::INITIALIZE, Method::SUBSCRIPTIONS_LISTEN] {
            let called = script.client.call(script.now, &method, &RawObject::empty(), CallOptions::default());
            assert_eq!(called, Err(CommandError::Reserved(method)));
        }
        script.assert_nothing_left();
    }
}
