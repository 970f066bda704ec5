//! What servers say to a modern client, and what that makes of them.

use mcp_client::types::{Era, Revision};
use mcp_client::{CloseReason, ConnectError, Error};
use mcp_testkit::envelope::tool_result;
use serde_json::json;

use crate::scripted::{Reply, Scripted, answer, call, modern, shake_hands, within};

/// Whatever it is that a legacy server says to the probe, with whatever code, it gets a handshake; a session that
/// nobody opened is not one.
// covers: S3.62, S3.65, DU-36, DU-37, DU-39
#[tokio::test]
async fn a_legacy_server_is_found() {
    let error = |code: i64, id: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } }).to_string()
    };
    let as_json = ("content-type", "application/json");
    for refusal in [
        Reply::status(400),
        Reply::new(400, &[("content-type", "text/html")], "<html>"),
        Reply::new(400, &[as_json, ("mcp-session-id", "nobody's")], &error(-32600, "server-error")),
        Reply::new(400, &[as_json], &error(-32000, "1")),
        Reply::new(404, &[as_json], &error(-32601, "1")),
        Reply::status(405),
        Reply::status(406),
        Reply::status(415),
        Reply::status(422),
    ] {
        let said_first = refusal.clone();
        let server = Scripted::start(move |seen| match seen.method() {
            "server/discover" => said_first.clone(),
            "initialize" => Reply::json(&shake_hands(seen)),
            "notifications/initialized" => Reply::status(202),
            "tools/call" => Reply::json(&answer(seen, &tool_result("legacy"))),
            _ => Reply::status(405),
        })
        .await;
        let client = server.client().await;
        assert_eq!(client.revision(), Some(Revision::V2025_11_25), "{refusal:?}");
        assert_eq!(call(&client).await.unwrap(), "legacy");
        within(client.close()).await;
        assert!(server.seen().iter().all(|seen| seen.header("mcp-session-id").is_none()), "{refusal:?}");
    }
}

/// What only a modern server says is not taken for legacy, and neither is an outage.
// covers: S3.65, DU-27, DU-36
#[tokio::test]
async fn nothing_else_is_legacy() {
    let refused = |code: i64, data: serde_json::Value| {
        let error = json!({ "code": code, "message": "no", "data": data });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string();
        Reply::new(400, &[("content-type", "application/json")], &body)
    };
    for refusal in [
        refused(-32022, json!({ "supported": ["2099-01-01"], "requested": "2026-07-28" })),
        Reply::status(401),
        Reply::status(403),
        Reply::status(500),
        Reply::status(503),
        Reply::close(),
    ] {
        let said_first = refusal.clone();
        let server = Scripted::start(move |_| said_first.clone()).await;
        let error = server.connect(server.transport()).await.unwrap_err();
        assert!(
            matches!(error, Error::Closed(CloseReason::ConnectFailed(_) | CloseReason::Disconnected(_))),
            "{refusal:?}: {error:?}"
        );
        assert!(server.seen().iter().all(|seen| seen.method() == "server/discover"), "{refusal:?}");
    }
}

/// A modern server is asked once, and a client that is modern alone takes no other.
// covers: S3.64, S3.66, DU-1
#[tokio::test]
async fn a_modern_server_is_found() {
    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("modern"))))).await;
    let client = server.client().await;
    assert_eq!(client.revision().map(Revision::era), Some(Era::Modern));
    assert_eq!(call(&client).await.unwrap(), "modern");
    assert_eq!(server.methods(), ["server/discover", "tools/call"]);
    let legacy = Scripted::start(|_| Reply::status(400)).await;
    let connecting = crate::scripted::builder().mode(mcp_client::Mode::Modern).connect(legacy.transport());
    let error = within(connecting).await.unwrap_err();
    assert!(
        matches!(error, Error::Closed(CloseReason::ConnectFailed(ref why)) if *why != ConnectError::Disconnected),
        "{error:?}"
    );
    assert_eq!(legacy.methods(), ["server/discover"]);
}
