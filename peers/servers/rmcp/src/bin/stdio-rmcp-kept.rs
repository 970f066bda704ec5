//! The macros of `rmcp` with a router that is kept, which takes a field and an option of `tool_handler`.

use std::error::Error;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::{ServerHandler, ServiceExt as _, tool_handler};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server { tool_router: Server::tool_router() };
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {}

stdio_rmcp::tools!(Server);
