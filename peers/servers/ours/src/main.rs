//! A server with fifty tools, as its author would write it.

use std::io;

use mcp_server::{Server, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What every tool takes.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// What to answer.
    text: String,
}

fn main() -> io::Result<()> {
    let names = std::iter::once("echo".to_owned()).chain((1..50).map(|number| format!("tool_{number:02}")));
    let builder = names.fold(Server::builder("ours", "1.0"), |builder, name| {
        builder.tool(tool(name, async |_, Arguments { text }| text).description("Answers with the text that it gets"))
    });
    let server = builder.build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(mcp_transport_stdio::serve_stdio(server))
}
