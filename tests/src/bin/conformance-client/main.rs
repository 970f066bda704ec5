//! The client that the conformance suite is given: it does what a scenario wants, at a server whose address comes last.
//!
//! `MCP_CONFORMANCE_SCENARIO` names the scenario, `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision, and
//! `MCP_CONFORMANCE_CONTEXT` says more about some of them, as JSON.

#![forbid(unsafe_code)]

mod auth;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use mcp_client::types::{
    CreateMessageResult, ElicitResult, Era, OrderedMap, ProtocolVersion, RawObject, Revision, Role, Root,
    SamplingContent, TextContent,
};
use mcp_client::{Client, Mode};
use mcp_transport_http::HttpTransport;
use serde::Deserialize;
use serde_json::json;

/// The suite waits for 30 s, and then for as long as its pipes are open.
const LIMIT: Duration = Duration::from_secs(20);

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match tokio::time::timeout(LIMIT, run()).await {
        Ok(done) => done,
        Err(_) => Err(format!("not done within {} s", LIMIT.as_secs()).into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "standard error is there for people")]
fn complain(error: &dyn Error) {
    eprintln!("{error}");
}

async fn run() -> Outcome {
    let url = std::env::args().next_back().ok_or("the address of the server is missing")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
    let revision = ProtocolVersion::from(version).revision().ok_or("a revision that is not known")?;
    let client = connect(&url, &scenario, revision).await?;
    match scenario.as_str() {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => client.tools().all().await.map(drop)?,
        "tools_call" => add_numbers(&client).await?,
        "elicitation-sep1034-client-defaults" => call(&client, "test_client_elicitation_defaults").await?,
        "sse-retry" => call(&client, "test_reconnection").await?,
        "sep-2322-client-request-state" => call_all(&client).await?,
        "http-standard-headers" => use_everything(&client).await?,
        "http-custom-headers" => call_as_told(&client).await?,
        "http-invalid-tool-headers" => call_all(&client).await?,
        "json-schema-2020-12-preservation" => send_schema_back(&client).await?,
        name if is_about_authorization(name) => call(&client, "test-tool").await?,
        _ => return Err(format!("there is no scenario `{scenario}` here").into()),
    }
    client.close().await;
    Ok(())
}

/// Whether the client has to log in. What it does then is the same in all of these scenarios.
fn is_about_authorization(scenario: &str) -> bool {
    scenario.starts_with("auth/")
}

/// A client that can do everything for a server.
async fn connect(url: &str, scenario: &str, revision: Revision) -> Outcome<Client> {
    let mode = if revision.era() == Era::Modern { Mode::Modern } else { Mode::Legacy };
    let builder = Client::builder("conformance-client", "1.0")
        .mode(mode)
        .revisions([revision])
        // The user changes nothing: what there are defaults for is filled in.
        .on_form_elicitation(async |_, _| ElicitResult::accepted(OrderedMap::new()))
        .on_sampling(async |_, _| {
            CreateMessageResult::new(Role::ASSISTANT, SamplingContent::from(TextContent::new("Paris")), "a-model")
        })
        .roots([Root::new("file:///work")]);
    let mut transport = HttpTransport::new(url)?;
    if is_about_authorization(scenario) {
        transport = transport.authorizer(auth::authorizer(url, scenario)?);
    }
    Ok(builder.connect(transport).await?)
}

async fn call(client: &Client, tool: &str) -> Outcome {
    client.tools().all().await?;
    let result = client.call_tool(tool).arguments(&json!({})).await?;
    if result.is_error == Some(true) { Err(format!("`{tool}` failed: {result:?}").into()) } else { Ok(()) }
}

async fn add_numbers(client: &Client) -> Outcome {
    client.tools().all().await?;
    client.call_tool("add_numbers").arguments(&json!({ "a": 5, "b": 3 })).await?;
    Ok(())
}

/// Calls every tool that is left in the list.
async fn call_all(client: &Client) -> Outcome {
    for tool in client.tools().all().await? {
        client.call_tool(tool.name).arguments(&json!({})).await?;
    }
    Ok(())
}

/// Sends every request that has headers of its own.
async fn use_everything(client: &Client) -> Outcome {
    call_all(client).await?;
    for resource in client.resources().all().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.prompts().all().await? {
        client.get_prompt(prompt.name).argument("topic", "headers").await?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: RawObject,
}

async fn call_as_told(client: &Client) -> Outcome {
    let context: Context = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    client.tools().all().await?;
    for ToolCall { name, arguments } in context.tool_calls {
        client.call_tool(name).arguments(&arguments).await?;
    }
    Ok(())
}

/// Shows that a schema comes through as it is.
async fn send_schema_back(client: &Client) -> Outcome {
    let tools = client.tools().all().await?;
    let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").ok_or("the tool is missing")?;
    client.call_tool("json_schema_echo").arguments(&json!({ "schema": tool.input_schema })).await?;
    Ok(())
}
