//! Counts the response frames that were handed to a connection and are not sent yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;

use super::admission::Permit;

tokio::task_local! {
    /// The counter of the HTTP/2 stream that is being polled. [`HttpServer`](crate::HttpServer) sets it; other HTTP
    /// servers have to handle clients that do not read themselves.
    static UNSENT: Arc<UnsentFrames>;
}

/// Counts the frames that an HTTP/1 connection or an HTTP/2 stream has taken from response bodies and not sent.
///
/// A body cannot know when it is sent: HTTP/2 takes a frame before the client's window allows sending it, and does not
/// poll the body again. So each frame counts until the connection drops it.
#[derive(Debug, Default)]
pub(crate) struct UnsentFrames {
    pieces: AtomicUsize,
    sent: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
    /// How many requests an HTTP/1 connection has received.
    #[cfg(feature = "serve")]
    requests: AtomicUsize,
    /// How many of them are in flight: at most one.
    in_flight: AtomicUsize,
    pub(crate) is_stream: bool,
}

impl UnsentFrames {
    /// Creates the counter of an HTTP/2 stream.
    #[cfg(feature = "http2")]
    pub(crate) fn of_stream() -> Self {
        Self { is_stream: true, ..Self::default() }
    }

    /// Counts all frames that are created while `poll` runs.
    #[cfg(feature = "http2")]
    pub(crate) fn count_during<R>(self: &Arc<Self>, poll: impl FnOnce() -> R) -> R {
        UNSENT.sync_scope(Arc::clone(self), poll)
    }

    /// Returns the counter of the HTTP/2 stream that is being polled.
    pub(crate) fn current() -> Option<Arc<Self>> {
        UNSENT.try_with(Arc::clone).ok()
    }

    #[cfg(feature = "serve")]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.load(Ordering::Acquire) == 0
    }

    /// Returns how many requests an HTTP/1 connection has received so far, if it waits for the next one.
    #[cfg(feature = "serve")]
    pub(crate) fn idle_after(&self) -> Option<usize> {
        let is_idle = self.in_flight.load(Ordering::Relaxed) == 0 && self.is_empty();
        is_idle.then(|| self.requests.load(Ordering::Relaxed))
    }

    /// Returns how many frames were sent so far, to detect progress.
    #[cfg(feature = "serve")]
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until all frames are sent.
    pub(crate) fn poll_empty(&self, cx: &Context<'_>) -> Poll<()> {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        if self.pieces.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A request of an HTTP/1 connection. It is in flight until this is dropped, with its response.
pub(crate) struct OpenRequest(Arc<UnsentFrames>);

impl OpenRequest {
    #[cfg(feature = "serve")]
    pub(crate) fn new(connection: &Arc<UnsentFrames>) -> Self {
        connection.requests.fetch_add(1, Ordering::Relaxed);
        connection.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }

    /// Returns the counter of the connection.
    pub(crate) fn unsent(&self) -> &Arc<UnsentFrames> {
        &self.0
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates a frame. It holds the permit, and is counted, until it is sent or dropped.
pub(crate) fn frame(
    bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static,
    permit: Option<Permit>,
    unsent: Option<Arc<UnsentFrames>>,
) -> Frame<Bytes> {
    let unsent = unsent.map(Counted::new);
    Frame::data(match (&unsent, &permit) {
        (None, None) => bytes.into(),
        _ => Bytes::from_owner(Piece { bytes, _permit: permit, _unsent: unsent }),
    })
}

/// Creates the bytes of a message that is sent in several frames. They hold the permit until the last one is dropped.
pub(crate) fn message_bytes(message: Vec<u8>, permit: Option<Permit>) -> Bytes {
    match permit {
        None => message.into(),
        Some(_) => Bytes::from_owner(Piece { bytes: message, _permit: permit, _unsent: None }),
    }
}

struct Piece<B> {
    bytes: B,
    _permit: Option<Permit>,
    _unsent: Option<Counted>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Piece<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Counts as an unsent frame until it is dropped.
struct Counted(Arc<UnsentFrames>);

impl Counted {
    fn new(unsent: Arc<UnsentFrames>) -> Self {
        unsent.pieces.fetch_add(1, Ordering::AcqRel);
        Self(unsent)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        if self.0.pieces.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waiting) = waiting {
                waiting.wake();
            }
        }
    }
}
