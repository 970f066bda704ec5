//! Events that only metrics and traces need, if [`ClientConfig::observed`](super::ClientConfig::observed) is set.

use mcp_types::jsonrpc::Payload;
use mcp_types::{ErrorCode, Method, RequestId};

use super::connection::Connection;
use super::event::Event;
use crate::CallId;
use crate::errors::CallError;
use crate::handled_message::ArrivedMessage;

impl Connection {
    /// Returns a message that has just arrived, if such messages are reported.
    pub(super) fn observe<'a>(&self, method: &Method, params: Option<&Payload<'a>>) -> Option<ArrivedMessage<'a>> {
        self.config.observed.then(|| ArrivedMessage::new(method, params.map(Payload::as_str)))
    }

    /// Reports a message that was handled.
    pub(super) fn report(
        &mut self,
        arrived: Option<ArrivedMessage<'_>>,
        id: Option<&RequestId>,
        error: Option<ErrorCode>,
    ) {
        let Some(arrived) = arrived else { return };
        let (limits, revision) = (&self.config.limits, self.revision().ok());
        let handled = arrived.handled((id, revision), error, (&limits.message, limits.max_meta_bytes));
        self.events.push_back(Event::Handled(Box::new(handled)));
    }

    /// Reports the end of the probe or the handshake.
    pub(super) fn report_own_call(&mut self, call: CallId, error: Option<CallError>) {
        if self.config.observed {
            self.events.push_back(Event::OwnCallFinished { call, error });
        }
    }
}
