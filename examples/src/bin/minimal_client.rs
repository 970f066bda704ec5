//! A client that starts a server and calls a tool.
use mcp_client::{Client, Error};
use mcp_transport_stdio::{ChildTransport, Spawn}; // or mcp_transport_http::HttpTransport

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program talks to its user")]
async fn main() -> Result<(), Error> {
    let client = Client::connect(ChildTransport::new(Spawn::new("target/release/minimal"))).await?;
    for tool in client.tools().all().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let result = client.call_tool("count_words", &serde_json::json!({ "text": "to be or not to be" })).await?;
    println!("{}", result.content[0].as_text().unwrap_or_default());
    client.close().await;
    Ok(())
}
