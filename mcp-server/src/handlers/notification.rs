//! What a client tells without expecting an answer.

use std::sync::Arc;

use mcp_types::Method;
use mcp_types::jsonrpc::PayloadBuf;

use crate::connection::handle::ConnectionHandle;

/// Something that a client tells: that it is ready, that its roots changed, or what an extension defines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// What is told.
    pub method: Method,
    /// The parameters; an empty object where there were none.
    pub params: PayloadBuf,
    /// Who tells it.
    pub connection: ConnectionHandle,
}

pub(crate) type NotificationHandler = Arc<dyn Fn(Notification) + Send + Sync>;
