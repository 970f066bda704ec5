//! Progress.

use mcp_kernel::server::{Delivery, Route};
use mcp_testkit::envelope::{modern_request, request};
use mcp_types::CallToolResult;
use serde_json::json;

use crate::script::Script;

/// The token keeps its kind, and values grow.
// covers: P-1, P-3, P-4, P-9, CG-5
#[test]
fn progress_grows_under_the_clients_token() {
    for token in [json!(5), json!("5")] {
        let mut script = Script::new();
        let asked = script.served(modern_request(1, "tools/call", json!({ "_meta": { "progressToken": token } })));
        assert!(asked.scope.may_report_progress());
        let key = asked.key();
        let told = script.connection.progress(key, 1, Some(4.5.into()), Some("one".into()));
        assert_eq!(told, Delivery::Queued);
        for stale in [1.0, 0.5, -3.0] {
            assert_eq!(script.connection.progress(key, stale, None, None), Delivery::NotSent);
        }
        assert_eq!(script.connection.progress(key, 1.25, None, None), Delivery::Queued);
        let (route, first) = script.next();
        assert_eq!(route, Route::Related(key));
        let params = json!({ "progressToken": token, "progress": 1, "total": 4.5, "message": "one" });
        assert_eq!(first, json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
        assert_eq!(script.next().1["params"], json!({ "progressToken": token, "progress": 1.25 }));
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// Nobody hears of progress who did not ask.
// covers: S2.12
#[test]
fn no_token_no_progress() {
    let mut script = Script::initialized("2025-11-25");
    for request in [modern_request(1, "tools/call", json!({})), request(1, "tools/call", json!({}))] {
        let asked = script.served(request);
        assert!(!asked.scope.may_report_progress());
        assert_eq!(script.connection.progress(asked.key(), 1, None, None), Delivery::NotSent);
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}

/// Progress comes before the answer and never after it.
// covers: P-6, P-7
#[test]
fn no_progress_after_the_end() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({ "_meta": { "progressToken": 1 } })));
    let key = asked.key();
    script.connection.progress(key, 1, None, None);
    script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    assert_eq!(script.connection.progress(key, 2, None, None), Delivery::NotSent);
    assert_eq!(script.next().0, Route::Related(key));
    assert_eq!(script.next().0, Route::Reply(key));
    script.assert_nothing_left();
}

/// 2024-11-05 has no `message`.
// covers: B-40
#[test]
fn the_message_is_stripped_for_the_oldest_revision() {
    for (version, message) in [("2024-11-05", None), ("2025-03-26", Some("m"))] {
        let mut script = Script::initialized(version);
        let asked = script.served(request(1, "tools/call", json!({ "_meta": { "progressToken": "t" } })));
        script.connection.progress(asked.key(), 1, None, Some("m".into()));
        assert_eq!(script.next().1["params"].get("message").and_then(|text| text.as_str()), message);
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}
