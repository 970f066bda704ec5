//! A server with fifty tools, as the documentation of `tower-mcp` teaches it.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_mcp::{CallToolResult, HttpTransport, McpRouter, ToolBuilder};

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let others = (1..driven::number_of_tools()).map(|index| format!("tool_{index:02}"));
    let router = std::iter::once("echo".to_owned()).chain(others).fold(
        McpRouter::new().server_info("tower-mcp", "1.0"),
        |router, name| {
            let tool = ToolBuilder::new(name)
                .description("Returns the text.")
                .handler(|Text { text }: Text| async move { Ok(CallToolResult::text(text)) })
                .build();
            router.tool(tool)
        },
    );
    driven::end_with_input(tokio::runtime::Handle::current());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let app = HttpTransport::new(router).disable_origin_validation().disable_host_validation().into_router_at("/mcp");
    axum::serve(listener, app).await?;
    Ok(())
}
