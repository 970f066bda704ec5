//! Contains panics of handlers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_types::ErrorObject;
use tracing::Span;
use tracing::instrument::Instrumented;

use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;

/// Turns a panic of a handler into an error response. A panic while the handler is dropped is logged.
pub(crate) struct CatchPanic(Option<Instrumented<ResponseFuture>>);

impl CatchPanic {
    pub(crate) fn new(handler: Instrumented<ResponseFuture>) -> Self {
        Self(Some(handler))
    }

    /// The span of the handler.
    pub(crate) fn span(&self) -> Span {
        self.0.as_ref().map_or_else(Span::none, |handler| handler.span().clone())
    }
}

impl Future for CatchPanic {
    type Output = Result<Response, ErrorObject>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(handler) = &mut self.0 else { return Poll::Pending };
        let mut polled = Poll::Pending;
        // Not returned from the closure, as results are large.
        match catch_unwind(AssertUnwindSafe(|| polled = Pin::new(handler).poll(cx))) {
            Ok(()) => polled,
            Err(_) => Poll::Ready(Err(panicked())),
        }
    }
}

impl Drop for CatchPanic {
    fn drop(&mut self) {
        let handler = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(handler))).is_err() {
            tracing::error!(target: "mcp", "a handler panicked while it was dropped");
        }
    }
}

pub(crate) fn panicked() -> ErrorObject {
    tracing::error!(target: "mcp", "a handler panicked");
    ErrorObject::internal_error("the handler failed")
}
