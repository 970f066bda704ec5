//! The checks of a modern request, in their order.

use mcp_kernel::server::ProtocolExtension;
use mcp_kernel::{PeerMisbehaved, server::ServerConfig};
use mcp_testkit::envelope::{initialize, modern_request, request};
use mcp_types::Revision;
use mcp_types::gate::Revisions;
use mcp_types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use serde_json::{Value, json};

use crate::script::{Script, config, offering};

fn with_meta(meta: Value) -> Value {
    request(1, "tools/list", json!({ "_meta": meta }))
}

/// A member that is missing is named.
//
#[test]
fn missing_members_are_named() {
    let mut script = Script::new();
    let error = script.refused(with_meta(json!({ PROTOCOL_VERSION: "2026-07-28" })), -32602);
    assert!(error["message"].as_str().unwrap().contains(CLIENT_CAPABILITIES), "{error}");
    script.assert_nothing_left();
}

/// Where there is no legacy, a request without envelope lacks it.
//
#[test]
fn without_legacy_the_envelope_is_owed() {
    let mut modern_only = config();
    modern_only.revisions = vec![Revision::V2026_07_28];
    for mut script in [Script::with(modern_only), Script::modern_request()] {
        for method in ["tools/list", "ping", "server/discover"] {
            let error = script.refused(request(1, method, json!({})), -32602);
            assert!(error["message"].as_str().unwrap().contains(PROTOCOL_VERSION), "{error}");
        }
        script.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        script.refusal(2, -32602);
        script.complaint();
        script.assert_nothing_left();
    }
}

/// Each member of the envelope has its kind.
// covers: X-20, S1.39
#[test]
fn malformed_members_are_named() {
    let mut script = Script::new();
    for (name, value) in [
        (CLIENT_CAPABILITIES, json!("all")),
        (CLIENT_CAPABILITIES, json!([])),
        (CLIENT_CAPABILITIES, json!(null)),
        ("io.modelcontextprotocol/clientInfo", json!({ "name": 1 })),
        ("io.modelcontextprotocol/clientInfo", json!("me")),
        // Y-5
        ("io.modelcontextprotocol/logLevel", json!("loud")),
        // P-1
        ("progressToken", json!(1.5)),
        ("progressToken", json!({})),
    ] {
        let mut meta = json!({ PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {} });
        meta[name] = value;
        let error = script.refused(with_meta(meta), -32602);
        assert!(error["message"].as_str().unwrap().contains(name), "{name}: {error}");
    }
    let error = script.refused(with_meta(json!("text")), -32602);
    assert!(error["message"].as_str().unwrap().contains("_meta"), "{error}");
    script.assert_nothing_left();
}

