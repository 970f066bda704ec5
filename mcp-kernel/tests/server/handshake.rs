//! The handshake of the legacy era.

use mcp_kernel::server::{Event, SecondHandshake, ServerConfig};
use mcp_kernel::{CallOptions, PeerMisbehaved};
use mcp_testkit::envelope::{initialize, modern_request, notification, request};
use mcp_types::{Implementation, Method, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config};

fn ping(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

fn initialized() -> Value {
    notification("notifications/initialized", json!({}))
}

fn strict() -> ServerConfig {
    let mut config = config();
    config.require_initialized = true;
    config
}

/// A version that is served is echoed; the result has no modern members.
// covers: B-2, B-42, S1.11, S1.23
#[test]
fn known_versions_are_echoed() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut script = Script::new();
        script.send(initialize(1, version, json!({})));
        let result = script.reply()["result"].take();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"], json!({ "name": "demo", "version": "1.0" }));
        assert!(result["capabilities"]["tools"].is_object());
        assert!(result.get("resultType").is_none() && result.get("_meta").is_none(), "{result}");
        // B-42: the capability came with 2025-03-26.
        assert_eq!(result["capabilities"].get("completions").is_some(), version > "2025");
        while let Some(event) = script.connection.poll_event() {
            assert!(matches!(event, Event::Stripped { .. }), "{event:?}");
        }
        assert_eq!(script.connection.negotiated().map(|revision| revision.as_str()), Some(version));
        script.assert_nothing_left();
    }
}

/// Other versions get a counter-offer, the newest of the era, and no error.
// covers: B-2, B-3, S0.23, S1.23
#[test]
fn unknown_versions_get_a_counter_offer() {
    for version in ["2026-07-28", "2019-01-01", "", "newest"] {
        let mut script = Script::new();
        script.send(initialize(1, version, json!({})));
        assert_eq!(script.reply()["result"]["protocolVersion"], "2025-11-25");
        script.assert_nothing_left();
    }
    let mut older = config();
    older.revisions = vec![Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2026_07_28];
    let mut script = Script::with(older);
    script.send(initialize(1, "2025-11-25", json!({})));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-06-18");
    while script.connection.poll_event().is_some() {}
    script.assert_nothing_left();
}

/// The second `initialize` is refused and negotiates nothing anew.
// covers: S0.14
#[test]
fn initialize_comes_once() {
    let mut script = Script::new();
    script.send(initialize(1, "2025-06-18", json!({ "roots": {} })));
    script.reply();
    for _ in 0..2 {
        script.send(initialize(2, "2024-11-05", json!({})));
        script.refusal(2, -32600);
        assert!(matches!(script.complaint(), PeerMisbehaved::InitializedTwice));
        assert_eq!(script.connection.negotiated(), Some(Revision::V2025_06_18));
        script.send(initialized());
        script.event();
    }
    let asked = script.served(request(3, "tools/call", json!({})));
    assert!(asked.scope.capabilities().roots.is_some());
    script.done(asked.responder);
    script.assert_nothing_left();
}

fn shared(second: SecondHandshake) -> Script {
    let mut script = Script::new();
    script.connection.set_second_handshake(second);
    script
}

/// A gateway passes on the handshake of one client after the other. The same again gets the same response, whatever the
/// client's name, and changes nothing.
// covers: INT-1, S0.14
#[test]
fn int_1_the_same_handshake_is_repeated() {
    for second in [SecondHandshake::Repeat, SecondHandshake::Restart] {
        let mut script = shared(second);
        script.send(initialize(1, "2025-06-18", json!({ "roots": {}, "experimental": { "x": { "y": [1] } } })));
        let first = script.reply();
        script.send(initialized());
        assert!(matches!(script.event(), Event::Initialized));
        let asked = script.served(request(2, "tools/call", json!({})));
        let mut again = initialize(1, "2025-06-18", json!({ "experimental": { "x": { "y": [1] } }, "roots": {} }));
        again["params"]["clientInfo"] = json!({ "name": "another", "version": "2" });
        for _ in 0..2 {
            script.send(again.clone());
            assert_eq!(script.reply(), first);
            // Its confirmation was given before.
            script.send(initialized());
            assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
        }
        script.done(asked.responder);
        let asked = script.served(request(3, "tools/call", json!({})));
        assert_eq!(asked.scope.client_info().map(|info| info.name.as_str()), Some("test"));
        assert!(asked.scope.capabilities().roots.is_some());
        script.done(asked.responder);
        assert_eq!(script.connection.negotiated(), Some(Revision::V2025_06_18));
        script.assert_nothing_left();
    }
}

