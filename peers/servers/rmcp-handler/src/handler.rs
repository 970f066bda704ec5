//! A handler by hand, without macros: fifty tools that answer with the text that they get.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

pub(crate) struct Server {
    names: BTreeSet<String>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            names: std::iter::once("echo".to_owned()).chain((1..50).map(|index| format!("tool_{index:02}"))).collect(),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(schema());
        let tool = |name: &String| Tool::new(name.clone(), "Returns the text.", schema.clone());
        Ok(ListToolsResult::with_all_items(self.names.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.names.contains(&*request.name) {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let text = request.arguments.as_mut().and_then(|arguments| arguments.remove("text"));
        let Some(serde_json::Value::String(text)) = text else {
            return Err(ErrorData::invalid_params("the text is missing", None));
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// The schema of what every tool takes.
fn schema() -> JsonObject {
    let schema =
        serde_json::json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    serde_json::from_value(schema).unwrap_or_default()
}
