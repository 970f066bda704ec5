//! The tools that ours has over any transport.

use mcp_server::{ServerBuilder, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What every tool takes.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// What to answer.
    pub(crate) text: String,
}

/// Adds `echo` and others like it, so many together.
pub(crate) fn echoes(builder: ServerBuilder, number: usize) -> ServerBuilder {
    let names = std::iter::once("echo".to_owned()).chain((1..number).map(|number| format!("tool_{number:02}")));
    names.fold(builder, |builder, name| {
        builder.tool(tool(name, async |_, Arguments { text }| text).description("Answers with the text that it gets"))
    })
}
