//! Reads the body of a request within its limits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut as _, Bytes};
use http::StatusCode;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use super::admission::{Admission, Permit};
use super::options::HttpOptions;
use super::pacer::after;
use super::refusal::Refusal;

pin_project! {
    /// A request body that is being read. A body that arrived with the headers is not copied.
    pub(crate) struct Upload<B> {
        #[pin]
        body: B,
        parts: Parts,
        waiting: Option<Box<Waiting>>,
    }
}

impl<B: Body> Upload<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, parts: Parts::default(), waiting: None }
    }

    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        options: &HttpOptions,
        admission: &Arc<Admission>,
    ) -> Poll<Result<Bytes, Refusal>> {
        let mut this = self.project();
        let limit = options.body_limit;
        if this.body.size_hint().lower() > limit as u64 {
            return Poll::Ready(Err(too_large(limit)));
        }
        loop {
            match this.body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are ignored.
                    let Ok(data) = frame.into_data() else { continue };
                    if this.parts.len() + data.remaining() > limit {
                        return Poll::Ready(Err(too_large(limit)));
                    }
                    this.parts.add(data);
                    if this.body.is_end_stream() {
                        return Poll::Ready(Ok(std::mem::take(this.parts).into_bytes()));
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    return Poll::Ready(Err(Refusal::new(StatusCode::BAD_REQUEST, "the request body is incomplete")));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(std::mem::take(this.parts).into_bytes())),
                Poll::Pending => {
                    let waiting = this.waiting.get_or_insert_with(|| Box::new(Waiting::new()));
                    let is_late = waiting.poll_timeout(cx, this.parts.len(), options, admission)?;
                    if is_late {
                        let text = "the request body took too long; the timeout is `HttpOptions::body_timeout`";
                        return Poll::Ready(Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

fn too_large(limit: usize) -> Refusal {
    let text = format!("the request body exceeds {limit} bytes; the limit is `HttpOptions::body_limit`");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

/// How many bytes may be buffered without a permit. Over HTTP/2 even small bodies arrive after their headers.
const MAX_BYTES_WITHOUT_PERMIT: usize = 16 << 10;

/// How long a small body may take without a permit.
const MAX_TIME_WITHOUT_PERMIT: Duration = Duration::from_secs(1);

/// The state of a body that has not arrived completely.
struct Waiting {
    since: Instant,
    time: Pin<Box<Sleep>>,
    permit: Option<Permit>,
}

impl Waiting {
    fn new() -> Self {
        let since = Instant::now();
        Self { since, time: Box::pin(sleep_until(since + MAX_TIME_WITHOUT_PERMIT)), permit: None }
    }

    /// Whether the timeout has expired. A large or slow body needs a permit.
    fn poll_timeout(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        options: &HttpOptions,
        admission: &Arc<Admission>,
    ) -> Result<bool, Refusal> {
        if self.permit.is_none() {
            let is_slow = self.time.as_mut().poll(cx).is_ready();
            if length <= MAX_BYTES_WITHOUT_PERMIT && !is_slow {
                return Ok(false);
            }
            self.permit = Some(admission.admit_upload(options)?);
            self.time.as_mut().reset(after(options.body_timeout.saturating_sub(self.since.elapsed())));
        }
        Ok(self.time.as_mut().poll(cx).is_ready())
    }
}

/// The parts of a body that were read. A single one is not copied.
#[derive(Default)]
struct Parts {
    one: Bytes,
    many: Vec<u8>,
}

impl Parts {
    fn len(&self) -> usize {
        self.one.len() + self.many.len()
    }

    fn add(&mut self, mut data: impl Buf) {
        if self.len() == 0 {
            self.one = data.copy_to_bytes(data.remaining());
            return;
        }
        if self.many.is_empty() {
            self.many.reserve(self.one.len() + data.remaining());
            self.many.extend_from_slice(&std::mem::take(&mut self.one));
        }
        self.many.put(data);
    }

    fn into_bytes(self) -> Bytes {
        if self.many.is_empty() { self.one } else { self.many.into() }
    }
}
