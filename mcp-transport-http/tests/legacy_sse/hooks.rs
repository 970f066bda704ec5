//! Code of the application at the beginning of a stream, and for as long as it lasts.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use mcp_server::types::{ErrorObject, LoggingLevel};
use mcp_server::{ClientCapability, Handshake, NoArguments, RequestContext, Server, SessionContext, tool};
use mcp_testkit::envelope::{initialize, initialized, request, tool_text};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::HttpOptions;
use serde_json::json;

use crate::client::{Client, both, call, get, send};
use crate::demo::server;

/// The server of a stream is chosen by what its client declares, and a client may be refused.
// covers: GW-5, MIS-13
#[tokio::test]
async fn gw_5_the_server_of_a_stream_is_chosen_by_capabilities() {
    let id = async |ctx: RequestContext, _: NoArguments| ctx.connection().session_id().unwrap_or_default();
    let rooted = Server::builder("rooted", "1.0").tool(tool("id", id)).build().expect("a server");
    let server = server(|server| {
        server.on_initialize(move |handshake: Handshake| {
            let rooted = rooted.clone();
            async move {
                tokio::task::yield_now().await;
                assert!(handshake.extension::<Parts>().is_some());
                let is_rooted = handshake.supports(ClientCapability::Roots);
                if is_rooted { Ok(rooted) } else { Err(ErrorObject::invalid_request("no roots")) }
            }
        })
    });
    let (_service, sse) = both(server, HttpOptions::default());
    let mut client = Client::open(&sse).await;
    client.tell(initialize(1, "2024-11-05", json!({}))).await;
    assert_eq!(client.message().await["error"]["message"], "no roots");
    client.tell(initialize(2, "2024-11-05", json!({ "roots": {} }))).await;
    assert_eq!(client.message().await["result"]["serverInfo"]["name"], "rooted");
    client.tell(initialized()).await;
    client.tell(call(3, "id")).await;
    let id = tool_text(&client.message().await).to_owned();
    assert!(client.endpoint.ends_with(&format!("sessionId={id}")), "{id}");
}

/// The code of a session lasts as long as its stream.
// covers: MIS-4, S4.66
#[tokio::test]
async fn mis_4_code_runs_for_the_life_of_a_stream() {
    let notes = Notes::default();
    let kept = notes.clone();
    let server = server(|server| {
        server.on_session(move |session: SessionContext| {
            let (dropped, closed) = (kept.on_drop("dropped"), kept.clone());
            async move {
                let _dropped = dropped;
                session.connection().on_close(move || async move { closed.add("closed") });
                session.connection().initialized().await.expect("a handshake");
                session.connection().log(LoggingLevel::Error, "welcome");
                pending::<()>().await;
            }
        })
    });
    let (_service, sse) = both(server, HttpOptions::default());
    let mut client = Client::ready(&sse).await;
    assert_eq!(client.message().await["params"]["data"], "welcome");
    assert_eq!(notes.take(), [""; 0]);
    drop(client);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(notes.take(), ["dropped", "closed"]);
}

/// A message before the response to `initialize` is too early; a client that reads its stream is not told to read it.
// covers: GW-5
#[tokio::test]
async fn gw_5_messages_before_the_decision_are_too_early() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = server(|server| {
        server.on_initialize(move |handshake: Handshake| {
            let waiting = waiting.clone();
            async move {
                waiting.wait().await;
                Ok(handshake.server().clone())
            }
        })
    });
    let (_service, sse) = both(server, HttpOptions::default());
    let mut client = Client::open(&sse).await;
    client.tell(initialize(1, "2024-11-05", json!({}))).await;
    let refused = client.send(request(2, "ping", json!({}))).await;
    assert_eq!(refused.header("retry-after"), None);
    let refused = refused.json(409).await;
    let text = "`initialize` has no response yet: wait for it on the event stream";
    assert_eq!((&refused["id"], &refused["error"]["message"]), (&json!(2), &json!(text)));
    gate.open();
    assert!(client.message().await.get("result").is_some());
    client.tell(initialized()).await;
    client.tell(request(3, "ping", json!({}))).await;
    assert!(client.message().await.get("result").is_some());
}

/// A stream whose server is still being selected is refused when the service has shut down.
// covers: S4.64, RB-60
#[tokio::test(start_paused = true)]
async fn a_pending_selection_is_aborted() {
    let notes = Notes::default();
    let noted = notes.clone();
    let options = HttpOptions::default().select_server(move |_: Arc<Parts>| {
        let dropped = noted.on_drop("dropped");
        async move {
            let _dropped = dropped;
            pending().await
        }
    });
    let (service, sse) = both(server(|server| server), options);
    let waiting = tokio::spawn(async move { send(get(), &sse).await });
    tokio::task::yield_now().await;
    service.drain(Duration::from_secs(5)).await;
    let refused = tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it is aborted");
    refused.expect("no panic").json(503).await;
    assert_eq!(notes.take(), ["dropped"]);
}
