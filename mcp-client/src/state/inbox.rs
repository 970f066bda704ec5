//! Messages of the server for the handlers of the client.

use std::collections::VecDeque;

use mcp_kernel::client::Responder;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{LoggingMessageNotificationParams, Method, RequestId};

use crate::context::MessageContext;
use crate::session::Restart;
use crate::state::memory_size;

/// A message of the server, or other news, for a handler of the client.
pub(crate) enum Inbound {
    Request { method: Method, params: PayloadBuf, responder: Responder, context: MessageContext },
    Cancelled { id: RequestId },
    Restarted(Restart),
    Log { log: LoggingMessageNotificationParams, context: MessageContext },
    Notification { method: Method, params: PayloadBuf, context: MessageContext },
}

/// The queued messages of the server.
#[derive(Default)]
pub(crate) struct Inbox {
    messages: VecDeque<Inbound>,
    /// The size of the log messages and notifications.
    bytes: usize,
}

/// Maximum number and size of queued log messages and notifications.
const MAX_INBOUND: usize = 1024;
const MAX_INBOUND_BYTES: usize = 4 * 1024 * 1024;

impl Inbox {
    /// Queues a message. The kernel bounds requests; the rest is dropped if the application does not keep up.
    pub(crate) fn push(&mut self, inbound: Inbound) {
        let size = match &inbound {
            Inbound::Request { .. } | Inbound::Cancelled { .. } | Inbound::Restarted(_) => None,
            Inbound::Log { log, .. } => Some(memory_size::of_log(log)),
            Inbound::Notification { method, params, .. } => Some(method.as_str().len() + params.as_str().len()),
        };
        if let Some(size) = size {
            let exceeds_bytes = !self.messages.is_empty() && self.bytes + size > MAX_INBOUND_BYTES;
            if self.messages.len() >= MAX_INBOUND || exceeds_bytes {
                return;
            }
            self.bytes += size;
        }
        self.messages.push_back(inbound);
    }

    /// Takes all messages.
    pub(crate) fn take(&mut self) -> VecDeque<Inbound> {
        std::mem::take(self).messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
