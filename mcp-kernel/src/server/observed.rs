//! Events that only metrics and traces need, if [`ServerConfig::observed`](super::ServerConfig::observed) is set.

use mcp_types::jsonrpc::Payload;
use mcp_types::{ErrorCode, Method, RawObject, RequestId, Revision};

use super::admission::Refusal;
use super::connection::Connection;
use super::event::Event;
use crate::RequestKey;
use crate::handled_message::ArrivedMessage;

impl Connection {
    /// Returns a message that has just arrived, if such messages are reported.
    #[inline]
    pub(super) fn observe<'a>(&self, method: &Method, params: Option<&Payload<'a>>) -> Option<ArrivedMessage<'a>> {
        self.config.observed.then(|| ArrivedMessage::new(method, params.map(Payload::as_str)))
    }

    /// Reports a request, unless the application responds to it or the connection listens because of it.
    #[cold]
    pub(super) fn report_request(
        &mut self,
        arrived: ArrivedMessage<'_>,
        (key, id): (RequestKey, &RequestId),
        is_modern: bool,
        refusal: Option<&Refusal>,
    ) {
        let is_held = self.handshake.as_ref().is_some_and(|handshake| handshake.key == key);
        if self.in_flight.has(key) || is_held {
            return;
        }
        let revision = if is_modern { Some(Revision::LATEST) } else { self.negotiated() };
        let error = refusal.and_then(|refusal| refusal.to_error_object()).map(|error| error.code);
        self.report(arrived, Some(id), revision, error);
    }

    /// Reports a notification.
    pub(super) fn report_notification(&mut self, arrived: Option<ArrivedMessage<'_>>) {
        if let Some(arrived) = arrived {
            self.report(arrived, None, self.negotiated(), None);
        }
    }

    /// Reports an `initialize` that the application has decided about.
    pub(super) fn report_handshake(&mut self, id: &RequestId, params: &RawObject, error: Option<ErrorCode>) {
        if self.config.observed {
            let arrived = ArrivedMessage::new(&Method::INITIALIZE, Some(params.as_str()));
            self.report(arrived, Some(id), self.negotiated(), error);
        }
    }

    fn report(
        &mut self,
        arrived: ArrivedMessage<'_>,
        id: Option<&RequestId>,
        revision: Option<Revision>,
        error: Option<ErrorCode>,
    ) {
        let limits = &self.config.limits;
        let handled = arrived.handled((id, revision), error, (&limits.message, limits.max_meta_bytes));
        self.emit(Event::Handled(Box::new(handled)));
    }

    /// Reports that the number of queued requests may have changed.
    pub(super) fn report_queue(&mut self) {
        if self.config.observed {
            self.emit(Event::QueueLength(self.rare.queued.len()));
        }
    }

    /// Reports a request that was removed from the queue.
    pub(super) fn report_unqueued(&mut self, queued: Event) {
        if let Event::Request { scope, params, .. } = queued
            && self.config.observed
        {
            self.emit(Event::CancelledInQueue { scope, params });
        }
    }
}
