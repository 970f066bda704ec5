//! Servers that forget, die, or turn out to be others than they were taken for.

use super::*;
use mcp_kernel::client::{ConnectError, ServerFacts};
use mcp_types::ProtocolVersion;

fn info() -> Value {
    json!({ "name": "s", "version": "1" })
}

impl Script {
    fn finished(&mut self) -> (CallId, Result<(), CallError>) {
        let event = self.event();
        let Event::CallFinished { call, outcome } = event else { panic!("expected an end, found {event:?}") };
        (call, outcome.map(drop))
    }

    /// Answers `initialize`.
    pub(crate) fn shake_hands(&mut self, revision: Revision) {
        let hello = self.sent();
        assert_eq!(hello["method"], "initialize");
        let result = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "serverInfo": info() });
        self.say(&json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result }));
        assert_eq!(self.sent()["method"], "notifications/initialized");
        assert!(matches!(self.event(), Event::Ready { revision: found, .. } if found == revision));
    }

    fn rejected(&mut self, id: &Value, error: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
}

/// The call that met a lost session ends, the others stay open, and there is one handshake for all.
// covers: S4.53, B-102
#[test]
fn a_lost_session_is_renewed_once() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let (first, _) = script.call();
    let (second, _) = script.call();
    let (third, third_id) = script.call();
    let now = script.now;
    script.client.handle_session_lost(now, Some(first), true);
    assert_eq!(script.finished(), (first, Err(CallError::SessionLost)));
    assert_eq!(script.client.detected_revision(), None, "no calls until hands are shaken");
    script.client.handle_session_lost(now, Some(second), false);
    assert_eq!(script.finished(), (second, Err(CallError::SessionLost)));
    script.shake_hands(Revision::V2025_11_25);
    script.say(&json!({ "jsonrpc": "2.0", "id": third_id, "result": { "tools": [] } }));
    assert_eq!(script.finished(), (third, Ok(())));
    script.assert_nothing_left();
}

/// A server that forgets each session at once does not make the client shake hands for ever.
#[test]
fn a_server_that_always_forgets_is_given_up() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let now = script.now;
    script.client.handle_session_lost(now, None, true);
    script.shake_hands(Revision::V2025_11_25);
    script.client.handle_session_lost(now, None, true);
    assert!(matches!(script.event(), Event::Failed(ConnectError::SessionLost)));
    assert!(matches!(script.event(), Event::Closed));
    script.assert_nothing_left();
}

/// What the server asked in a session that is gone needs no answer.
#[test]
fn questions_end_with_their_session() {
    let mut script = Script::ready(Revision::V2025_11_25);
    script.say(&roots("a"));
    let responder = script.asked();
    let now = script.now;
    script.client.handle_session_lost(now, None, true);
    assert!(matches!(script.event(), Event::RequestCancelled { id } if id == RequestId::from("a")));
    assert!(!script.client.respond(script.now, responder, Ok(&RawObject::empty())));
    script.shake_hands(Revision::V2025_11_25);
    script.assert_nothing_left();
}

/// After a restart everything begins anew, under ids that were not used before.
// covers: IO-14
#[test]
fn a_restart_ends_every_call() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut script = Script::ready(revision);
        let (call, id) = script.call();
        let now = script.now;
        script.client.restart(now, Some(DetectedRevision::new(revision)));
        assert_eq!(script.finished(), (call, Err(CallError::Disconnected)));
        if revision == Revision::V2025_11_25 {
            script.shake_hands(revision);
        } else {
            assert!(matches!(script.event(), Event::Ready { .. }));
        }
        script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
        let (next, next_id) = script.call();
        assert_ne!(id, next_id);
        script.say(&json!({ "jsonrpc": "2.0", "id": next_id, "result": { "tools": [] } }));
        assert_eq!(script.finished(), (next, Ok(())));
        script.assert_nothing_left();
    }
}

/// A session goes on without a handshake.
// covers: S4.57
#[test]
fn a_session_is_resumed_without_a_handshake() {
    let config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
    let mut script = Script { client: Connection::new(Arc::new(config)), ..Script::ready(Revision::V2025_06_18) };
    script.client.resume(Revision::V2025_06_18, ServerFacts::default());
    assert!(matches!(script.event(), Event::Ready { revision: Revision::V2025_06_18, .. }));
    let (call, id) = script.call();
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
    assert_eq!(script.finished(), (call, Ok(())));
    script.assert_nothing_left();
}

/// A server that was taken for modern is asked, once, when it does not behave like that.
// covers: V-11, DU-41, S3.F13
#[test]
fn a_modern_detected_revision_that_is_wrong_is_corrected() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (call, _) = script.call();
    let now = script.now;
    script.client.handle_status(now, call, 400, b"Bad Request");
    assert_eq!(
        script.finished(),
        (call, Err(CallError::Status { status: 400, reason: Some("Bad Request".to_owned()) }))
    );
    assert!(script.client.reconsider(now));
    let probe = script.sent();
    assert_eq!(probe["method"], "server/discover");
    script.rejected(&probe["id"], &json!({ "code": -32601, "message": "no" }));
    script.shake_hands(Revision::V2025_11_25);
    assert!(!script.client.reconsider(now), "once is enough");
    script.assert_nothing_left();
}

