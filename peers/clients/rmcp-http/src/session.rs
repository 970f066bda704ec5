//! One connection under test.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode, ErrorData, ProtocolVersion,
    RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

use crate::host::Host;
use crate::report::{Checked, Fault, Report, expect};
use crate::wire::{Answer, Wire};

/// After this, something that should not come counts as not coming.
pub(crate) const QUIET: Duration = Duration::from_millis(300);

pub(crate) struct Session<'a> {
    pub(crate) report: &'a Report,
    pub(crate) revision: &'static str,
    pub(crate) client: RunningService<RoleClient, Host>,
    pub(crate) host: Host,
    pub(crate) wire: Wire,
}

impl<'a> Session<'a> {
    pub(crate) async fn open(
        report: &'a Report,
        url: &str,
        revision: &'static str,
        lifecycle: ClientLifecycleMode,
        capabilities: Value,
    ) -> Checked<Self> {
        let host = Host::new(version(revision)?, capabilities)?;
        let wire = Wire::default();
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(wire.clone(), config);
        let opening = host.clone().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(Duration::from_secs(10), opening).await??;
        Ok(Self { report, revision, client, host, wire })
    }

    pub(crate) async fn close(self) {
        // What it ended with was checked already.
        let _ = self.client.cancel().await;
    }

    pub(crate) async fn check(&self, name: &str, body: impl Future<Output = Checked>) {
        self.report.check(&format!("{}/{name}", self.revision), body).await;
    }

    /// Calls a tool, and answers what it asks.
    pub(crate) async fn result(&self, tool: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        self.client.call_tool(params(tool, arguments)).await
    }

    /// Calls a tool that succeeds.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Checked<CallToolResult> {
        let result = self.result(tool, arguments).await?;
        expect(result.is_error != Some(true), format!("{tool} failed: {}", text_of(&result)))?;
        Ok(result)
    }

    pub(crate) async fn text(&self, tool: &'static str, arguments: Value) -> Checked<String> {
        Ok(text_of(&self.call(tool, arguments).await?))
    }

    /// Starts a call, with metadata of its own.
    pub(crate) async fn start(
        &self,
        tool: &'static str,
        arguments: Value,
        meta: Option<RequestMetaObject>,
    ) -> Checked<RequestHandle<RoleClient>> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params(tool, arguments)));
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        Ok(self.client.send_cancellable_request(request, options).await?)
    }

    /// Sends a request as it is.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Checked<Result<ServerResult, ServiceError>> {
        let request: ClientRequest = serde_json::from_value(json!({ "method": method, "params": params }))?;
        Ok(self.client.send_request(request).await)
    }

    /// Waits until no slow call is under way, here or on another connection: those that were given up have ended.
    pub(crate) async fn nothing_under_way(&self) -> Checked {
        while !self.text("test_slow", json!({ "seconds": 0 })).await?.ends_with("others under way: 0") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// To be called last.
    pub(crate) async fn check_wire(&self) {
        let posts = self.wire.posts();
        self.check("http/no-session", async {
            let ids: Vec<_> = posts.iter().flat_map(|post| post.sessions.iter().flatten()).collect();
            expect(ids.is_empty(), format!("ids of sessions: {ids:?}"))
        })
        .await;
        self.check("http/versions", async {
            let others = posts.iter().filter(|post| post.method() != Some("initialize"));
            for post in others {
                let version = post.header("mcp-protocol-version");
                expect(version == Some(self.revision), format!("{version:?} with {}", post.message))?;
            }
            Ok(())
        })
        .await;
        self.check("http/media-types", async {
            let named = |name: &str| posts.iter().find(|post| post.message["params"]["name"] == name);
            let answer = |name: &str| named(name).map(|post| post.answer);
            expect(answer("test_simple_text") == Some(Answer::Json), "a plain answer is not JSON")?;
            expect(answer("test_tool_with_progress") == Some(Answer::Events), "progress is not a stream")
        })
        .await;
    }
}

pub(crate) fn version(revision: &str) -> serde_json::Result<ProtocolVersion> {
    serde_json::from_value(json!(revision))
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    params
}

pub(crate) fn text_of(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str());
    texts.collect::<Vec<_>>().join(" ")
}

/// Expects an error response with a code.
pub(crate) fn refused<T>(result: Result<T, ServiceError>, code: i32) -> Checked<ErrorData> {
    match result {
        Ok(_) => Err("the server answered with a result, not with an error".into()),
        Err(ServiceError::McpError(error)) if error.code == ErrorCode(code) => Ok(error),
        Err(other) => Err(Fault::from(format!("expected the code {code}, got {other}"))),
    }
}
