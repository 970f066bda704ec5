//! A client that starts a server and calls a tool.
use mcp::prelude::*;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program talks to its user")]
async fn main() -> Result<(), mcp::client::Error> {
    let client = Client::connect(ChildTransport::new(ServerCommand::new("target/release/minimal"))).await?;
    for tool in client.tools().all().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let result = client.call_tool("count_words").arguments(&json!({ "text": "to be or not to be" })).await?;
    println!("{}", result.to_text());
    client.close().await;
    Ok(())
}
