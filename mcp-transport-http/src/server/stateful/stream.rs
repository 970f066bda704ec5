//! What is said on one stream of a session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcp_kernel::{RequestKey, Route, Time, Transmit};
use mcp_types::RequestId;
use mcp_types::jsonrpc::EncodedMessage;

use super::readers::{ReaderTarget, Readers};
use crate::server::admission::Permit;

/// One stream: the answer to a request with all that belongs to it, or what belongs to the session as a whole.
#[derive(Default)]
pub(crate) struct Stream {
    /// What the reader has not taken yet.
    pub(crate) queue: VecDeque<Transmit>,
    pub(crate) bytes: usize,
    /// The number of the last event.
    pub(crate) number: u64,
    /// The request that it is about, until that is answered.
    pub(crate) request: Option<RequestKey>,
    /// The id of that request, if its answer has to wait until what it settled is kept.
    pub(crate) id: Option<RequestId>,
    /// Who reads it, if anybody: a later reader takes the place of an earlier one.
    pub(crate) reader: Option<u64>,
    /// Whether the client knows the stream, and could come back for it.
    pub(crate) is_known: bool,
    /// When its request is given up, if nobody reads it.
    pub(crate) expires_at: Option<Time>,
    /// Whether the kernel keeps messages back because the reader does not read.
    pub(crate) is_blocked: bool,
    /// Whether its request was cancelled, so that its reader has but to end it.
    pub(crate) is_cancelled: bool,
    pub(crate) close_request: Arc<CloseRequest>,
    /// The room that the request takes, whether anybody reads its answer or not.
    pub(crate) permit: Option<Permit>,
}

impl Stream {
    pub(crate) fn push(&mut self, transmit: Transmit) {
        self.bytes += transmit.message.len();
        self.queue.push_back(transmit);
    }

    pub(crate) fn pop(&mut self) -> Option<Transmit> {
        let transmit = self.queue.pop_front()?;
        self.bytes -= transmit.message.len();
        Some(transmit)
    }

    /// Notes that its request was cancelled: nothing more is said.
    pub(crate) fn cancel(&mut self) {
        self.queue = VecDeque::new();
        self.bytes = 0;
        self.request = None;
        self.is_cancelled = true;
    }

    /// Whether the next message is the answer.
    pub(crate) fn is_answer_next(&self) -> bool {
        matches!(self.queue.front().map(|next| next.route), Some(Route::Reply(_)))
    }

    /// Says something else instead of the answer, which is the next message.
    pub(crate) fn replace_answer(&mut self, message: EncodedMessage) {
        if let Some(answer) = self.queue.front_mut() {
            self.bytes = self.bytes - answer.message.len() + message.len();
            answer.message = message;
        }
    }

    /// Whether its reader has but to read to the end.
    pub(crate) fn is_answered(&self) -> bool {
        self.reader.is_some() && matches!(self.queue.back().map(|last| last.route), Some(Route::Reply(_)))
    }

    /// Whether more is queued than a reader that reads would leave there.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= MOST_MESSAGES || self.bytes >= MOST_BYTES
    }

    /// Whether so little is queued that there may be more.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() <= MOST_MESSAGES / 2 && self.bytes <= MOST_BYTES / 2
    }
}

/// How many messages a stream holds for a slow reader; the kernel holds the rest, and drops what it may.
const MOST_MESSAGES: usize = 64;

/// How many bytes.
const MOST_BYTES: usize = 256 << 10;

/// What a handler wants to happen to its stream.
#[derive(Default)]
pub(crate) struct CloseRequest {
    request: OnceLock<RequestKey>,
    retry: Mutex<Option<Duration>>,
}

impl CloseRequest {
    /// Notes whose wish it is.
    pub(crate) fn belongs_to(&self, request: RequestKey) {
        let _ = self.request.set(request);
    }

    /// When the client is asked to come back, if the handler lets it go.
    pub(crate) fn take(&self) -> Option<Duration> {
        self.retry.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set(&self, retry: Duration) {
        *self.retry.lock().unwrap_or_else(PoisonError::into_inner) = Some(retry);
    }
}

/// The stream on which a request of a session is answered, for its handler: in `ctx.extension::<ResponseStream>()`,
/// where the client can come back for what it missed (2025-11-25 and sessions with events).
///
/// ```
/// use std::time::Duration;
///
/// use mcp_server::{NoArguments, RequestContext, tool};
/// use mcp_transport_http::ResponseStream;
///
/// let slow = tool("slow", async |ctx: RequestContext, _: NoArguments| {
///     if let Some(stream) = ctx.extension::<ResponseStream>() {
///         // This takes an hour, so nobody should have to hold a connection for it.
///         stream.close(Duration::from_secs(60));
///     }
///     "done"
/// });
/// ```
#[derive(Clone)]
pub struct ResponseStream {
    pub(crate) close_request: Arc<CloseRequest>,
    pub(crate) readers: Arc<Readers>,
}

impl ResponseStream {
    /// The maximum time after which a client is asked to come back: a day.
    pub const MAX_RETRY: Duration = Duration::from_secs(24 * 3600);

    /// Ends the response, while the request goes on. The client comes back after about `retry`, and gets what it missed.
    ///
    /// The handler runs on for at least `retry` and [`HttpOptions::orphaned_request_timeout`](crate::HttpOptions::orphaned_request_timeout) together, and is
    /// dropped if the client has not come back by then. A time beyond [`MAX_RETRY`](Self::MAX_RETRY) is cut down to it.
    /// What the handler said meanwhile is there for as long as the store of events keeps it, which is half an hour for
    /// [`MemoryEventStore`](crate::session::MemoryEventStore) by default: choose a shorter `retry` than that.
    pub fn close(&self, retry: Duration) {
        self.close_request.set(retry.min(Self::MAX_RETRY));
        if let Some(request) = self.close_request.request.get() {
            self.readers.wake_reader(ReaderTarget::Request(*request));
        }
    }
}

impl std::fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}
