//! The client of `rmcp`, as its user would use it.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};

use crate::calls::{Caller, Fault, is_text, text};

/// Clones are the same client.
#[derive(Clone)]
pub(crate) struct Rmcp(Arc<RunningService<RoleClient, ()>>);

impl Rmcp {
    /// Connects to a modern server.
    pub(crate) async fn connect<T, E, A>(transport: T) -> Result<Self, Fault>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        Ok(Self(Arc::new(().serve_with_lifecycle(transport, lifecycle).await?)))
    }
}

impl Caller for Rmcp {
    async fn echo(&self, number: u64) -> Result<bool, Fault> {
        let arguments = JsonObject::from_iter([("text".to_owned(), text(number).into())]);
        let result = self.0.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
        let block = result.content.first().and_then(|block| block.as_text());
        Ok(is_text(block.map(|block| block.text.as_str()), number))
    }
}
