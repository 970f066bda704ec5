//! A server that does a bit of everything, and clients of every revision.

use std::time::Duration;

use mcp_client::types::{ElicitResult, ElicitValue, LoggingLevel, Revision};
use mcp_client::{Client, ClientBuilder, MemoryTransport};
use mcp_server::{
    AskError, Change, HandlerError, Json, NoArguments, RequestContext, Server, UriVariables, prompt, template,
    text_resource, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
    #[serde(default = "thirty")]
    age: i64,
}

fn thirty() -> i64 {
    30
}

async fn ask(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let answer = ctx.elicit::<Person>("who", "Who are you?").await?;
    Ok(match answer {
        mcp_server::Elicited::Accepted(person) => format!("{} {}", person.name, person.age),
        mcp_server::Elicited::Declined => "declined".to_owned(),
        mcp_server::Elicited::Cancelled => "cancelled".to_owned(),
    })
}

async fn roots(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let roots = ctx.list_roots("roots").await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

async fn slow(ctx: RequestContext, _: NoArguments) -> &'static str {
    for step in 1..=3 {
        ctx.progress((step, 3));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ctx.log(LoggingLevel::Info, "hello log");
    "done"
}

async fn touch(ctx: RequestContext, _: NoArguments) -> &'static str {
    ctx.server().publish(&Change::Tools);
    ctx.server().publish(&Change::Resource("test://counter".to_owned()));
    "touched"
}

pub(crate) fn server() -> mcp_server::ServerBuilder {
    let add = tool("add", async |_, Add { a, b }| Json(Sum { sum: a + b }));
    let fail = tool("fail", async |_, _: NoArguments| Err::<String, _>(HandlerError::new("as asked")));
    let wait = tool("wait", async |ctx: RequestContext, _: NoArguments| {
        ctx.cancelled().await;
        "cancelled"
    });
    let echo = template("test://echo/{text}", "echo", async |_: RequestContext, variables: UriVariables| {
        variables.get("text").map(str::to_owned)
    });
    let greet = prompt("greet", async |_, Greet { name }| format!("Hello, {name}!"));
    let greet = greet.complete("name", async |_, typed: mcp_server::CompletionInput| {
        let names = ["alice", "albert", "bob"].into_iter();
        names.filter(|name| name.starts_with(&typed.value)).map(str::to_owned).collect::<Vec<_>>()
    });
    Server::builder("kit", "1.0")
        .tool(add)
        .tool(fail)
        .tool(wait)
        .tool(tool("slow", slow))
        .tool(tool("ask", ask))
        .tool(tool("roots", roots))
        .tool(tool("touch", touch))
        .prompt(greet)
        .resource(text_resource("test://hello", "hello", "hello"))
        .resource(text_resource("test://counter", "counter", "0"))
        .template(echo)
        .resource_subscriptions()
        .instructions("Add things")
}

/// A client that answers forms with a name alone.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0")
        .on_form_elicitation(async |_, _| ElicitResult::accepted([("name", ElicitValue::from("Ada"))]))
}

pub(crate) async fn connect(revision: Revision) -> Client {
    connect_with(builder(), revision).await
}

pub(crate) async fn connect_with(builder: ClientBuilder, revision: Revision) -> Client {
    limited(builder.revisions([revision]).connect(MemoryTransport::new(server().build().unwrap()))).await.unwrap()
}

/// Nothing here takes long.
pub(crate) async fn limited<F: IntoFuture>(future: F) -> F::Output {
    timeout(Duration::from_secs(20), future.into_future()).await.expect("it takes too long")
}
