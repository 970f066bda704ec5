//! What a client does, and tells, after its server or session was replaced.

use std::sync::{Arc, Mutex};

use mcp_client::types::{LoggingLevel, Revision};
use mcp_client::{
    ClientBuilder, CloseReason, DetectedRevision, Restart, RestartCause, RevisionCache, SessionLossReason,
    TransportKind,
};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder, connected};

fn recording() -> (ClientBuilder, Arc<Mutex<Vec<Restart>>>) {
    let restarts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&restarts);
    (builder().on_restart(move |restart| recorded.lock().unwrap().push(restart)), restarts)
}

fn died() -> CloseReason {
    CloseReason::Exited { status: "signal: 9".to_owned() }
}

/// A restart is told when calls can be sent again, with what was lost.
// covers: GW-10
#[test]
fn gw_10_restarts_are_told() {
    let (builder, restarts) = recording();
    let (client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder);
    let _first = Task::start(client.call_tool("a"));
    let _second = Task::start(client.call_tool("b"));
    server.expect_request("tools/call");
    server.expect_request("tools/call");
    let _ = server.handle.handle_disconnect(&died());
    server.handle.handle_restart();
    server.assert_no_restart(&restarts);
    server.handshake("2025-11-25");
    server.poll();
    let [restart] = &restarts.lock().unwrap()[..] else { panic!("not one restart") };
    assert_eq!((&restart.cause, restart.failed_calls), (&RestartCause::ServerLost(died()), 2));
}

trait NoRestart {
    fn assert_no_restart(&mut self, restarts: &Mutex<Vec<Restart>>);
}

impl NoRestart for ScriptedServer {
    fn assert_no_restart(&mut self, restarts: &Mutex<Vec<Restart>>) {
        self.poll();
        assert!(restarts.lock().unwrap().is_empty());
    }
}

/// A modern server that is started again is told, too; it needs no handshake.
// covers: GW-10
#[test]
fn gw_10_restarts_of_modern_servers_are_told() {
    let (builder, restarts) = recording();
    let (_client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
    server.assert_no_restart(&restarts);
    let _ = server.handle.handle_disconnect(&died());
    server.handle.handle_restart();
    server.poll();
    assert_eq!(restarts.lock().unwrap().len(), 1);
}

/// A renewed session is a restart, in which no call failed.
// covers: GW-10
#[test]
fn gw_10_renewed_sessions_are_told() {
    let (builder, restarts) = recording();
    let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, builder);
    let mut call = Task::start(client.call_tool("a"));
    let lost = server.expect_request("tools/call");
    server.handle.handle_session_lost(Some(lost.call), true, SessionLossReason::Unknown { status: 404 });
    server.assert_no_restart(&restarts);
    call.assert_pending();
    server.handshake("2025-11-25");
    call.assert_pending();
    let again = server.expect_request("tools/call");
    server.respond(&again, tool_result("done"));
    call.finish().unwrap();
    let [restart] = &restarts.lock().unwrap()[..] else { panic!("not one restart") };
    assert!(matches!(restart.cause, RestartCause::SessionLost(_)) && restart.failed_calls == 0, "{restart:?}");
}

/// The log level that was set is set again, before anything else is called.
// covers: GW-10
#[test]
fn gw_10_the_log_level_is_set_again() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let setting = client.clone();
        let mut setting = Task::start(async move { setting.set_log_level(LoggingLevel::Warning).await });
        let set = server.expect_request("logging/setLevel");
        server.respond(&set, json!({}));
        setting.finish().unwrap();
        if kind == TransportKind::Pipe {
            let _ = server.handle.handle_disconnect(&died());
            server.handle.handle_restart();
        } else {
            server.handle.handle_session_lost(None, true, SessionLossReason::Unknown { status: 404 });
        }
        let _call = Task::start(client.call_tool("a"));
        server.handshake("2025-11-25");
        assert_eq!(server.expect_request("logging/setLevel").params["level"], "warning");
    }
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let setting = client.clone();
    expect_ready(async move { setting.set_log_level(LoggingLevel::Warning).await }).unwrap();
    let _ = server.handle.handle_disconnect(&died());
    server.handle.handle_restart();
    let _call = Task::start(client.call_tool("a"));
    let call = server.expect_request("tools/call");
    assert_eq!(call.params["_meta"]["io.modelcontextprotocol/logLevel"], "warning");
}

