//! The queue of one stream of a session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcp_kernel::server::{Route, Transmit};
use mcp_kernel::{RequestKey, Time};
use mcp_types::RequestId;
use mcp_types::jsonrpc::EncodedMessage;

use super::readers::{ReaderTarget, Readers};
use crate::server::admission::Permit;

/// One stream: the response to a request with its related messages, or the standalone stream.
#[derive(Default)]
pub(crate) struct Stream {
    /// The next message that the reader has not taken yet; most streams never have more than one.
    pub(super) next: Option<Transmit>,
    /// The messages after the next one.
    pub(super) others: VecDeque<Transmit>,
    pub(crate) bytes: usize,
    /// The number of the last event.
    pub(crate) number: u64,
    /// The request of the stream, until its response is queued.
    pub(crate) request: Option<RequestKey>,
    /// The id of that request, if its response has to wait for the session record.
    pub(crate) id: Option<RequestId>,
    /// The number of its reader. A later reader replaces an earlier one.
    pub(crate) reader: Option<u64>,
    /// Whether the client has an event id of the stream, and can resume it.
    pub(crate) is_known: bool,
    /// When its request is cancelled if there is no reader.
    pub(crate) expires_at: Option<Time>,
    /// Whether the kernel holds messages back because the reader is slow.
    pub(crate) is_blocked: bool,
    /// Whether its request was cancelled, so that the reader only has to end the response.
    pub(crate) is_cancelled: bool,
    /// The handler's part of the stream, if the client can resume it.
    pub(crate) handler_stream: Option<Arc<ResponseStream>>,
    /// The permit of the request.
    pub(crate) permit: Option<Permit>,
}

impl Stream {
    pub(crate) fn push(&mut self, transmit: Transmit) {
        self.bytes += transmit.message.len();
        if self.next.is_none() {
            self.next = Some(transmit);
        } else {
            self.others.push_back(transmit);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Transmit> {
        let transmit = self.next.take()?;
        self.bytes -= transmit.message.len();
        if self.others.capacity() > 0 {
            self.next = self.others.pop_front();
            if self.others.is_empty() {
                self.others = VecDeque::new();
            }
        }
        Some(transmit)
    }

    /// Whether no message is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    fn len(&self) -> usize {
        usize::from(self.next.is_some()) + self.others.len()
    }

    /// Marks the request as cancelled, and drops the queue.
    pub(crate) fn cancel(&mut self) {
        (self.next, self.others) = (None, VecDeque::new());
        self.bytes = 0;
        self.request = None;
        self.is_cancelled = true;
    }

    /// Whether the next message is the response.
    pub(crate) fn is_response_next(&self) -> bool {
        matches!(self.next.as_ref().map(|next| next.route), Some(Route::Reply(_)))
    }

    /// Replaces the response, which is the next message.
    pub(crate) fn replace_response(&mut self, message: EncodedMessage) {
        if let Some(response) = &mut self.next {
            self.bytes = self.bytes - response.message.len() + message.len();
            response.message = message;
        }
    }

    /// Whether the response is queued for a reader.
    pub(crate) fn has_response(&self) -> bool {
        self.reader.is_some()
            && matches!(self.others.back().or(self.next.as_ref()).map(|last| last.route), Some(Route::Reply(_)))
    }

    /// Whether the queue is full.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= MAX_QUEUED_MESSAGES || self.bytes >= MAX_QUEUED_BYTES
    }

    /// Whether the queue has drained enough to accept messages again.
    pub(crate) fn has_room(&self) -> bool {
        self.len() <= MAX_QUEUED_MESSAGES / 2 && self.bytes <= MAX_QUEUED_BYTES / 2
    }
}

/// The maximum number of messages that are queued for a slow reader. The kernel holds the rest, within its own limits.
const MAX_QUEUED_MESSAGES: usize = 64;

/// The maximum size of the queue in bytes.
const MAX_QUEUED_BYTES: usize = 256 << 10;

/// The response stream of a request in a session. Handlers get it with `ctx.extension::<ResponseStream>()`, if the client
/// can resume the stream: with 2025-11-25, sessions and [`HttpOptions::resumable`](crate::HttpOptions::resumable).
///
/// ```
/// use std::time::Duration;
///
/// use mcp_server::{NoArguments, RequestContext, tool};
/// use mcp_transport_http::ResponseStream;
///
/// let slow = tool("slow", async |ctx: RequestContext, _: NoArguments| {
///     if let Some(stream) = ctx.extension::<ResponseStream>() {
///         // This takes an hour, so the client should not hold a connection for it.
///         stream.close(Duration::from_secs(60));
///     }
///     "done"
/// });
/// ```
pub struct ResponseStream {
    readers: Arc<Readers>,
    request: OnceLock<RequestKey>,
    /// The delay after which the client should reconnect, if the handler closed the stream.
    retry: Mutex<Option<Duration>>,
}

impl ResponseStream {
    /// The maximum `retry` delay: one day.
    pub const MAX_RETRY: Duration = Duration::from_secs(24 * 3600);

    /// Closes the response stream while the request continues. The client reconnects after about `retry` and receives the
    /// missed events.
    ///
    /// If the client has not reconnected after `retry` and
    /// [`HttpOptions::orphaned_request_timeout`](crate::HttpOptions::orphaned_request_timeout) together, the handler is
    /// dropped. `retry` is capped at [`MAX_RETRY`](Self::MAX_RETRY). It should be shorter than the event store keeps events:
    /// half an hour by default for [`MemoryEventStore`](crate::session::MemoryEventStore).
    pub fn close(&self, retry: Duration) {
        self.set_retry(retry.min(Self::MAX_RETRY));
        if let Some(request) = self.request.get() {
            self.readers.wake_reader(ReaderTarget::Request(*request));
        }
    }

    pub(crate) fn new(readers: Arc<Readers>) -> Self {
        Self { readers, request: OnceLock::new(), retry: Mutex::default() }
    }

    /// Sets the request that it belongs to.
    pub(crate) fn belongs_to(&self, request: RequestKey) {
        let _ = self.request.set(request);
    }

    /// Takes the delay after which the client should reconnect, if the handler closed the stream.
    pub(crate) fn take_retry(&self) -> Option<Duration> {
        self.retry.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set_retry(&self, retry: Duration) {
        *self.retry.lock().unwrap_or_else(PoisonError::into_inner) = Some(retry);
    }
}

impl std::fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}