/// A server that has answered as a modern one is not doubted.
#[test]
fn what_is_confirmed_is_not_reconsidered() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (_, id) = script.call();
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "tools": [] } }));
    assert!(script.finished().1.is_ok());
    let now = script.now;
    assert!(!script.client.reconsider(now));
    script.assert_nothing_left();
}

/// A server that was legacy once may have become modern.
// covers: V-11, DU-41, S3.F13
#[test]
fn a_legacy_detected_revision_that_is_wrong_is_corrected() {
    let config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
    let mut script = Script { client: Connection::new(Arc::new(config)), ..Script::ready(Revision::V2026_07_28) };
    let now = script.now;
    script.client.start(now, Some(DetectedRevision::new(Revision::V2025_06_18)));
    let hello = script.sent();
    script.rejected(&hello["id"], &json!({ "code": -32601, "message": "no" }));
    let probe = script.sent();
    assert_eq!(probe["method"], "server/discover");
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0,
        "cacheScope": "private",
    });
    script.say(&json!({ "jsonrpc": "2.0", "id": probe["id"], "result": result }));
    assert!(matches!(script.event(), Event::Ready { revision: Revision::V2026_07_28, .. }));
    script.assert_nothing_left();
}

/// A version that is refused is replaced by a common one, of either era.
// covers: V-3, S3.12
#[test]
fn a_refused_version_is_replaced() {
    let offer = |versions: &[&str]| versions.iter().map(|version| ProtocolVersion::from(*version)).collect::<Vec<_>>();
    let mut script = Script::ready(Revision::V2026_07_28);
    let now = script.now;
    assert!(script.client.switch_version(now, &offer(&["2026-07-28", "2025-11-25"])));
    assert_eq!(script.client.detected_revision(), Some(DetectedRevision::new(Revision::V2026_07_28)));
    assert!(!script.client.switch_version(now, &offer(&["2031-01-01"])));
    assert!(script.client.switch_version(now, &offer(&["2025-03-26"])));
    script.shake_hands(Revision::V2025_03_26);
    assert!(!script.client.switch_version(now, &offer(&["2026-07-28"])), "legacy versions are agreed on, not refused");
    script.assert_nothing_left();
}

/// An error without an id is for the call on whose stream it came, and for no other.
#[test]
fn an_error_without_an_id_belongs_to_its_stream() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (first, _) = script.call();
    let (second, second_id) = script.call();
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no" } }).to_string();
    let now = script.now;
    script.client.handle_bytes(now, error.as_bytes());
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(None))));
    script.client.handle_reply(now, first, error.as_bytes());
    let (ended, outcome) = script.finished();
    assert!(ended == first && matches!(outcome, Err(CallError::Rejected(_))));
    script.say(&json!({ "jsonrpc": "2.0", "id": second_id, "result": { "tools": [] } }));
    assert_eq!(script.finished(), (second, Ok(())));
    script.assert_nothing_left();
}

/// Parameters get the same envelope, whether they have metadata of their own or not.
// covers: X-7..X-10, P-2, S3.73
#[test]
fn every_request_says_what_it_needs() {
    let mut script = Script::ready(Revision::V2026_07_28);
    for params in [json!({}), json!({ "name": "a", "arguments": { "b": "\u{1}" } }), json!({ "_meta": { "x.y/z": 1 } })]
    {
        let raw = RawObject::new(&params).expect("an object");
        let now = script.now;
        script.client.call(now, &Method::TOOLS_CALL, &raw, CallOptions::default()).expect("a call");
        let sent = script.sent();
        let meta = &sent["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{sent}");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "client", "{sent}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{sent}");
        assert_eq!(meta["progressToken"], sent["id"], "{sent}");
        for (name, value) in params.as_object().expect("an object").iter().filter(|(name, _)| *name != "_meta") {
            assert_eq!(sent["params"][name], *value, "{sent}");
        }
        assert_eq!(meta.get("x.y/z").is_some(), params.get("_meta").is_some(), "{sent}");
    }
    script.client.set_log_level(Some(mcp_types::LoggingLevel::Warning));
    let now = script.now;
    script.client.call(now, &Method::TOOLS_LIST, &RawObject::empty(), CallOptions::default()).expect("a call");
    assert_eq!(script.sent()["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "warning");
    let mut legacy = Script::ready(Revision::V2025_06_18);
    let now = legacy.now;
    let silent = CallOptions::default().idle_timeout(None);
    legacy.client.call(now, &Method::TOOLS_LIST, &RawObject::empty(), silent).expect("a call");
    assert_eq!(legacy.sent()["params"], json!({}), "nothing that the revision does not have");
}
