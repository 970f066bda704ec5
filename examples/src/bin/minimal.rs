//! A server with one tool.
use mcp::prelude::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let count = tool("count_words", async |_, Text { text }| text.split_whitespace().count().to_string());
    let server = Server::builder("words", "1.0").tool(count.description("Counts the words of a text")).build()?;
    mcp::stdio::serve_stdio(server).await
}
