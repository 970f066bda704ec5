//! One client that many callers share, over real HTTP.

use std::sync::{Arc, Mutex};

use mcp_client::types::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitValue, InputRequest, LoggingLevel, Revision,
};
use mcp_client::{Client, ClientBuilder, Mode};
use mcp_server::{HandlerError, RequestContext, Server, tool};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, HttpTransport, SessionMode};
use serde_json::json;
use tokio::sync::Barrier;

use crate::scripted::{text_of, within};

const CALLERS: usize = 10;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    number: usize,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// A server that asks each caller for a name, when all of them have called.
async fn serve(mode: SessionMode) -> String {
    let all_called = Arc::new(Barrier::new(CALLERS));
    let ask = tool("ask", move |ctx: RequestContext, Number { number }: Number| {
        let all_called = Arc::clone(&all_called);
        async move {
            // A retry of the modern era comes alone.
            if !ctx.is_retry() {
                all_called.wait().await;
            }
            ctx.log(LoggingLevel::Info, &number);
            let Name { name } = ctx.elicit("name", format!("Who is {number}?")).await?.accepted()?;
            Ok::<_, HandlerError>(format!("{number} is {name}"))
        }
    });
    let server = Server::builder("asker", "1.0").tool(ask).build().expect("a server");
    let service = HttpService::with_options(server, HttpOptions::default().sessions(mode));
    let listener = HttpServer::bind("127.0.0.1:0").await.expect("a port");
    let url = listener.url();
    tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
    url
}

async fn connect(builder: ClientBuilder, mode: SessionMode) -> Client {
    let transport = HttpTransport::new(serve(mode).await).expect("a URL");
    let client = within(builder.connect(transport)).await.expect("a client");
    assert_eq!(client.session_id().is_some(), mode == SessionMode::Stateful);
    client
}

fn named(message: &str, number: usize) -> ElicitResult {
    assert_eq!(message, format!("Who is {number}?"), "the request of another caller");
    ElicitResult::accepted([("name", ElicitValue::from(format!("caller {number}")))])
}

/// The eras, and the sessions of each.
fn eras() -> [(Mode, Revision, SessionMode); 2] {
    [
        (Mode::Modern, Revision::V2026_07_28, SessionMode::Stateless),
        (Mode::Legacy, Revision::V2025_11_25, SessionMode::Stateful),
    ]
}

async fn all(calls: Vec<mcp_client::Call<mcp_client::types::CallToolResult>>) {
    assert_eq!(calls.len(), CALLERS);
    let calls: Vec<_> = calls.into_iter().map(|call| tokio::spawn(call.into_future())).collect();
    for (number, call) in calls.into_iter().enumerate() {
        let result = within(call).await.expect("a task").expect("a result");
        assert_eq!(text_of(&result), format!("{number} is caller {number}"));
    }
}

/// Each of ten concurrent calls through one client gets the request that belongs to it.
// covers: GW-1
#[tokio::test]
async fn gw_1_every_caller_is_asked_its_own_question() {
    for (mode, revision, sessions) in eras() {
        let capabilities: ClientCapabilities =
            serde_json::from_value(json!({ "elicitation": { "form": {} } })).expect("capabilities");
        let builder = Client::builder("shared", "1.0").mode(mode).revisions([revision]).capabilities(capabilities);
        let client = connect(builder, sessions).await;
        let call = |number: usize| {
            client.call_tool("ask").arguments(&json!({ "number": number })).on_input(move |request| async move {
                let InputRequest::Elicit(request) = request else { return Ok(None) };
                let ElicitRequestParams::Form(form) = request.params else { return Ok(None) };
                Ok(Some(named(&form.message, number).into()))
            })
        };
        all((0..CALLERS).map(call).collect()).await;
    }
}

/// The functions of the builder get the values of each call, and so do log messages.
// covers: GW-1
#[tokio::test]
async fn gw_1_the_functions_of_the_builder_know_the_caller() {
    struct Caller(usize);
    for (mode, revision, sessions) in eras() {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let logs = Arc::clone(&logged);
        let builder = Client::builder("shared", "1.0")
            .mode(mode)
            .revisions([revision])
            .log_level(LoggingLevel::Info)
            .on_log(move |context, log| {
                let number = context.extension::<Caller>().expect("a log message of a call").0;
                logs.lock().expect("no panic").push((number, log.data.as_str().to_owned()));
            })
            .on_form_elicitation(async |context, form| {
                named(&form.message, context.extension::<Caller>().expect("a request of a call").0)
            });
        let client = connect(builder, sessions).await;
        let call =
            |number: usize| client.call_tool("ask").arguments(&json!({ "number": number })).extension(Caller(number));
        all((0..CALLERS).map(call).collect()).await;
        let mut logged = logged.lock().expect("no panic").clone();
        logged.sort();
        logged.dedup();
        let expected: Vec<_> = (0..CALLERS).map(|number| (number, number.to_string())).collect();
        assert_eq!(logged, expected);
    }
}
