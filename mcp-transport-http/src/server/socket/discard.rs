//! Bodies of requests that are refused before they were read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Request};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes of a body are read and discarded after its request was refused.
const DISCARDED_BYTES: usize = 64 << 20;

/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// How many bodies are discarded at the same time.
const DISCARDED_BODIES: usize = 256;

/// The body of a request. What is left of it when it is dropped is read and discarded, within bounds.
///
/// Most clients send a whole request before they read the response, and a connection that is closed with something
/// unread is reset: such a client would never see why it was refused.
pub(crate) struct RequestBody {
    /// Until it is dropped.
    body: Option<Incoming>,
    /// Whether the client waits to be told that the body is wanted, which reading it would do.
    is_awaited: bool,
    is_over: bool,
    discards: Discards,
}

/// Room for bodies that are discarded.
#[derive(Clone)]
pub(crate) struct Discards(Arc<Semaphore>);

impl Default for Discards {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(DISCARDED_BODIES)))
    }
}

impl Discards {
    /// Has what a request leaves of its body discarded.
    pub(crate) fn wrap(&self, request: Request<Incoming>) -> Request<RequestBody> {
        let is_awaited = expects_continue(request.headers());
        request.map(|body| RequestBody { body: Some(body), is_awaited, is_over: false, discards: self.clone() })
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
        let frame = Pin::new(body).poll_frame(cx);
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
        // What is larger would be reset in the end, and who waits to be asked has sent nothing.
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
