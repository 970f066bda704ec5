//! Which era a message belongs to (register D2).

use mcp_kernel::server::Principal;
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use mcp_types::{ClientCapability, Era, LoggingLevel, Revision};
use serde_json::json;

use crate::script::Script;

/// A modern request needs no handshake.
// covers: DU-10, DU-23, Z-7
#[test]
fn a_modern_request_stands_for_itself() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({ "name": "a" })));
    assert_eq!((asked.scope.revision(), asked.scope.era()), (Revision::V2026_07_28, Era::Modern));
    assert!(asked.scope.is_stateless());
    assert_eq!(asked.params["name"], "a");
    assert_eq!(script.done(asked.responder)["result"]["resultType"], "complete");
    assert_eq!(script.connection.negotiated(), None);
    script.assert_nothing_left();
}

/// Without envelope, `initialize` starts the legacy era at the negotiated revision.
// covers: DU-11, S1.12
#[test]
fn initialize_starts_legacy() {
    let mut script = Script::initialized("2025-06-18");
    let asked = script.served(request(1, "tools/call", json!({ "name": "a" })));
    assert_eq!((asked.scope.revision(), asked.scope.era()), (Revision::V2025_06_18, Era::Legacy));
    assert!(!asked.scope.is_stateless());
    assert_eq!(asked.scope.client_info().map(|info| info.name.as_str()), Some("test"));
    assert!(script.done(asked.responder)["result"].get("resultType").is_none());
    script.assert_nothing_left();
}

/// Both eras run at once and do not flip each other.
// covers: DU-12, AMB-11, S2.8, S0.9, S0.10, S0.19
#[test]
fn both_eras_interleave() {
    let mut script = Script::new();
    script.send(modern_request("probe", "server/discover", json!({})));
    assert_eq!(script.reply()["result"]["resultType"], "complete");
    script.send(initialize(0, "2025-03-26", json!({ "roots": {} })));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-03-26");
    let new =
        script.served(modern_request(1, "tools/call", json!({ "_meta": { CLIENT_CAPABILITIES: { "sampling": {} } } })));
    script.send(notification("notifications/initialized", json!({})));
    script.event();
    let old = script.served(request(2, "tools/call", json!({ "name": "a" })));
    assert!(new.scope.supports(ClientCapability::Sampling) && !new.scope.supports(ClientCapability::Roots));
    assert!(old.scope.supports(ClientCapability::Roots) && !old.scope.supports(ClientCapability::Sampling));
    assert!(!new.scope.may_log(LoggingLevel::Emergency) && old.scope.may_log(LoggingLevel::Info));
    assert!(script.done(old.responder)["result"].get("resultType").is_none());
    assert_eq!(script.done(new.responder)["result"]["resultType"], "complete");
    assert_eq!(script.connection.negotiated(), Some(Revision::V2025_03_26));
    script.assert_nothing_left();
}

/// What one modern request declared says nothing about the next.
// covers: Z-1, Z-2, X-12, X-13, S0.9
#[test]
fn nothing_carries_over_between_modern_requests() {
    let mut script = Script::new();
    let info = json!({ "name": "c", "version": "2" });
    let meta = json!({ CLIENT_CAPABILITIES: { "roots": {} }, "io.modelcontextprotocol/clientInfo": info });
    let first = script.served(modern_request(1, "tools/list", json!({ "_meta": meta })));
    let second = script.served(modern_request(2, "tools/list", json!({})));
    assert!(first.scope.supports(ClientCapability::Roots) && first.scope.client_info().is_some());
    // no client info is fine.
    assert!(!second.scope.supports(ClientCapability::Roots) && second.scope.client_info().is_none());
    script.done(second.responder);
    script.done(first.responder);
    script.assert_nothing_left();
}

/// `initialize` with an envelope is an unknown modern method, and negotiates nothing.
// covers: DU-14
#[test]
fn initialize_with_an_envelope_is_unknown() {
    let mut script = Script::new();
    let mut request = initialize(1, "2025-11-25", json!({}));
    request["params"]["_meta"] = json!({ PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {} });
    script.refused(request, -32601);
    assert_eq!(script.connection.negotiated(), None);
    script.assert_nothing_left();
}

