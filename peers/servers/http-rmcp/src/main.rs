//! The fastest server over HTTP that we could write with `rmcp`.
//!
//! A handler by hand that is shared by all requests, since one is made for each; no sessions, plain JSON where it
//! can be, no keep-alive, no check of the host; hyper without a framework around it, on one thread.
//!
//! With `--sessions` it has those that `rmcp` has by default, without keep-alive and events that only begin a stream.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Arc::new(Server::new(driven::number_of_tools()));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(driven::has_sessions())
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .with_sse_retry(None)
        .disable_allowed_hosts();
    let factory = move || Ok(Arc::clone(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    driven::end_with_input(runtime.handle().clone());
    if driven::has_sessions() {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = None;
        sessions.session_config.sse_retry = None;
        runtime.block_on(serve(StreamableHttpService::new(factory, Arc::new(sessions), config)))
    } else {
        let sessions = Arc::new(NeverSessionManager::default());
        runtime.block_on(serve(StreamableHttpService::new(factory, sessions, config)))
    }
}

#[expect(clippy::print_stdout, reason = "the driver reads the address from here")]
async fn serve<M: SessionManager>(service: StreamableHttpService<Arc<Server>, M>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        // Whoever hangs up in the middle does not bother the others.
        tokio::spawn(async { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await });
    }
}

struct Server {
    names: BTreeSet<String>,
    listeners: Mutex<Vec<SubscriptionSink>>,
    /// The sessions, which it would otherwise not know.
    sessions: Mutex<Vec<Peer<RoleServer>>>,
}

impl Server {
    fn new(number: usize) -> Self {
        let others = (1..=number.saturating_sub(3)).map(|index| format!("tool_{index:02}"));
        Self {
            names: ["echo", "progress", "change"].map(str::to_owned).into_iter().chain(others).collect(),
            listeners: Mutex::default(),
            sessions: Mutex::default(),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
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
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.names.contains(&*request.name) {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        if request.name == "progress"
            && let Some(token) = context.meta.get_progress_token()
        {
            for progress in 1..=3 {
                let params =
                    ProgressNotificationParam::new(token.clone(), f64::from(progress)).with_total(f64::from(3));
                // Whoever hung up does not want to know.
                let _ = context.peer.notify_progress(params).await;
            }
        }
        if request.name == "change" {
            // This takes less time than telling the tasks of all listeners to do it.
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for listener in listeners {
                // Whoever hung up does not want to know.
                let _ = listener.notify_tool_list_changed().await;
            }
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for session in sessions {
                let _ = session.notify_tool_list_changed().await;
            }
        }
        let text = request.arguments.as_mut().and_then(|arguments| arguments.remove("text"));
        let Some(serde_json::Value::String(text)) = text else {
            return Err(ErrorData::invalid_params("the text is missing", None));
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let listeners = || self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners().push(context.sink().clone());
        context.cancelled().await;
        listeners().retain(|listener| listener.id() != context.sink().id());
        Ok(())
    }
}

/// The schema of what every tool takes.
fn schema() -> JsonObject {
    let schema =
        serde_json::json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    serde_json::from_value(schema).unwrap_or_default()
}