fn described(scope: &str, instructions: &str) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "instructions": instructions, "cacheScope": scope, "ttlMs": 0,
    })
}

/// With a known revision the facts are not requested when the client connects, but when they are needed.
// covers: GW-10
#[test]
fn gw_10_facts_are_requested_when_they_are_needed() {
    let builder = builder().detected_revision(DetectedRevision::new(Revision::LATEST));
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder);
    let client = connecting.finish().unwrap();
    assert!(client.server().capabilities.is_none());
    let asking = client.clone();
    let mut asking = Task::start(async move { asking.server_facts().await });
    let discover = server.expect_request("server/discover");
    server.respond(&discover, described("private", "Be kind"));
    assert_eq!(asking.finish().unwrap().instructions.as_deref(), Some("Be kind"));
    assert!(client.server().capabilities.is_some_and(|offered| offered.tools.is_some()));
    assert!(expect_ready(async move { client.server_facts().await }).is_ok());
    server.assert_quiet();
}

/// What an earlier client stored describes the server at once, until this one has requested it.
// covers: GW-10
#[test]
fn gw_10_a_detected_revision_describes_the_server() {
    for kind in KINDS {
        let (before, _server) = ScriptedServer::modern(kind, builder());
        assert!(before.server().capabilities.is_some());
        let stored = serde_json::to_string(&before.detected_revision().unwrap()).unwrap();
        let detected: DetectedRevision = serde_json::from_str(&stored).unwrap();
        let (client, mut server) = connected(kind, builder().detected_revision(detected));
        assert_eq!((client.revision(), client.server()), (Some(Revision::LATEST), before.server()));
        server.assert_quiet();
        let asking = client.clone();
        let mut asking = Task::start(async move { asking.server_facts().await });
        let discover = server.expect_request("server/discover");
        server.respond(&discover, described("private", "Be kind"));
        assert_eq!(asking.finish().unwrap(), client.server());
        assert_eq!(client.detected_revision().unwrap().server.instructions.as_deref(), Some("Be kind"));
    }
    // What was stored before there was a description.
    let detected: DetectedRevision = serde_json::from_value(json!({ "revision": "2025-11-25" })).unwrap();
    assert_eq!(detected, DetectedRevision::new(Revision::V2025_11_25));
    serde_json::from_value::<DetectedRevision>(json!({ "revision": "2099-01-01" })).unwrap_err();
}

/// Clients that share revisions share the description, too; over HTTP only if it is not that of a user.
// covers: GW-10, SEC-8
#[test]
fn gw_10_descriptions_are_shared_unless_they_are_private() {
    for (kind, scope, is_shared) in [
        (TransportKind::Pipe, "private", true),
        (TransportKind::RequestPerCall, "public", true),
        (TransportKind::RequestPerCall, "private", false),
    ] {
        let revisions = RevisionCache::default();
        let builder = || builder().revision_cache(&revisions, "server");
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder());
        let probe = server.expect_request("server/discover");
        server.respond(&probe, described(scope, "Be kind"));
        connecting.finish().unwrap();
        let instructions = || connected(kind, builder()).0.server().instructions;
        assert_eq!(instructions().is_some(), is_shared, "{kind:?} {scope}");
        // A client that requests newer ones shares these.
        let (client, mut server) = connected(kind, builder());
        let mut asking = Task::start(async move { client.server_facts().await });
        let discover = server.expect_request("server/discover");
        server.respond(&discover, described(scope, "Be quick"));
        asking.finish().unwrap();
        assert_eq!(instructions().as_deref(), is_shared.then_some("Be quick"), "{kind:?} {scope}");
    }
}

/// A call without an idle timeout ends when its response comes, or with its time limit.
// covers: GW-10
#[test]
fn gw_10_the_idle_timeout_can_be_disabled() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut call = Task::start(client.call_tool("a").idle_timeout(None).total_timeout(None));
        let request = server.expect_request("tools/call");
        server.advance(std::time::Duration::from_secs(24 * 60 * 60));
        call.assert_pending();
        server.respond(&request, tool_result("done"));
        call.finish().unwrap();
    }
}
