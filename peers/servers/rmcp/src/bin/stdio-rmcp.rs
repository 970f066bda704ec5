//! The server that the documentation of `rmcp` teaches: its macros, its transport, the defaults of all of them.
//!
//! By default, `tool_handler` has the router made anew for each call.

use std::error::Error;

use rmcp::{ServerHandler, ServiceExt as _, tool_handler};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

struct Server;

#[tool_handler]
impl ServerHandler for Server {}

stdio_rmcp::tools!(Server);