/// A different one is refused, with an error that names the way out.
// covers: INT-1, S0.14
#[test]
fn int_1_a_different_handshake_is_refused() {
    for (second, reason) in
        [(SecondHandshake::Repeat, "`ServeOptions::shared_pipe`"), (SecondHandshake::Restart, "requests are in flight")]
    {
        let mut script = shared(second);
        script.send(initialize(1, "2025-06-18", json!({ "roots": {} })));
        script.reply();
        for (version, capabilities) in
            [("2025-11-25", json!({ "roots": {} })), ("2025-06-18", json!({})), ("1999-01-01", json!({ "roots": {} }))]
        {
            let error = script.refused(initialize(2, version, capabilities), -32600);
            assert!(error["message"].as_str().is_some_and(|message| message.contains(reason)), "{error}");
            assert_eq!(script.connection.negotiated(), Some(Revision::V2025_06_18));
        }
        script.assert_nothing_left();
    }
}

/// Where clients share a connection, the next handshake begins a new one, but not while the requests of others are open.
// covers: INT-1
#[test]
fn int_1_a_shared_connection_begins_anew_when_nothing_is_in_flight() {
    let begins = |script: &Script, message: &Value| {
        let text = message.to_string();
        let incoming = mcp_types::jsonrpc::parse(text.as_bytes(), &Default::default()).expect("a message");
        script.connection.is_restart(&incoming)
    };
    let (first, next) = (initialize(1, "2025-06-18", json!({ "roots": {} })), initialize(1, "2025-11-25", json!({})));
    let mut config = config();
    config.limits.max_meta_bytes = 1000;
    let mut script = Script::with(config);
    script.connection.set_second_handshake(SecondHandshake::Restart);
    assert!(!begins(&script, &first), "there is nothing to end yet");
    script.send(first.clone());
    script.reply();
    assert!(begins(&script, &first) && begins(&script, &next), "confirmed or not");
    script.send(initialized());
    script.event();
    assert!(begins(&script, &first) && begins(&script, &next));
    assert!(!begins(&script, &request(1, "initialize", json!({ "protocolVersion": "2025-11-25" }))), "malformed");
    assert!(!begins(&script, &ping(2)) && !begins(&script, &modern_request(2, "initialize", next["params"].clone())));
    let long = initialize("x".repeat(1025), "2025-11-25", json!({}));
    let large = initialize(1, "2025-11-25", json!({ "experimental": { "x": { "y": "z".repeat(64 << 10) } } }));
    let mut fat = next.clone();
    fat["params"]["_meta"] = json!({ "x": "y".repeat(1000) });
    for refused in [long, large, fat] {
        assert!(!begins(&script, &refused), "it is refused, so nothing ends for it");
        script.send(refused);
        assert!(script.reply()["error"].is_object());
        script.complaint();
    }
    let asked = script.served(request(2, "tools/call", json!({})));
    assert!(!begins(&script, &next), "a request is in flight");
    script.done(asked.responder);
    assert!(begins(&script, &next));
    let now = script.now();
    let call = script.connection.call(now, None, Method::ROOTS_LIST, &RawObject::empty(), CallOptions::default());
    assert!(!begins(&script, &next), "a request to the client is in flight");
    let _ = script.connection.cancel(call.expect("it was declared"));
    while script.connection.poll_transmit().is_some() || script.connection.poll_event().is_some() {}
    assert!(begins(&script, &next));
    let mut script = shared(SecondHandshake::Repeat);
    script.send(first);
    script.reply();
    assert!(!begins(&script, &next), "only where clients share the connection");
}

