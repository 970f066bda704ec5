//! Which parts of responses were handed to a connection and are not sent yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;

use super::admission::Permit;

tokio::task_local! {
    /// What the connection or stream that is polled now has not sent. [`HttpServer`](crate::HttpServer) sets it; other
    /// servers look after clients that do not read themselves.
    static UNSENT: Arc<UnsentFrames>;
}

/// SessionCounters the pieces of responses that a connection of HTTP/1, or a stream of HTTP/2, has taken and not sent.
///
/// The body of a response cannot know when it is sent: HTTP/2 takes a piece before the client allows it to be sent, and
/// polls the body no more. So each piece counts until whoever took it drops it.
#[derive(Debug, Default)]
pub(crate) struct UnsentFrames {
    pieces: AtomicUsize,
    sent: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
    is_stream: bool,
}

impl UnsentFrames {
    /// That of a stream of HTTP/2.
    #[cfg(feature = "serve")]
    pub(crate) fn of_stream() -> Self {
        Self { is_stream: true, ..Self::default() }
    }

    /// Has all pieces counted that are taken while `poll` runs.
    #[cfg(feature = "serve")]
    pub(crate) fn during<R>(self: &Arc<Self>, poll: impl FnOnce() -> R) -> R {
        UNSENT.sync_scope(Arc::clone(self), poll)
    }

    /// The one that counts now, if there is one.
    pub(crate) fn current() -> Option<Arc<Self>> {
        UNSENT.try_with(Arc::clone).ok()
    }

    /// Whether a stream can be reset without harm to others of its connection.
    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    #[cfg(feature = "serve")]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.load(Ordering::Acquire) == 0
    }

    /// How many pieces were sent so far, to see whether there is progress.
    #[cfg(feature = "serve")]
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until everything is sent.
    pub(crate) fn poll_empty(&self, cx: &Context<'_>) -> Poll<()> {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        if self.pieces.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Makes a piece of a response of its bytes. The permit is held, and the piece is counted, until it is sent or dropped.
pub(crate) fn piece(bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static, permit: Option<Permit>) -> Frame<Bytes> {
    let unsent = UnsentFrames::current().map(Counted::new);
    Frame::data(match (&unsent, &permit) {
        (None, None) => bytes.into(),
        _ => Bytes::from_owner(Piece { bytes, _permit: permit, _unsent: unsent }),
    })
}

/// The bytes of a message that is sent in several pieces: the permit is held until the last of them is gone.
pub(crate) fn held(message: Vec<u8>, permit: Option<Permit>) -> Bytes {
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

/// A piece that is not sent, until it is dropped.
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
