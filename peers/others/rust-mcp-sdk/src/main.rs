//! A server with fifty tools, as the documentation of `rust-mcp-sdk` teaches it, with plain JSON.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::net::TcpListener;
use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_axum::{AxumServerOptions, create_axum_server};
use rust_mcp_sdk::mcp_server::ServerHandler;
use rust_mcp_sdk::schema::schema_utils::CallToolError;
use rust_mcp_sdk::schema::{
    CallToolRequestParams, CallToolResult, ContentBlock, Implementation, ListToolsResult, ListToolsResultCacheScope,
    PaginatedRequestParams, RpcError, ServerCapabilities, ServerCapabilitiesTools, ServerResult, TextContent, Tool,
};
use rust_mcp_sdk::{McpServer, RequestContext, ServerDetails, ToMcpServerHandler};

struct Handler {
    tools: Vec<Tool>,
}

#[async_trait]
impl ServerHandler for Handler {
    async fn handle_list_tools_request(
        &self,
        _: Option<PaginatedRequestParams>,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            tools: self.tools.clone(),
            meta: None,
            next_cursor: None,
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".to_owned(),
            ttl_ms: 0,
        })
    }

    async fn handle_call_tool_request(
        &self,
        mut params: CallToolRequestParams,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        if !self.tools.iter().any(|tool| tool.name == params.name) {
            return Err(CallToolError::unknown_tool(params.name));
        }
        let text = params.arguments.as_mut().and_then(|arguments| arguments.remove("text"));
        let text = text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
        let content: ContentBlock = TextContent::new(text, None, None).into();
        Ok(ServerResult::CallToolResult(CallToolResult {
            content: vec![content],
            is_error: None,
            meta: None,
            result_type: "complete".to_owned(),
            structured_content: None,
        }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let others = (1..driven::number_of_tools()).map(|index| format!("tool_{index:02}"));
    let tool = |name| {
        serde_json::from_value(serde_json::json!({
            "name": name,
            "description": "Returns the text.",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
        }))
    };
    let tools = std::iter::once("echo".to_owned()).chain(others).map(tool).collect::<Result<Vec<Tool>, _>>()?;
    let details = ServerDetails {
        server_info: Implementation {
            name: "rust-mcp-sdk".into(),
            version: "1.0".into(),
            title: None,
            description: None,
            icons: Vec::new(),
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..Default::default()
        },
        instructions: None,
        meta: None,
    };
    driven::end_with_input(tokio::runtime::Handle::current());
    // It takes a port, and does not tell which one it got.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let options = AxumServerOptions {
        host: "127.0.0.1".to_owned(),
        port,
        enable_json_response: Some(true),
        ..Default::default()
    };
    let server = create_axum_server(details, Handler { tools }.to_mcp_server_handler(), options);
    let server = tokio::spawn(async move { server.start().await });
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::task::yield_now().await;
    }
    println!("http://127.0.0.1:{port}/mcp");
    server.await??;
    Ok(())
}
