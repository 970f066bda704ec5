//! Code of the application at the beginning of a stream, and for as long as it lasts.

use std::future::pending;

use http::request::Parts;
use mcp_server::types::{ErrorObject, LoggingLevel};
use mcp_server::{ClientCapability, Handshake, NoArguments, RequestContext, Server, SessionContext, tool};
use mcp_testkit::Notes;
use mcp_testkit::envelope::{initialize, initialized, tool_text};
use mcp_transport_http::HttpOptions;
use serde_json::json;

use crate::client::{Client, both, call};
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
