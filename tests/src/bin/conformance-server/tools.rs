//! Tools that take their time, say something meanwhile, or need something.

use std::time::Duration;

use mcp_server::types::LoggingLevel;
use mcp_server::{AskError, ClientCapability, NoArguments, RequestContext, ServerBuilder, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

/// Clients lose notifications that they read together with the result.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a slow tool reports progress.
const STEP: Duration = Duration::from_millis(100);

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(tool("test_tool_with_logging", with_logging).description("Logs three messages"))
        .tool(tool("test_logging_tool", with_logging).description("Logs, but only for clients that want it"))
        .tool(tool("test_tool_with_progress", with_progress).description("Reports progress three times"))
        .tool(tool("test_slow", slow).description("Takes as long as it is told, and can be cancelled"))
        .tool(tool("test_reconnection", reconnection).description("Takes so long that a stream can break meanwhile"))
        .tool(
            tool("test_custom_header", async |_, CustomHeader { value }| format!("Received: {value}"))
                .description("Has an argument that clients repeat in an HTTP header"),
        )
        .tool(tool("test_missing_capability", missing_capability).description("Needs a client with sampling"))
}

async fn with_logging(ctx: RequestContext, _: NoArguments) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        ctx.log(LoggingLevel::Info, message);
        sleep(PAUSE).await;
    }
    "Logged three messages."
}

async fn with_progress(ctx: RequestContext, _: NoArguments) -> &'static str {
    for progress in [0, 50, 100] {
        ctx.progress((progress, 100));
        sleep(PAUSE).await;
    }
    "Reported progress three times."
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How long it takes.
    #[schemars(range(min = 0))]
    seconds: f64,
}

async fn slow(ctx: RequestContext, Slow { seconds }: Slow) -> Result<String, String> {
    let total = Duration::try_from_secs_f64(seconds).map_err(|fault| format!("seconds: {fault}"))?;
    let mut elapsed = Duration::ZERO;
    while elapsed < total {
        let step = STEP.min(total - elapsed);
        sleep(step).await;
        elapsed += step;
        ctx.progress((elapsed.as_secs_f64(), total.as_secs_f64()));
    }
    Ok(format!("Slept for {seconds} s."))
}

async fn reconnection(_: RequestContext, _: NoArguments) -> &'static str {
    sleep(STEP).await;
    "Reconnection test completed."
}

#[derive(Deserialize, JsonSchema)]
struct CustomHeader {
    /// What to answer.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

async fn missing_capability(ctx: RequestContext, _: NoArguments) -> Result<&'static str, AskError> {
    ctx.require(ClientCapability::Sampling)?;
    Ok("The client has sampling.")
}
