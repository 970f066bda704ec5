//! A server with fifty tools, as the documentation of `turbomcp` teaches it, without macros, which would fix their number.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use turbomcp::{
    McpError, McpHandler, McpResult, McpServerExt, Prompt, PromptResult, RequestContext, Resource, ResourceResult,
    ServerConfig, ServerInfo, Tool, ToolResult,
};

#[derive(Clone)]
struct Handler {
    tools: Arc<[Tool]>,
}

impl McpHandler for Handler {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("turbomcp", "1.0")
    }

    fn list_tools(&self) -> Vec<Tool> {
        self.tools.to_vec()
    }

    fn list_resources(&self) -> Vec<Resource> {
        Vec::new()
    }

    fn list_prompts(&self) -> Vec<Prompt> {
        Vec::new()
    }

    async fn call_tool(&self, name: &str, arguments: Value, context: &RequestContext) -> McpResult<ToolResult> {
        if !self.tools.iter().any(|tool| tool.name == name) {
            return Err(McpError::tool_not_found(name));
        }
        if name == "progress" {
            for done in 1..=3 {
                context.report_progress(f64::from(done), Some(3.0), None).await?;
            }
        }
        Ok(ToolResult::text(arguments["text"].as_str().unwrap_or_default()))
    }

    async fn read_resource(&self, uri: &str, _: &RequestContext) -> McpResult<ResourceResult> {
        Err(McpError::resource_not_found(uri))
    }

    async fn get_prompt(&self, name: &str, _: Option<Value>, _: &RequestContext) -> McpResult<PromptResult> {
        Err(McpError::prompt_not_found(name))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let others = (1..driven::number_of_tools().saturating_sub(1)).map(|index| format!("tool_{index:02}"));
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let tools = ["echo", "progress"]
        .map(str::to_owned)
        .into_iter()
        .chain(others)
        .map(|name| Ok(Tool::new(name, "Returns the text.").with_schema(serde_json::from_value(schema.clone())?)));
    let handler = Handler { tools: tools.collect::<Result<_, serde_json::Error>>()? };
    driven::end_with_input(tokio::runtime::Handle::current());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let config = ServerConfig::builder().allow_any_origin(true).max_http_sessions(usize::MAX).build();
    axum::serve(listener, handler.builder().with_config(config).into_axum_router()).await?;
    Ok(())
}
