//! Notifications of clients.

use std::sync::Arc;

use mcp_types::Method;
use mcp_types::jsonrpc::PayloadBuf;

use crate::connection::handle::ConnectionHandle;

/// A notification of a client: that it is initialized, that its roots changed, or one that an extension defines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The method.
    pub method: Method,
    /// The parameters; an empty object if there were none.
    pub params: PayloadBuf,
    /// The connection of the client.
    pub connection: ConnectionHandle,
}

pub(crate) type NotificationHandler = Arc<dyn Fn(Notification) + Send + Sync>;
