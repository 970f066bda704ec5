//! A server that is there to be mistreated.
//!
//! `stdio-server [--drain MS] [--line-limit BYTES] [--shared-pipe 1]` serves standard input and output until its input ends or it is told to stop.

#![forbid(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_server::types::{CallToolResult, Method, RawObject};
use mcp_server::{
    AskError, BuildError, Change, NoArguments, Progress, RequestContext, Server, ServerBuilder, text_resource, tool,
};
use mcp_transport_stdio::{ServeOptions, serve_stdio_with};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::sleep;

fn main() -> io::Result<()> {
    let options = options(std::env::args().skip(1))?;
    let server = tools(Server::builder("mistreated", "1.0")).build().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve_stdio_with(server, &options)).map(drop)
}

fn options(mut args: impl Iterator<Item = String>) -> io::Result<ServeOptions> {
    let invalid = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "usage: stdio-server [--drain MS] [--line-limit BYTES] [--shared-pipe 1]",
        )
    };
    let mut options = ServeOptions::default();
    while let Some(arg) = args.next() {
        let value: u32 = args.next().and_then(|value| value.parse().ok()).ok_or_else(invalid)?;
        options = match arg.as_str() {
            "--drain" => options.drain_timeout(Duration::from_millis(value.into())),
            "--line-limit" => options.line_limit(usize::try_from(value).map_err(io::Error::other)?),
            "--shared-pipe" => options.shared_pipe(value == 1),
            _ => return Err(invalid()),
        };
    }
    Ok(options)
}

fn tools(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(tool("echo", async |_ctx, args: Echo| args.text))
        .tool(tool("slow", slow))
        .tool(tool("big", async |_ctx, args: Big| "x".repeat(args.bytes)))
        .tool(tool("panic", panic_somewhere))
        .tool(tool("hang", async |_ctx, _: NoArguments| std::future::pending::<String>().await))
        .tool(tool("crunch", crunch))
        .tool(tool("ask", ask))
        .tool(tool("count", async |ctx: RequestContext, _: NoArguments| count(&ctx)))
        .tool(tool("flood", flood))
        .tool(tool("go", async |ctx: RequestContext, _: NoArguments| ctx.state().map_or((), Notify::notify_waiters)))
        .tool(tool("touch", touch))
        .state(Notify::new())
        .resource(text_resource("test:text", "text", "a text"))
        .resource_subscriptions()
        .on_notification(|told| assert_ne!(told.method.as_str(), "notifications/test/panic", "somebody panics"))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
    /// How often to report progress.
    #[serde(default)]
    steps: u32,
}

async fn slow(ctx: RequestContext, Slow { ms, steps }: Slow) -> String {
    let whole = Duration::from_millis(ms);
    for step in 1..=steps {
        sleep(whole / steps).await;
        ctx.progress((step, steps));
    }
    if steps == 0 {
        sleep(whole).await;
    }
    format!("slept for {ms} ms")
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Where {
    /// Before it waits for anything.
    Start,
    /// After it has waited.
    Later,
    /// When it is dropped; until then it hangs.
    Drop,
}

#[derive(Deserialize, JsonSchema)]
struct Panic {
    at: Where,
}

async fn panic_somewhere(_: RequestContext, Panic { at }: Panic) -> String {
    struct Mine;

    impl Drop for Mine {
        fn drop(&mut self) {
            panic!("a handler panics when it is dropped");
        }
    }

    match at {
        Where::Start => panic!("a handler panics at once"),
        Where::Later => {
            sleep(Duration::from_millis(1)).await;
            panic!("a handler panics later");
        }
        Where::Drop => {
            let _mine = Mine;
            std::future::pending::<String>().await
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Crunch {
    rounds: u64,
}

/// Computes on a thread of its own, and stops when nobody waits any more.
async fn crunch(ctx: RequestContext, Crunch { rounds }: Crunch) -> Result<String, tokio::task::JoinError> {
    let numbers = tokio::task::spawn_blocking(move || {
        let next = |number: u64, round| number.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
        (0..rounds).take_while(|_| !ctx.is_cancelled()).fold(1, next)
    });
    numbers.await.map(|number| format!("{number:x}"))
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// How long the client may take, in milliseconds.
    #[serde(default)]
    limit: Option<u64>,
    /// How long to wait before it is asked.
    #[serde(default)]
    after: u64,
}

/// Asks the client for its roots, and says how long that took in vain.
async fn ask(ctx: RequestContext, Ask { limit, after }: Ask) -> Result<String, AskError> {
    if after > 0 {
        sleep(Duration::from_millis(after)).await;
    }
    let Some(limit) = limit else {
        let roots = ctx.list_roots("roots").await?;
        return Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "));
    };
    let asked = tokio::time::Instant::now();
    let answer = ctx.connection().request::<RawObject>(Method::ROOTS_LIST, &RawObject::empty());
    answer
        .timeout(Duration::from_millis(limit))
        .await
        .map(|roots| roots.as_str().to_owned())
        .or_else(|_| Ok(asked.elapsed().as_millis().to_string()))
}

/// Counts the calls of one connection.
fn count(ctx: &RequestContext) -> String {
    let count = ctx.connection().scratch().expect("a lasting connection").get_or_insert_with(|| AtomicU64::new(0));
    (count.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

#[derive(Deserialize, JsonSchema)]
struct Flood {
    messages: u32,
    bytes: usize,
    /// How many messages follow each other without a pause.
    burst: u32,
    /// Whether to wait for `go` before the first.
    #[serde(default)]
    wait: bool,
}

/// Reports more progress than anybody wants to hear of.
async fn flood(ctx: RequestContext, Flood { messages, bytes, burst, wait }: Flood) -> String {
    if wait && let Some(go) = ctx.state::<Notify>() {
        go.notified().await;
    }
    let text = "x".repeat(bytes);
    for number in 1..=messages {
        ctx.progress(Progress::new(number).message(text.clone()));
        if number % burst == 0 {
            tokio::task::yield_now().await;
        }
    }
    format!("reported {messages} times")
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

/// Tells of a change, for those who want to hear of it.
async fn touch(ctx: RequestContext, Touch { uri }: Touch) -> Result<CallToolResult, BuildError> {
    ctx.server().publish(&Change::Resource(uri));
    Ok(CallToolResult::new(Vec::new()))
}
