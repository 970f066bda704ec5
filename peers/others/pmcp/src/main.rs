//! A server with fifty tools, as the documentation of `pmcp` teaches it.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use pmcp::axum::{AllowedOrigins, RouterConfig, concurrent_router_with_config};
use pmcp::server::ToolOutput;
use pmcp::server::streamable_http_server::StreamableHttpServerConfig;
use pmcp::types::capabilities::ServerCapabilities;
use pmcp::types::protocol::{LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28, ProtocolVersion};
use pmcp::types::{CallToolResult, Content, ToolInfo};
use pmcp::{RequestHandlerExtra, Server, ToolHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Echo {
    name: String,
}

#[async_trait]
impl ToolHandler for Echo {
    async fn handle(&self, arguments: Value, _: RequestHandlerExtra) -> pmcp::Result<Value> {
        Ok(arguments["text"].clone())
    }

    fn metadata(&self) -> Option<ToolInfo> {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        Some(ToolInfo::new(self.name.clone(), Some("Returns the text.".to_owned()), schema))
    }

    /// A value is sent as its JSON text, with quotes around a string, so the result is made here.
    async fn handle_output(&self, arguments: Value, extra: RequestHandlerExtra) -> pmcp::Result<ToolOutput> {
        let text = self.handle(arguments, extra).await?.as_str().unwrap_or_default().to_owned();
        Ok(ToolOutput::Result(CallToolResult::new(vec![Content::text(text)])))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let versions =
        [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28].map(|version| ProtocolVersion(version.to_owned()));
    let builder = Server::builder()
        .name("pmcp")
        .version("1.0")
        .capabilities(ServerCapabilities::tools_only())
        .with_supported_protocol_versions(versions);
    let others = (1..driven::number_of_tools()).map(|index| format!("tool_{index:02}"));
    let server = std::iter::once("echo".to_owned())
        .chain(others)
        .fold(builder, |builder, name| builder.tool(name.clone(), Echo { name }))
        .build()?;
    let server_config = if driven::has_sessions() {
        StreamableHttpServerConfig::default()
    } else {
        StreamableHttpServerConfig::stateless()
    };
    let config = RouterConfig { allowed_origins: Some(AllowedOrigins::any()), server_config, ..Default::default() };
    driven::end_with_input(tokio::runtime::Handle::current());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let app = Router::new().nest("/mcp", concurrent_router_with_config(Arc::new(server), config));
    axum::serve(listener, app).await?;
    Ok(())
}
