//! Two kinds of logs: messages to the client, and what the operator of the server sees.

use mcp_server::types::LoggingLevel;
use mcp_server::{RequestContext, Tool, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
    /// How severe it is; `info` if absent
    level: Option<LoggingLevel>,
}

/// Sends a log message.
pub(crate) fn log() -> Tool {
    let run = async |ctx: RequestContext, Message { message, level }| {
        let level = level.unwrap_or(LoggingLevel::Info);
        // Clients say from which level on they want to hear; the rest is dropped.
        ctx.log_as("demo", level, &message);
        tracing::info!(level = level.as_str(), text = message, "asked to log");
        format!("logged at level {}", level.as_str())
    };
    tool("log", run).title("Log").description("Sends a log message to the client, to see what becomes of it there")
}
