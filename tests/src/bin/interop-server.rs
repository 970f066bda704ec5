//! The interop server with our own packages: what it offers is in `tests/interop/servers/README.md`, and is the same as
//! that of the servers made with the packages of others.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_server::types::{
    CallToolResult, ContentBlock, CreateMessageRequestParams, LoggingLevel, ProtocolVersion, Revision, SamplingMessage,
};
use mcp_server::{
    AskError, BuildError, Change, CompletionInput, Elicited, IntoToolResult as _, Json, NoArguments, RequestContext,
    Server, UriVariables, prompt, resource, template, text_resource, tool,
};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, ResponseStream, SessionMode, shutdown_signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const USAGE: &str = "\
usage: interop-server --stdio|--http|--sse [REVISION...]

  --stdio   serve the client that started this process, on standard input and output
  --http    serve over Streamable HTTP, say where, and stop when told to (SIGTERM) or when the input ends
  --sse     the same over HTTP+SSE

Without revisions, all are served.";

/// What clients subscribe to.
const COUNTER: &str = "test://counter";

/// When clients that were cut off come back.
const RETRY: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "standard error is there for people and tests")]
fn complain(text: &str) {
    eprintln!("{text}");
}

fn run() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let mut revisions = Vec::new();
    for version in arguments {
        revisions.push(ProtocolVersion::from(version).revision().ok_or_else(|| io::Error::other(USAGE))?);
    }
    if revisions.is_empty() {
        revisions = Revision::ALL.to_vec();
    }
    let server = server(revisions).map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match mode.as_str() {
        "--stdio" => runtime.block_on(mcp_transport_stdio::serve_stdio(server)).map(drop),
        "--http" => runtime.block_on(serve_http(server, false)),
        "--sse" => runtime.block_on(serve_http(server, true)),
        _ => Err(io::Error::other(USAGE)),
    }
}

#[expect(clippy::print_stdout, reason = "whoever started this reads the address there")]
async fn serve_http(server: Server, is_sse: bool) -> io::Result<()> {
    let service = HttpService::with_options(server, HttpOptions::default().sessions(SessionMode::Stateful));
    let mut listener = HttpServer::bind("127.0.0.1:0").await?.drain_timeout(Duration::from_secs(1));
    let mut url = listener.url();
    if is_sse {
        listener = listener.legacy_sse(service.legacy_sse().map_err(io::Error::other)?);
        url = url.replace("/mcp", "/sse");
    }
    println!("listening on {url}");
    let ends = async {
        tokio::select! {
            () = shutdown_signal() => {}
            () = input_ended() => {}
        }
    };
    listener.serve(service, ends).await;
    Ok(())
}

/// Ready when nobody is there any more who might say something.
#[expect(clippy::disallowed_methods, reason = "a thread that waits for input can be left behind when the process ends")]
async fn input_ended() {
    let (ended, waiting) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(ended);
    });
    let _ = waiting.await;
}

/// How often `touch` was called.
#[derive(Default)]
struct Touched(AtomicU64);

fn touched(ctx: &RequestContext) -> &AtomicU64 {
    let Touched(count) = ctx.state().expect("the server is built with a count");
    count
}

fn server(revisions: Vec<Revision>) -> Result<Server, BuildError> {
    Server::builder("interop", env!("CARGO_PKG_VERSION"))
        .revisions(revisions)
        .page_size(2)
        .state(Touched::default())
        .tool(tool("add", add).output_schema(sum_schema()))
        .tool(tool("fail", async |_, _: NoArguments| CallToolResult::error("as asked")))
        .tool(tool("slow", slow))
        .tool(tool("wait", wait))
        .tool(tool("ask", ask))
        .tool(tool("sample", sample))
        .tool(tool("roots", roots))
        .tool(tool("log", log))
        .tool(tool("touch", touch))
        .tool(tool("drop", drop_stream))
        .resource(text_resource("test://hello", "hello", "hello"))
        .resource(resource(COUNTER, "counter", async |ctx: RequestContext| {
            touched(&ctx).load(Ordering::Relaxed).to_string()
        }))
        .resource_subscriptions()
        .template(template("test://echo/{text}", "echo", async |_, variables: UriVariables| {
            variables.get("text").map(str::to_owned)
        }))
        .prompt(prompt("greet", async |_, Greet { name }| format!("Hello, {name}!")).complete("name", complete))
        .prompt(prompt("plain", async |_, _: NoArguments| "plain"))
        .prompt(prompt("third", async |_, _: NoArguments| "third"))
        .build()
}

#[derive(Deserialize, JsonSchema)]
struct Terms {
    a: f64,
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

fn sum_schema() -> mcp_server::types::RawObject {
    Json::<Sum>::output_schema().expect("the type has a schema")
}

async fn add(_: RequestContext, Terms { a, b }: Terms) -> Result<CallToolResult, serde_json::Error> {
    let mut result = CallToolResult::structured(&Sum { sum: a + b })?;
    result.content = vec![ContentBlock::text((a + b).to_string())];
    Ok(result)
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    steps: u32,
}

async fn slow(ctx: RequestContext, Slow { steps }: Slow) -> &'static str {
    for step in 1..=steps {
        sleep(Duration::from_millis(20)).await;
        ctx.progress((step, steps));
    }
    "done"
}

/// Says so when a call is dropped, which is how handlers are cancelled.
struct Waiting(bool);

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.0 {
            complain("cancelled");
        }
    }
}

async fn wait(_: RequestContext, _: NoArguments) -> &'static str {
    let mut waiting = Waiting(true);
    sleep(Duration::from_secs(60)).await;
    waiting.0 = false;
    "waited"
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
    Ok(match ctx.elicit("person", "Who are you?").await? {
        Elicited::Accepted(Person { name, age }) => format!("accepted {name} {age}"),
        Elicited::Declined => "declined".to_owned(),
        Elicited::Cancelled => "cancelled".to_owned(),
    })
}

async fn sample(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let question = CreateMessageRequestParams::new(vec![SamplingMessage::user("Say something.")], 100);
    let answer = ctx.sample("said", question).await?;
    Ok(answer.content.as_slice().iter().filter_map(|content| content.as_text()).collect())
}

async fn roots(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let roots = ctx.list_roots("roots").await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

async fn log(ctx: RequestContext, _: NoArguments) -> &'static str {
    ctx.log(LoggingLevel::Info, "hello log");
    "logged"
}

async fn touch(ctx: RequestContext, _: NoArguments) -> String {
    let count = touched(&ctx).fetch_add(1, Ordering::Relaxed) + 1;
    ctx.server().publish(&Change::Resource(COUNTER.to_owned()));
    ctx.server().publish(&Change::Tools);
    count.to_string()
}

async fn drop_stream(ctx: RequestContext, _: NoArguments) -> &'static str {
    if let Some(stream) = ctx.extension::<ResponseStream>() {
        stream.close(RETRY);
        sleep(2 * RETRY).await;
    }
    "resumed"
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn complete(_: RequestContext, typed: CompletionInput) -> Vec<String> {
    let known = ["alice", "albert", "bob"];
    known.into_iter().filter(|name| name.starts_with(&typed.value)).map(str::to_owned).collect()
}
