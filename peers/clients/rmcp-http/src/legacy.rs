//! The revisions that open with a handshake, without sessions: each request is served alone.

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::common;
use crate::host::Heard;
use crate::modern::EVERYTHING;
use crate::report::{Checked, Report, equal, expect, until};
use crate::session::{QUIET, Session, refused, text_of, version};

pub(crate) const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

pub(crate) async fn drive(report: &Report, url: &str, revision: &'static str) {
    let capabilities = serde_json::from_str(EVERYTHING).unwrap_or_default();
    match Session::open(report, url, revision, ClientLifecycleMode::Initialize, capabilities).await {
        Ok(session) => {
            handshake(&session).await;
            common::check(&session, "legacy").await;
            logging(&session).await;
            asking(&session).await;
            changes(&session).await;
            cancellation(&session).await;
            session.check_wire().await;
            session.close().await;
        }
        Err(fault) => report.fail(&format!("{revision}/connection"), &fault.to_string()),
    }
}

async fn handshake(session: &Session<'_>) {
    session
        .check("initialize", async {
            let posts = session.wire.posts();
            let offered = posts.first().map(|post| post.message["params"]["protocolVersion"].clone());
            equal(offered, Some(json!(session.revision)), "offered version")?;
            let server = session.client.peer_info().ok_or("nothing is known of the server")?;
            equal(server.protocol_version.clone(), version(session.revision)?, "negotiated version")?;
            expect(server.server_info.is_some(), "no serverInfo")
        })
        .await;
    session
        .check("initialize-capabilities", async {
            let server = session.client.peer_info().ok_or("nothing is known of the server")?;
            let offered = serde_json::to_value(&server.capabilities)?;
            // Nothing can be told to a client that is forgotten at once.
            for kind in ["tools", "prompts", "resources"] {
                equal(&offered[kind], &json!({}), kind)?;
            }
            expect(offered["logging"].is_null(), "logging is declared, and there is nowhere to keep a level")
        })
        .await;
    session.check("ping", async { session.request("ping", json!({})).await?.map(drop).map_err(Into::into) }).await;
}

async fn logging(session: &Session<'_>) {
    session
        .check("logging/not-sent", async {
            session.host.forget();
            session.call("test_tool_with_logging", Value::Null).await?;
            tokio::time::sleep(QUIET).await;
            equal(session.host.heard(Heard::Log).len(), 0, "log messages of a server that does not declare logging")
        })
        .await;
    session
        .check("logging/setLevel-is-refused", async {
            let error = refused(session.request("logging/setLevel", json!({ "level": "error" })).await?, -32601)?;
            expect(error.message.contains("session"), "the remedy, a session, is not in the message")
        })
        .await;
}

/// Refused: by an error of the protocol that names the remedy, or by the result of a tool, which does not.
async fn asking(session: &Session<'_>) {
    let every = [
        ("test_sampling", json!({ "prompt": "interop prompt" })),
        ("test_elicitation", json!({ "message": "interop message" })),
        ("test_elicitation_sep1034_defaults", Value::Null),
        ("test_elicitation_sep1330_enums", Value::Null),
        ("test_list_roots", Value::Null),
        ("test_ask_both_eras", json!({ "call": "stateless" })),
        ("test_ask_two_at_once", Value::Null),
    ];
    session.host.forget();
    for (tool, arguments) in every {
        session
            .check(&format!("asking-is-refused/{tool}"), async {
                let why = match session.result(tool, arguments).await {
                    Err(rmcp::ServiceError::McpError(error)) => error.message.into_owned(),
                    Err(other) => return Err(other.into()),
                    Ok(result) if result.is_error == Some(true) => text_of(&result),
                    Ok(result) => return Err(format!("succeeded: {}", text_of(&result)).into()),
                };
                // The remedy, a session, is for the developer of the server, in its log.
                expect(why == "no request can be sent to the client", format!("the model reads {why:?}"))?;
                let asked = [Heard::Form, Heard::Prompt, Heard::Roots].map(|kind| session.host.heard(kind).len());
                equal(asked, [0; 3], "questions that the client got")
            })
            .await;
    }
}

async fn changes(session: &Session<'_>) {
    session
        .check("list-changed/not-told", async {
            session.host.forget();
            session.call("test_trigger_changes", Value::Null).await?;
            tokio::time::sleep(QUIET).await;
            equal(session.host.heard(Heard::Change), vec![], "changes")
        })
        .await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        session
            .check(&format!("{method}-is-refused"), async {
                let params = json!({ "uri": "test://watched-resource" });
                let error = refused(session.request(method, params).await?, -32601)?;
                expect(error.message.contains("session"), format!("the remedy, a session, is not in {error:?}"))
            })
            .await;
    }
    session.check("roots/list-changed-is-taken", roots_changed(session)).await;
}

async fn roots_changed(session: &Session<'_>) -> Checked {
    session.client.notify_roots_list_changed().await?;
    session.call("test_simple_text", Value::Null).await.map(drop)
}

/// The notification names a request of a session, and there is none; but the package closes the response as well.
async fn cancellation(session: &Session<'_>) {
    session
        .check("cancellation/stops-the-tool", async {
            session.host.forget();
            let call = session.start("test_slow", json!({ "seconds": 60 }), None).await?;
            until(|| session.host.heard(Heard::Progress).len() >= 2).await;
            call.cancel(Some("the user changed their mind".to_owned())).await?;
            session.nothing_under_way().await
        })
        .await;
}
