//! One request and its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::client::CallResult;
use mcp_kernel::{CallError, CallId, CallOptions};
use mcp_types::{Method, ObjectRef, ProgressNotificationParams, Revision};
use tracing::Span;

use crate::call::headers::HeadersOf;
use crate::call::telemetry;
use crate::close_reason::CloseReason;
use crate::context::CallContext;
use crate::error::Error;
use crate::state::pauses::Timeout;
use crate::state::waiters::Waiter;
use crate::state::{CallStart, Phase, Shared};
use crate::transport::{CredentialFingerprint, TransportKind};

/// A request that resolves to its response. Dropping it cancels the call.
///
/// If there is no connection, or too many calls are in flight, it waits for up to the timeout of the call.
pub(crate) struct Exchange<'a> {
    shared: &'a Arc<Shared>,
    method: &'a Method,
    params: ObjectRef<'a>,
    options: CallOptions,
    context: &'a CallContext,
    headers_of: HeadersOf,
    call: Option<(CallId, Revision)>,
    /// Limits how long the request waits to be sent.
    send_timeout: Option<Timeout>,
    waiter: Option<Waiter>,
    on_progress: Option<&'a mut (dyn FnMut(ProgressNotificationParams) + Send)>,
    /// The span of the call, on which the id and the revision are recorded.
    span: Option<&'a Span>,
}

/// The response, and the credentials of the request, if they may change.
pub(crate) struct Response {
    pub(crate) outcome: CallResult,
    pub(crate) sent_with: Option<CredentialFingerprint>,
}

/// The error of an exchange.
pub(crate) enum Failure {
    /// The call was sent in this revision, and failed; `reason` is why the connection or stream broke, if it did.
    Call { error: CallError, revision: Revision, reason: Option<String> },
    /// The call was not sent, or the client was closed.
    Local(Error),
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        method: &'a Method,
        params: ObjectRef<'a>,
        options: CallOptions,
        context: &'a CallContext,
        headers_of: HeadersOf,
        on_progress: Option<&'a mut (dyn FnMut(ProgressNotificationParams) + Send)>,
    ) -> Self {
        let (call, send_timeout, waiter, span) = (None, None, None, None);
        Self { shared, method, params, options, context, headers_of, call, send_timeout, waiter, on_progress, span }
    }

    /// Sets the span of the call.
    pub(crate) fn span(mut self, span: &'a Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sends the request, or waits until it can be sent; ready if that fails.
    fn start(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let (shared, method, params, options) = (self.shared, self.method, self.params, self.options);
        let (context, waiter) = (self.context, &mut self.waiter);
        let headers_of = (shared.settings.kind == TransportKind::RequestPerCall).then(|| self.headers_of.take());
        let started = shared.with(|core, now| {
            let started = core.start_call(now, method, params, options, headers_of, context);
            match &started {
                CallStart::Call(call, _) => {
                    if let Some(pending) = core.pending_calls.get_mut(call) {
                        pending.waker = Some(cx.waker().clone());
                    }
                }
                CallStart::Wait => {
                    let waiter = waiter.get_or_insert_with(|| Waiter::new(shared, |core| &mut core.ready_waiters));
                    waiter.wait(core, cx.waker());
                }
                CallStart::Failed(_) | CallStart::Closed(_) => {}
            }
            started
        });
        match started {
            CallStart::Call(call, revision) => {
                (self.send_timeout, self.waiter) = (None, None);
                if let Some(span) = self.span {
                    telemetry::sent(span, self.shared, call, revision);
                }
                self.call = Some((call, revision));
                Poll::Pending
            }
            CallStart::Failed(error) => Poll::Ready(Failure::Local(error.into())),
            CallStart::Closed(closed) => Poll::Ready(Failure::Local(closed.into())),
            CallStart::Wait => {
                let limit = self.options.idle_timeout.into_iter().chain(self.options.total_timeout).min();
                if self.send_timeout.is_none() {
                    self.send_timeout = limit.map(|limit| Timeout::new(self.shared, limit));
                }
                match &mut self.send_timeout {
                    Some(timeout) => match Pin::new(timeout).poll(cx) {
                        Poll::Ready(()) => Poll::Ready(Failure::Local(Error::TimedOut)),
                        Poll::Pending => Poll::Pending,
                    },
                    None => Poll::Pending,
                }
            }
        }
    }
}

impl Future for Exchange<'_> {
    type Output = Result<Response, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((call, revision)) = self.call else { return self.start(cx).map(Err) };
        let (progress, outcome, reason, sent_with, local) = self.shared.with(|core, _| {
            let closed = match &core.phase {
                Phase::Closed(closed) => Some(Error::Closed(closed.clone())),
                Phase::Closing => Some(Error::Closed(CloseReason::ByClient)),
                Phase::Connecting | Phase::Ready(_) => None,
            };
            let Some(pending) = core.pending_calls.get_mut(&call) else {
                return (
                    Default::default(),
                    Some(Err(CallError::Disconnected)),
                    core.disconnect_reason.clone(),
                    None,
                    closed,
                );
            };
            let progress = pending.take_progress();
            let (outcome, mut reason) = (pending.outcome.take(), pending.stream_error.take());
            let sent_with = pending.sent_with;
            let send_error = pending.send_error.take().map(|error| *error);
            if let Some(outcome) = &outcome {
                reason = reason
                    .or_else(|| core.disconnect_reason.clone())
                    .filter(|_| *outcome == Err(CallError::Disconnected));
                core.pending_calls.remove(&call);
            } else {
                pending.waker = Some(cx.waker().clone());
            }
            (progress, outcome, reason, sent_with, send_error.or(closed))
        });
        if let Some(handler) = &mut self.on_progress {
            progress.into_iter().for_each(handler);
        }
        let Some(outcome) = outcome else { return Poll::Pending };
        self.call = None;
        let response = outcome.map(|outcome| Response { outcome, sent_with });
        Poll::Ready(response.map_err(|error| match (error, local) {
            (CallError::Disconnected, Some(error)) => Failure::Local(error),
            (error, _) => Failure::Call { error, revision, reason },
        }))
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if let Some((call, _)) = self.call {
            self.shared.with(|core, _| core.cancel_call(call));
        }
    }
}