/// Unknown members of the capabilities are ignored.
//
#[test]
fn unknown_capabilities_are_ignored() {
    let mut script = Script::new();
    let capabilities = json!({ "roots": { "listChanged": true }, "telepathy": { "range": 1 } });
    let asked =
        script.served(modern_request(1, "tools/call", json!({ "_meta": { CLIENT_CAPABILITIES: capabilities } })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// An unknown version is told what it may be instead; missing members come first, methods later.
// covers: V-2, E-8
#[test]
fn an_unknown_version_is_told_the_known_ones() {
    let mut script = Script::new();
    for method in ["tools/list", "server/discover", "no/such"] {
        let meta = json!({ PROTOCOL_VERSION: "2099-01-01", CLIENT_CAPABILITIES: {} });
        let error = script.refused(request(1, method, json!({ "_meta": meta })), -32022);
        assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" }));
    }
    script.refused(with_meta(json!({ PROTOCOL_VERSION: "2099-01-01" })), -32602);
    script.assert_nothing_left();
}

/// A version that is known but not served is not supported; a server without modern names the others.
// covers: V-2, AMB-8
#[test]
fn a_version_that_is_not_served_is_unsupported() {
    let mut legacy_only = config();
    legacy_only.revisions = vec![Revision::V2025_11_25];
    let mut script = Script::with(legacy_only);
    let error = script.refused(modern_request(1, "tools/list", json!({})), -32022);
    assert_eq!(error["data"], json!({ "supported": ["2025-11-25"], "requested": "2026-07-28" }));
    script.assert_nothing_left();
}

/// What the revision removed does not exist any more.
// covers: M-22, DU-14, S3.57
#[test]
fn removed_methods_are_unknown() {
    let mut script = Script::initialized("2025-11-25");
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "nope"]
    {
        let params = json!({ "level": "info", "uri": "a:b", "protocolVersion": "2025-11-25" });
        script.send(modern_request(1, method, params));
        script.refusal(1, -32601);
        assert!(matches!(script.complaint(), PeerMisbehaved::UnknownMethod(name) if name.as_str() == method));
    }
    script.assert_nothing_left();
}

/// What was not advertised does not exist, in either era.
// covers: E-13, V-8, L-16
#[test]
fn unadvertised_methods_are_unknown() {
    let methods = [
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "completion/complete",
    ];
    let mut script = Script::initialized_with(offering(json!({})), "2025-11-25", json!({}));
    for method in methods.into_iter().chain(["subscriptions/listen"]) {
        script.refused(modern_request(1, method, json!({ "notifications": {} })), -32601);
    }
    for method in methods.into_iter().chain(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]) {
        script.refused(request(1, method, json!({ "level": "info", "uri": "a:b" })), -32601);
    }
    script.assert_nothing_left();
}

/// Resources without `subscribe` cannot be subscribed to.
// covers: E-13
#[test]
fn resources_may_come_without_subscriptions() {
    let mut script = Script::initialized_with(offering(json!({ "resources": {} })), "2025-11-25", json!({}));
    script.refused(request(1, "resources/subscribe", json!({ "uri": "a:b" })), -32601);
    let asked = script.served(request(2, "resources/read", json!({ "uri": "a:b" })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

fn with_extension() -> ServerConfig {
    let mut extension = ProtocolExtension::default();
    extension.methods.insert("clock/read".into(), Revisions::only(Revision::V2026_07_28));
    let mut config = config();
    config.extensions.insert("com.example/clock".into(), extension);
    config
}

/// An extension serves those who declare it, with each request.
// covers: EX-11, E-7, E-14, N-2, S1.37
#[test]
fn extension_methods_need_a_declaration() {
    let mut script = Script::initialized_with(with_extension(), "2025-11-25", json!({}));
    script.send(modern_request(1, "clock/read", json!({})));
    let error = script.refusal(1, -32021);
    assert_eq!(error["data"], json!({ "requiredCapabilities": { "extensions": { "com.example/clock": {} } } }));
    assert!(matches!(script.complaint(), PeerMisbehaved::MissingCapability { .. }));
    let capabilities = json!({ "extensions": { "com.example/clock": { "zone": "utc" } } });
    let asked =
        script.served(modern_request(2, "clock/read", json!({ "_meta": { CLIENT_CAPABILITIES: capabilities } })));
    script.done(asked.responder);
    // The extension does not exist in the older revision.
    script.refused(request(3, "clock/read", json!({})), -32601);
    script.assert_nothing_left();
}

/// An extension that nobody registered does not exist, declared or not.
// covers: EX-13, N-7
#[test]
fn nothing_is_served_without_registration() {
    let mut script = Script::new();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {}, "com.example/clock": {} } });
    for method in ["clock/read", "tasks/get", "tasks/update"] {
        let params = json!({ "_meta": { CLIENT_CAPABILITIES: capabilities.clone() } });
        script.refused(modern_request(1, method, params), -32601);
    }
    script.assert_nothing_left();
}

/// What a client brings along has a size, each with a refusal that names it.
// covers: S2.26
#[test]
fn metadata_and_state_have_limits() {
    let mut small = config();
    (small.limits.max_meta_bytes, small.limits.max_request_state_bytes) = (200, 10);
    let mut script = Script::with(small);
    let error = script.refused(modern_request(1, "tools/call", json!({ "_meta": { "a": "x".repeat(200) } })), -32602);
    assert!(error["message"].as_str().unwrap().contains("200 bytes"), "{error}");
    let error = script.refused(modern_request(1, "tools/call", json!({ "requestState": "x".repeat(9) })), -32602);
    assert!(error["message"].as_str().unwrap().contains("requestState"), "{error}");
    let asked = script.served(modern_request(1, "tools/call", json!({ "requestState": "x".repeat(8) })));
    assert_eq!(asked.scope.request_state(), Some("xxxxxxxx"));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// What a client says of itself is kept as long as the connection lasts, so it has a size.
// covers: RB-53
#[test]
fn handshakes_have_a_limit() {
    let mut small = config();
    small.limits.max_initialize_bytes = 200;
    let mut script = Script::with(small);
    let large = initialize(1, "2025-11-25", json!({ "experimental": { "x": { "y": "z".repeat(200) } } }));
    let error = script.refused(large, -32602);
    assert!(error["message"].as_str().unwrap().contains("200 bytes"), "{error}");
    script.send(initialize(2, "2025-11-25", json!({})));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-11-25", "it may try again");
}

/// What a retry brings is part of the scope, if it is well formed; legacy has none of it.
// covers: S2.24, S2.25, R-12
#[test]
fn retries_bring_answers_and_state() {
    let mut script = Script::initialized("2025-11-25");
    let retry = json!({ "inputResponses": { "q": { "action": "accept" } }, "requestState": "s" });
    let asked = script.served(modern_request(1, "tools/call", retry.clone()));
    assert_eq!(asked.scope.request_state(), Some("s"));
    assert!(asked.scope.input_responses().get("q").is_some());
    script.done(asked.responder);
    let asked = script.served(request(2, "tools/call", retry));
    assert!(asked.scope.request_state().is_none() && asked.scope.input_responses().get("q").is_none());
    script.done(asked.responder);
    let error = script.refused(modern_request(3, "tools/call", json!({ "requestState": 5 })), -32602);
    assert!(error["message"].as_str().unwrap().contains("requestState"), "{error}");
    let error = script.refused(modern_request(3, "tools/call", json!({ "inputResponses": [] })), -32602);
    assert!(error["message"].as_str().unwrap().contains("inputResponses"), "{error}");
    script.assert_nothing_left();
}
