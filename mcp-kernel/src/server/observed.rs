//! Events that only metrics and traces need, if [`ServerConfig::observed`](super::ServerConfig::observed) is set.

use mcp_types::jsonrpc::Payload;
use mcp_types::meta::{TraceContext, key};
use mcp_types::{ErrorCode, Method, RawObject, RequestId, Revision};

use super::admission::Refusal;
use super::connection::Connection;
use super::envelope::trace_context;
use super::event::{Event, HandledMessage};
use crate::RequestKey;

/// A message that has just arrived. Most are for the application, so that nothing is copied.
pub(super) struct Observed<'a> {
    method: Method,
    params: Option<&'a str>,
}

impl Connection {
    /// Returns a message that has just arrived, if such messages are reported.
    #[inline]
    pub(super) fn observe<'a>(&self, method: &Method, params: Option<&Payload<'a>>) -> Option<Observed<'a>> {
        self.config.observed.then(|| Observed { method: method.clone(), params: params.map(Payload::as_str) })
    }

    /// Reports a request, unless the application responds to it or the connection listens because of it.
    pub(super) fn report_request(
        &mut self,
        observed: Option<Observed<'_>>,
        (key, id): (RequestKey, &RequestId),
        is_modern: bool,
        refusal: Option<&Refusal>,
    ) {
        let Some(observed) = observed else { return };
        let is_held = self.handshake.as_ref().is_some_and(|handshake| handshake.key == key);
        if self.in_flight.has(key) || is_held {
            return;
        }
        let revision = if is_modern { Some(Revision::LATEST) } else { self.negotiated() };
        let error = refusal.and_then(|refusal| refusal.to_error_object()).map(|error| error.code);
        self.report(observed, Some(id), revision, error);
    }

    /// Reports a notification.
    pub(super) fn report_notification(&mut self, observed: Option<Observed<'_>>) {
        if let Some(observed) = observed {
            self.report(observed, None, self.negotiated(), None);
        }
    }

    /// Reports an `initialize` that the application has decided about.
    pub(super) fn report_handshake(&mut self, id: &RequestId, params: &RawObject, error: Option<ErrorCode>) {
        if self.config.observed {
            let observed = Observed { method: Method::INITIALIZE, params: Some(params.as_str()) };
            self.report(observed, Some(id), self.negotiated(), error);
        }
    }

    fn report(
        &mut self,
        Observed { method, params }: Observed<'_>,
        id: Option<&RequestId>,
        revision: Option<Revision>,
        error: Option<ErrorCode>,
    ) {
        let limits = &self.config.limits;
        let params = params.and_then(|text| Payload::parse(text, &limits.message).ok());
        let trace_context = params.map(|params| read_trace_context(&params, limits.max_meta_bytes)).unwrap_or_default();
        let handled = HandledMessage { method, id: id.cloned(), revision, trace_context, error };
        self.emit(Event::Handled(Box::new(handled)));
    }

    /// Reports that the number of queued requests may have changed.
    pub(super) fn report_queue(&mut self) {
        if self.config.observed {
            self.emit(Event::QueueLength(self.rare.queued.len()));
        }
    }
}

/// The trace context of a message, unless it is longer than `_meta` may be.
fn read_trace_context(params: &Payload<'_>, limit: usize) -> TraceContext {
    let value = |name| params.meta(name).filter(|raw| raw.get().len() <= limit);
    trace_context(value(key::TRACEPARENT), value(key::TRACESTATE), value(key::BAGGAGE))
}
