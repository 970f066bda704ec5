//! Discards the bodies of requests that were refused before their body was read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::quiet_waker::hold_back;

/// The maximum number of bytes that are discarded per request.
const DISCARDED_BYTES: usize = 64 << 20;

/// How long discarding a body may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of bodies that are discarded at the same time.
const DISCARDED_BODIES: usize = 256;

/// The body of a request. When it is dropped, the rest is read and discarded, within limits.
///
/// Most clients read the response only after they sent the whole request, and closing a connection with unread data
/// resets it: such a client would never receive the refusal.
pub struct RequestBody {
    /// Taken when this is dropped.
    body: Option<Incoming>,
    /// Whether the client waits for `100 Continue`, which reading the body would send.
    is_awaited: bool,
    is_over: bool,
    discards: Discards,
}

/// Limits how many bodies are discarded at the same time.
#[derive(Clone)]
pub(crate) struct Discards(Arc<Semaphore>);

impl Default for Discards {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(DISCARDED_BODIES)))
    }
}

impl Discards {
    /// Wraps the body of a request, so that the rest of it is discarded.
    pub(crate) fn wrap(&self, headers: &HeaderMap, body: Incoming) -> RequestBody {
        let is_awaited = expects_continue(headers);
        RequestBody { body: Some(body), is_awaited, is_over: false, discards: self.clone() }
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_awaited = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let (frame, is_held_back) = hold_back(|| Pin::new(&mut *body).poll_frame(cx));
        if is_held_back && !body.is_end_stream() {
            cx.waker().wake_by_ref();
        }
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.is_over = true;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !self.is_over && !body.is_end_stream()) else { return };
        // A larger body would exceed the limit anyway, and a client that awaits `100 Continue` has sent nothing.
        if self.is_awaited || body.size_hint().lower() > DISCARDED_BYTES as u64 {
            return;
        }
        let place = Arc::clone(&self.discards.0).try_acquire_owned();
        if let (Ok(place), Ok(runtime)) = (place, Handle::try_current()) {
            runtime.spawn(discard(body, place));
        }
    }
}

async fn discard(mut body: Incoming, _place: OwnedSemaphorePermit) {
    let all = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARDED_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, all).await;
}