/// The key alone makes a request modern; a bad value is invalid, not legacy.
// covers: DU-13, X-20, S1.39
#[test]
fn a_malformed_envelope_is_not_legacy() {
    let mut script = Script::initialized("2025-11-25");
    for version in [json!(null), json!(7), json!({}), json!(["2026-07-28"])] {
        let meta = json!({ PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {} });
        let error = script.refused(request(1, "tools/list", json!({ "_meta": meta })), -32602);
        assert!(error["message"].as_str().unwrap().contains(PROTOCOL_VERSION), "{error}");
    }
    script.assert_nothing_left();
}

/// An envelope that names a legacy version is told the modern ones only.
// covers: DU-18, DU-24
#[test]
fn an_envelope_cannot_name_a_legacy_version() {
    let mut script = Script::initialized("2025-11-25");
    let meta = json!({ PROTOCOL_VERSION: "2025-11-25", CLIENT_CAPABILITIES: {} });
    let error = script.refused(request("a", "tools/list", json!({ "_meta": meta })), -32022);
    assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" }));
    script.assert_nothing_left();
}

/// A legacy request with other metadata stays legacy.
// covers: DU-17
#[test]
fn other_metadata_does_not_make_a_request_modern() {
    let mut script = Script::initialized("2025-11-25");
    let meta = json!({ CLIENT_CAPABILITIES: { "roots": {} }, "progressToken": 1, "traceparent": "nonsense" });
    let asked = script.served(request(1, "tools/call", json!({ "_meta": meta })));
    assert_eq!(asked.scope.era(), Era::Legacy);
    assert!(asked.scope.may_report_progress() && !asked.scope.supports(ClientCapability::Roots));
    script.done(asked.responder);
    let asked = script.served(request(2, "tools/call", json!({ "_meta": null })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// One registry serves both eras, by id and kind of id.
// covers: S0.12, S0.27
#[test]
fn ids_are_shared_by_both_eras() {
    let mut script = Script::initialized("2025-11-25");
    let old = script.served(request(1, "tools/call", json!({})));
    script.refused(modern_request(1, "tools/call", json!({})), -32600);
    let new = script.served(modern_request("1", "tools/call", json!({})));
    script.send(cancelled("1"));
    assert_eq!(script.given_up(), new.key());
    script.done(old.responder);
    script.assert_nothing_left();
}

/// A legacy request without a session has a revision and nothing else.
// covers: S0.8, S0.11, S0.19, DU-17, S1.36
#[test]
fn stateless_legacy_has_nothing_but_a_revision() {
    let mut script = Script::legacy_request(Revision::V2025_06_18);
    let asked = script.served(request(1, "tools/call", json!({})));
    assert_eq!(asked.scope.revision(), Revision::V2025_06_18);
    assert!(asked.scope.client_info().is_none() && !asked.scope.supports(ClientCapability::Roots));
    script.done(asked.responder);
    script.send(initialize(2, "2025-03-26", json!({})));
    assert_eq!(script.reply()["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(script.connection.negotiated(), Some(Revision::V2025_06_18));
    script.assert_nothing_left();
}

/// Who is behind a request is the transport's word, for each request anew.
// covers: Z-8, S2.27
#[test]
fn the_principal_belongs_to_the_request() {
    let mut script = Script::new();
    let principal = Principal::new(Some("https://issuer"), "alice");
    let request = modern_request(1, "tools/call", json!({})).to_string();
    script.connection.handle_bytes(script.now(), request.as_bytes(), Some(&principal));
    let first = script.asked();
    let second = script.served(modern_request(2, "tools/call", json!({})));
    assert_eq!((first.scope.principal(), second.scope.principal()), (Some(&principal), None));
    script.done(first.responder);
    script.done(second.responder);
    script.assert_nothing_left();
}

/// The place in a trace is part of the request.
// covers: W-1, S3.F18
#[test]
fn trace_context_travels_with_the_request() {
    let mut script = Script::new();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked =
        script.served(modern_request(1, "tools/call", json!({ "_meta": { "traceparent": trace, "baggage": "a=b" } })));
    assert_eq!(asked.scope.trace_context().traceparent(), Some(trace));
    assert_eq!(asked.scope.trace_context().baggage(), Some("a=b"));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// The keys of the modern envelope mean nothing in a legacy request, which declared its capabilities in the handshake.
#[test]
fn legacy_requests_have_no_envelope() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({ "_meta": { CLIENT_CAPABILITIES: 7 } })));
    assert_eq!((asked.scope.era(), asked.scope.revision()), (Era::Legacy, Revision::V2025_11_25));
    assert!(!asked.scope.supports(ClientCapability::Sampling));
    script.done(asked.responder);
    script.assert_nothing_left();
}