/// Before the handshake there is nothing but `ping`, and a refusal is no reason to stop.
// covers: B-4, S1.22
#[test]
fn nothing_but_ping_before_the_handshake() {
    let mut script = Script::new();
    script.send(request(1, "tools/list", json!({})));
    script.refusal(1, -32600);
    assert!(matches!(script.complaint(), PeerMisbehaved::TooEarly(method) if method.as_str() == "tools/list"));
    script.send(ping(2));
    assert_eq!(script.reply(), json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    script.send(initialize(3, "2025-11-25", json!({})));
    assert!(script.reply()["result"].is_object());
    script.assert_nothing_left();
}

/// With the strict setting, the confirmation is needed; modern requests pass by.
// covers: S0.15..S0.17
#[test]
fn the_gate_can_be_strict() {
    let mut script = Script::with(strict());
    script.send(initialize(1, "2025-11-25", json!({})));
    script.reply();
    script.refused(request(2, "tools/list", json!({})), -32600);
    script.send(ping(3));
    assert_eq!(script.reply()["result"], json!({}));
    let asked = script.served(modern_request(4, "tools/call", json!({})));
    script.done(asked.responder);
    script.send(initialized());
    assert!(matches!(script.event(), Event::Initialized));
    let asked = script.served(request(2, "tools/list", json!({})));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Without it, a client that never confirms is served.
// covers: S0.17
#[test]
fn the_gate_is_lenient_by_default() {
    let mut script = Script::new();
    script.send(initialize(1, "2025-11-25", json!({})));
    script.reply();
    let asked = script.served(request(2, "tools/list", json!({})));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// A confirmation of nothing, or a second one, is noted and ignored.
// covers: S0.16
#[test]
fn stray_confirmations_are_ignored() {
    let mut script = Script::with(strict());
    script.send(initialized());
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
    script.refused(request(1, "tools/list", json!({})), -32600);
    script.assert_nothing_left();
    let mut script = Script::initialized("2025-11-25");
    script.send(initialized());
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
    script.assert_nothing_left();
    let mut script = Script::modern_request();
    script.send(initialized());
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
    script.assert_nothing_left();
}

/// Malformed parameters name the member, and leave the handshake for another try.
#[test]
fn a_malformed_initialize_can_be_repeated() {
    let mut script = Script::new();
    let error = script.refused(request(1, "initialize", json!({ "protocolVersion": "2025-11-25" })), -32602);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("capabilities") || message.contains("clientInfo"), "{message}");
    script.refused(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" }), -32602);
    script.send(initialize(1, "2025-11-25", json!({})));
    assert!(script.reply()["result"].is_object());
    script.assert_nothing_left();
}

/// A server without legacy names its versions in whatever error `initialize` gets.
// covers: V-9
#[test]
fn without_legacy_initialize_is_told_the_versions() {
    let mut modern_only = config();
    modern_only.revisions = vec![Revision::V2026_07_28];
    for mut script in [Script::with(modern_only.clone()), Script::modern_request()] {
        let error = script.refused(initialize(1, "2025-11-25", json!({})), -32022);
        assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" }));
        assert_eq!(script.connection.negotiated(), None);
        script.assert_nothing_left();
    }
    let mut script = Script::with(modern_only);
    let error = script.refused(request(1, "initialize", json!({})), -32602);
    assert!(error["message"].as_str().unwrap().contains("2026-07-28"), "{error}");
    script.assert_nothing_left();
}

/// `ping` is answered at once, whatever else runs.
// covers: B-9
#[test]
fn ping_never_waits() {
    let mut busy = config();
    (busy.limits.max_in_flight, busy.limits.max_queued) = (1, 0);
    let mut script = Script::initialized_with(busy, "2025-11-25", json!({}));
    let asked = script.served(request(1, "tools/call", json!({})));
    script.send(ping(2));
    assert_eq!(script.reply()["result"], json!({}));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Members of the server's name that a revision lacks are left out, and that shows.
// covers: B-51
#[test]
fn the_name_fits_the_revision() {
    let named = ServerConfig::new(Implementation::new("demo", "1").title("Demo"), config().capabilities);
    let mut script = Script::with(named);
    script.send(initialize(1, "2025-03-26", json!({})));
    assert!(script.reply()["result"]["serverInfo"].get("title").is_none());
    let Event::Stripped { revision, members } = script.event() else { panic!("nothing stripped") };
    assert_eq!((revision, members), (Revision::V2025_03_26, vec!["Implementation.title"]));
    script.assert_nothing_left();
}
