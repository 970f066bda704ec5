//! A server with one tool, at http://127.0.0.1:8000/mcp.
use mcp::prelude::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let count = tool("count_words", async |_, Text { text }| text.split_whitespace().count().to_string());
    let server = Server::builder("words", "1.0").tool(count.description("Counts the words of a text")).build()?;
    mcp::http::serve(server, "127.0.0.1:8000").await
}
