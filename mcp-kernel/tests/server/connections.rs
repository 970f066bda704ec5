//! What belongs to a connection, and what to the way in which it was made (S0, S1).

use std::sync::Arc;

use mcp_kernel::server::{Connection, Delivery, Event, Route, ServerConfig};
use mcp_kernel::{CallOptions, Change, CommandError, PeerMisbehaved};
use mcp_testkit::envelope::{cancelled, initialize, modern_request, notification, request};
use mcp_types::meta::key::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use mcp_types::{ClientCapability, Era, LoggingLevel, Method, RawJson, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

fn log(script: &mut Script, level: LoggingLevel) -> Delivery {
    script.connection.log(None, level, RawJson::from(json!(1)), None)
}

/// Does everything on a connection that leaves something behind in it.
fn use_up(script: &mut Script) {
    script.send(initialize("i", "2025-06-18", json!({ "roots": {} })));
    script.reply();
    script.send(notification("notifications/initialized", json!({})));
    script.send(request("l", "logging/setLevel", json!({ "level": "debug" })));
    script.reply();
    script.send(request("s", "resources/subscribe", json!({ "uri": "a:b" })));
    script.reply();
    script.send(modern_request(
        "m",
        "subscriptions/listen",
        json!({ "notifications": { "promptsListChanged": true } }),
    ));
    script.next();
    script.send(request(1, "tools/call", json!({})));
    while script.connection.poll_event().is_some() {}
}

/// What one client settled is unknown to another one of the same server.
// covers: S0.1, S0.2, S0.22, S1.1, S3.20
#[test]
fn connections_share_nothing() {
    let config = Arc::new(config());
    let mut used = Script::over(Connection::long_lived(Arc::clone(&config)));
    let mut other = Script::over(Connection::long_lived(config));
    use_up(&mut used);
    assert_eq!((used.connection.negotiated(), other.connection.negotiated()), (Some(Revision::V2025_06_18), None));
    assert!(other.connection.is_idle());
    other.send(initialize("i", "2025-11-25", json!({})));
    assert_eq!(other.reply()["result"]["protocolVersion"], "2025-11-25");
    other.send(notification("notifications/initialized", json!({})));
    assert!(matches!(other.event(), Event::Initialized));
    // The id is in use on the first connection only.
    let asked = other.served(request(1, "tools/call", json!({})));
    assert_eq!(asked.scope.revision(), Revision::V2025_11_25);
    assert!(!asked.scope.supports(ClientCapability::Roots) && !asked.scope.may_log(LoggingLevel::Debug));
    assert_eq!(log(&mut other, LoggingLevel::Debug), Delivery::NotSent);
    other.connection.publish(&Change::Resource("a:b".into()));
    other.silence();
    // Each of these has a place to go to on the first connection.
    assert_eq!(log(&mut used, LoggingLevel::Debug), Delivery::Queued);
    used.connection.publish(&Change::Resource("a:b".into()));
    used.next();
    assert_eq!(used.next().1["method"], "notifications/resources/updated");
    used.connection.handle_disconnect();
    other.no_event();
    other.done(asked.responder);
    other.assert_nothing_left();
}

/// A server's facts stay as they are, whatever its clients do.
// covers: S0.3
#[test]
fn clients_leave_no_trace_in_the_server() {
    let config = Arc::new(config());
    let seen = || {
        let mut script = Script::over(Connection::long_lived(Arc::clone(&config)));
        let mut replies = Vec::new();
        for request in [
            modern_request(1, "server/discover", json!({})),
            request(2, "tools/list", json!({})),
            initialize(3, "2099-01-01", json!({})),
        ] {
            script.send(request);
            replies.push(script.reply());
        }
        replies
    };
    let before = (format!("{config:?}"), seen());
    let mut used = Script::over(Connection::long_lived(Arc::clone(&config)));
    use_up(&mut used);
    used.connection.close();
    drop(used);
    assert_eq!(before, (format!("{config:?}"), seen()));
    assert_eq!(Arc::strong_count(&config), 1, "nothing is kept of a connection that is gone");
}

/// An id is cancelled on its own connection, and on no other.
// covers: S0.13
#[test]
fn cancellations_stay_on_their_connection() {
    let config = Arc::new(config());
    let [mut first, mut second] = [(); 2].map(|()| Script::over(Connection::long_lived(Arc::clone(&config))));
    let (a, b) = (
        first.served(modern_request(7, "tools/call", json!({}))),
        second.served(modern_request(7, "tools/call", json!({}))),
    );
    first.send(cancelled(7));
    assert_eq!(first.given_up(), a.key());
    second.no_event();
    assert!(second.done(b.responder)["result"].is_object());
    first.assert_nothing_left();
    second.assert_nothing_left();
}

/// Without a session, a request leaves nothing for the next one.
// covers: S0.6
#[test]
fn nothing_is_kept_between_stateless_requests() {
    let config = Arc::new(config());
    let old = || Script::over(Connection::legacy_request(Arc::clone(&config), Revision::V2025_06_18));
    let mut script = old();
    script.send(initialize(1, "2025-06-18", json!({ "roots": {} })));
    assert!(script.reply()["result"].is_object());
    script.assert_nothing_left();
    let mut script = old();
    let asked = script.served(request(1, "tools/call", json!({})));
    assert!(!asked.scope.supports(ClientCapability::Roots) && asked.scope.client_info().is_none());
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// Without a session there is nowhere to keep a level. So logging is not declared, a level is not taken, and nothing is
/// logged.
// covers: MIS-11, Y-1, B-41
#[test]
fn mis_11_stateless_legacy_has_no_logging() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let old = || Script::legacy_request(revision);
        let mut script = old();
        script.send(initialize(1, revision.as_str(), json!({})));
        let declared = script.reply()["result"]["capabilities"].take();
        assert!(declared["tools"].is_object() && declared["logging"].is_null(), "{declared}");
        // Old revisions lack some capabilities, which is told.
        while script.connection.poll_event().is_some() {}
        script.assert_nothing_left();
        let mut script = old();
        script.send(request(1, "logging/setLevel", json!({ "level": "debug" })));
        script.refusal(1, -32601);
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::NeedsSession(_))));
        script.assert_nothing_left();
        let mut script = old();
        let asked = script.served(request(1, "tools/call", json!({})));
        assert!(!asked.scope.may_log(LoggingLevel::Emergency));
        let logged = script.connection.log(Some(asked.key()), LoggingLevel::Emergency, RawJson::null(), None);
        assert_eq!(logged, Delivery::NotSent);
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

