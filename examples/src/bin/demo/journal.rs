//! Two kinds of logs: log notifications for the client, and `tracing` events for the operator.

use mcp::schemars::{self, JsonSchema};
use mcp::server::{RequestContext, Tool, tool};
use mcp::types::LoggingLevel;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
    /// The severity; defaults to `info`
    level: Option<LoggingLevel>,
}

/// Sends a log message.
pub(crate) fn log() -> Tool {
    let run = async |ctx: RequestContext, Message { message, level }| {
        let level = level.unwrap_or(LoggingLevel::Info);
        // Messages below the level that the client has chosen are dropped.
        ctx.log_as("demo", level, &message);
        tracing::info!(level = level.as_str(), text = message, "asked to log");
        format!("logged at level {}", level.as_str())
    };
    tool("log", run).title("Log").description("Sends a log message to the client")
}
