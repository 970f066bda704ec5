//! Tools whose calls are tasks.

use std::time::Duration;

use mcp_server::types::{CallToolResult, ErrorObject};
use mcp_server::{AskError, HandlerError, NoArguments, Progress, RequestContext, Tool, tool};
use mcp_tasks::TaskSupport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::kit::Counts;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct Name {
    pub(crate) name: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Colour {
    colour: String,
}

/// Waits for ten seconds, and reports progress.
pub(crate) fn slow(support: TaskSupport) -> Tool {
    tool("slow", async |ctx: RequestContext, _: NoArguments| {
        ctx.progress(Progress::new(1).total(2).message("half"));
        ctx.log(mcp_server::types::LoggingLevel::Error, "not for tasks");
        sleep(Duration::from_secs(10)).await;
        "done"
    })
    .task(support)
}

pub(crate) fn hello(support: TaskSupport) -> Tool {
    tool("hello", async |_, _: NoArguments| "hello").task(support)
}

/// Never ends by itself, and counts how often it was dropped.
pub(crate) fn endless(counts: &Counts) -> Tool {
    struct CountDrop(Counts);
    impl Drop for CountDrop {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let counts = counts.clone();
    tool("endless", move |ctx: RequestContext, _: NoArguments| {
        let (counts, guard) = (counts.clone(), CountDrop(counts.clone()));
        async move {
            counts.add("started");
            let (ctx, seen) = (ctx.clone(), counts.clone());
            tokio::spawn(async move {
                ctx.cancelled().await;
                seen.add("seen");
            });
            std::future::pending::<()>().await;
            drop(guard);
            "never"
        }
    })
    .task(TaskSupport::Allowed)
}

/// Fails in the way of tools.
pub(crate) fn broken() -> Tool {
    tool("broken", async |_, _: NoArguments| CallToolResult::error("no paper")).task(TaskSupport::Allowed)
}

/// Fails with an error of the protocol.
pub(crate) fn faulty() -> Tool {
    tool("faulty", async |_, _: NoArguments| Err::<String, _>(ErrorObject::invalid_params("no such file")))
        .task(TaskSupport::Allowed)
}

/// Asks two questions at once, and then one more.
pub(crate) fn curious() -> Tool {
    async fn ask(ctx: RequestContext, _: NoArguments) -> Result<String, HandlerError> {
        let (name, colour) =
            futures_util::future::join(async { ctx.elicit::<Name>("name", "Your name?").await }, async {
                ctx.elicit::<Colour>("colour", "Your colour?").await
            })
            .await;
        let (Name { name }, Colour { colour }) = (name?.accepted()?, colour?.accepted()?);
        let again: Name = ctx.elicit("again", format!("{name}, again?")).await?.accepted()?;
        Ok(format!("{name} {colour} {}", again.name))
    }
    tool("curious", ask).task(TaskSupport::Allowed)
}

/// Takes a step, asks, and takes another one.
pub(crate) fn order(counts: &Counts) -> Tool {
    let counts = counts.clone();
    tool("order", move |ctx: RequestContext, _: NoArguments| {
        let counts = counts.clone();
        async move {
            counts.add("runs");
            let paid: usize = ctx.once("pay", async || Ok::<_, AskError>(counts.add("pay"))).await?;
            let Name { name } = ctx.elicit("name", "Your name?").await?.accepted()?;
            let sent: usize = ctx.once("send", async || Ok::<_, AskError>(counts.add("send"))).await?;
            Ok::<_, HandlerError>(format!("{name}: {paid} {sent}"))
        }
    })
    .task(TaskSupport::Allowed)
}