fn strict() -> Arc<ServerConfig> {
    let mut config = config();
    config.require_initialized = true;
    Arc::new(config)
}

/// An envelope says all there is to know, and no handshake is missing.
// covers: S0.7, S1.12, S1.14, S1.18, S1.19, S3.4
#[test]
fn an_envelope_is_enough() {
    let info = json!({ "name": "c", "version": "2", "title": "C" });
    let all = json!({ CLIENT_INFO: info, CLIENT_CAPABILITIES: { "sampling": {} }, LEVEL: "error" });
    for (meta, name, samples, logs) in [
        (all, Some("c"), true, true),
        (json!({ CLIENT_CAPABILITIES: { "sampling": {} } }), None, true, false),
        (json!({ CLIENT_INFO: info }), Some("c"), false, false),
    ] {
        let mut script = Script::over(Connection::modern_request(strict()));
        let asked = script.served(modern_request(1, "tools/call", json!({ "_meta": meta })));
        assert_eq!((asked.scope.revision(), asked.scope.era()), (Revision::V2026_07_28, Era::Modern));
        assert_eq!(asked.scope.client_info().map(|info| info.name.as_str()), name);
        assert_eq!(asked.scope.supports(ClientCapability::Sampling), samples);
        assert_eq!(asked.scope.may_log(LoggingLevel::Error), logs);
        assert!(asked.scope.is_stateless() && !asked.scope.may_log(LoggingLevel::Warning));
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// How a connection is made decides whom it serves at once; every request has a revision.
// covers: S1.5, S1.6, S1.11, S1.22
#[test]
fn the_way_a_connection_is_made_decides() {
    let revision = Revision::V2025_03_26;
    for (connection, known, refusal) in [
        (Connection::long_lived(strict()), None, Some(-32600)),
        (Connection::modern_request(strict()), None, Some(-32602)),
        (Connection::legacy_request(strict(), revision), Some(revision), None),
    ] {
        let mut script = Script::over(connection);
        assert_eq!(script.connection.negotiated(), known);
        let request = request(1, "tools/call", json!({}));
        match refusal {
            Some(code) => {
                script.refused(request, code);
            }
            None => {
                let asked = script.served(request);
                assert_eq!(asked.scope.revision(), revision);
                script.done(asked.responder);
            }
        }
        let asked = script.served(modern_request(2, "tools/call", json!({})));
        assert_eq!(asked.scope.revision(), Revision::V2026_07_28);
        script.done(asked.responder);
        script.assert_nothing_left();
    }
}

/// Before anything was said, nothing is settled, subscribed to or told, and a bare confirmation is none.
// covers: S0.23, S1.26
#[test]
fn a_new_connection_knows_nothing() {
    let mut script = Script::over(Connection::long_lived(strict()));
    assert!(script.connection.is_idle());
    for _ in 0..2 {
        assert_eq!(script.connection.negotiated(), None);
        assert_eq!(log(&mut script, LoggingLevel::Emergency), Delivery::NotSent);
        for change in [Change::Tools, Change::Resource("a:b".into())] {
            script.connection.publish(&change);
        }
        script.silence();
        script.refused(request(1, "tools/call", json!({})), -32600);
        script.send(notification("notifications/initialized", json!({})));
        assert!(matches!(script.complaint(), PeerMisbehaved::StrayNotification(_)));
    }
    script.send(initialize(2, "2025-06-18", json!({})));
    script.reply();
    // The peer is known from here on, and the connection still not ready.
    assert_eq!(script.connection.negotiated(), Some(Revision::V2025_06_18));
    script.refused(request(1, "tools/call", json!({})), -32600);
    script.send(notification("notifications/initialized", json!({})));
    assert!(matches!(script.event(), Event::Initialized));
    let asked = script.served(request(1, "tools/call", json!({})));
    // The level of one who never chose is `info`.
    assert!(asked.scope.may_log(LoggingLevel::Info) && !asked.scope.may_log(LoggingLevel::Debug));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// A channel of its own lets the server tell something; what it may ask is another matter.
// covers: S1.25
#[test]
fn a_channel_is_no_permission() {
    let roots = |script: &mut Script| {
        let now = script.now();
        script.connection.call(now, None, Method::ROOTS_LIST, &RawObject::empty(), CallOptions::default())
    };
    let mut script = Script::initialized("2025-11-25");
    script.connection.publish(&Change::Tools);
    assert_eq!(script.next().0, Route::Standalone);
    assert_eq!(roots(&mut script), Err(CommandError::MissingCapability(ClientCapability::Roots)));
    script.assert_nothing_left();
    for mut script in [Script::modern_request(), Script::legacy_request(Revision::V2025_11_25)] {
        script.connection.publish(&Change::Tools);
        script.silence();
        assert!(matches!(roots(&mut script), Err(CommandError::NoBackChannel(_))));
        script.assert_nothing_left();
    }
}

/// Capabilities are there as the client declared them, with what only the application can judge.
// covers: S1.36, S1.37
#[test]
fn capabilities_are_as_declared() {
    let declared = json!({
        "roots": { "listChanged": true },
        "sampling": { "tools": {} },
        "experimental": { "x": { "depth": 3 } },
        "extensions": { "com.example/clock": { "zone": "utc" } },
    });
    let mut script = Script::initialized_with(config(), "2025-11-25", declared.clone());
    let meta = json!({ PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: declared });
    for request in [request(1, "tools/call", json!({})), request(2, "tools/call", json!({ "_meta": meta }))] {
        let asked = script.served(request);
        for (capability, is_there) in [
            (ClientCapability::Roots, true),
            (ClientCapability::Sampling, true),
            (ClientCapability::SamplingTools, true),
            (ClientCapability::SamplingContext, false),
            (ClientCapability::ElicitationForm, false),
            (ClientCapability::ElicitationUrl, false),
        ] {
            assert_eq!(asked.scope.supports(capability), is_there, "{capability:?}");
        }
        let seen: Value = serde_json::to_value(asked.scope.capabilities()).expect("JSON");
        assert_eq!(seen, declared);
        script.done(asked.responder);
    }
    script.assert_nothing_left();
}
