//! `server/discover`.

use std::time::Duration;

use mcp_kernel::server::ProtocolExtension;
use mcp_testkit::envelope::{modern_request, request};
use mcp_types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use mcp_types::{CacheScope, RawObject, Revision};
use serde_json::json;

use crate::script::{Script, config, offering};

/// Everything that a client needs to know, and the server's name in the metadata.
// covers: V-6, C-19, X-15
#[test]
fn discover_tells_everything() {
    let mut config = offering(json!({ "tools": {}, "logging": {} }));
    config.instructions = Some("be kind".into());
    let mut script = Script::with(config);
    script.send(modern_request("d", "server/discover", json!({})));
    let server_info = json!({ "io.modelcontextprotocol/serverInfo": { "name": "demo", "version": "1.0" } });
    let expected = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "logging": {} },
        "instructions": "be kind",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": server_info,
    });
    assert_eq!(script.reply(), json!({ "jsonrpc": "2.0", "id": "d", "result": expected }));
    script.assert_nothing_left();
}

/// The defaults of the server are settings.
// covers: C-19, X-15
#[test]
fn hints_and_name_are_settings() {
    let mut config = config();
    (config.cache_ttl, config.cache_scope, config.send_server_info) =
        (Duration::from_secs(5), CacheScope::PUBLIC, false);
    let mut script = Script::with(config);
    script.send(modern_request(1, "server/discover", json!({})));
    let result = script.reply()["result"].take();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(5000), &json!("public")));
    assert!(result.get("_meta").is_none(), "{result}");
    script.assert_nothing_left();
}

/// Extensions are declared with their settings.
// covers: N-3, N-4
#[test]
fn discover_declares_extensions() {
    let mut config = offering(json!({}));
    let mut with_settings = ProtocolExtension::default();
    with_settings.settings = serde_json::from_str::<RawObject>(r#"{"zone":"utc"}"#).ok();
    config.extensions.insert("com.example/clock".into(), with_settings);
    config.extensions.insert("com.example/plain".into(), ProtocolExtension::default());
    let mut script = Script::with(config);
    script.send(modern_request(1, "server/discover", json!({})));
    let declared = json!({ "com.example/clock": { "zone": "utc" }, "com.example/plain": {} });
    assert_eq!(script.reply()["result"]["capabilities"]["extensions"], declared);
    script.assert_nothing_left();
}

/// The check of the version comes first, and names the same versions as the result.
// covers: V-7, V-13
#[test]
fn discover_is_checked_like_any_other() {
    let mut script = Script::new();
    let meta = json!({ PROTOCOL_VERSION: "1999-01-01", CLIENT_CAPABILITIES: {} });
    let error = script.refused(request(1, "server/discover", json!({ "_meta": meta })), -32022);
    script.send(modern_request(2, "server/discover", json!({})));
    assert_eq!(error["data"]["supported"], script.reply()["result"]["supportedVersions"]);
    script.assert_nothing_left();
}

/// The legacy era has no such method, before and after the handshake.
// covers: M-22
#[test]
fn legacy_has_no_discover() {
    let mut script = Script::initialized("2025-11-25");
    script.refused(request(1, "server/discover", json!({})), -32601);
    script.assert_nothing_left();
    let mut script = Script::legacy_request(Revision::V2025_03_26);
    script.refused(request(1, "server/discover", json!({})), -32601);
    script.assert_nothing_left();
}
