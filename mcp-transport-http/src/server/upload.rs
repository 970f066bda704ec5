//! The body of a request, within its limits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::Body;
use tokio::time::{Sleep, sleep};

use super::admission::{Admission, Upload};
use super::options::HttpOptions;
use super::refusal::Refusal;

/// Reads a body. What has come with the headers is there at once, and is not copied.
pub(crate) async fn read<B: Body>(
    body: B,
    options: &HttpOptions,
    admission: &Arc<Admission>,
) -> Result<Bytes, Refusal> {
    let limit = options.body_limit;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut body = pin!(body);
    let mut parts = Parts::None;
    let mut waiting: Option<(Upload, std::pin::Pin<Box<Sleep>>)> = None;
    poll_fn(|cx| {
        loop {
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // What is not data are trailers, which say nothing here.
                    let Ok(data) = frame.into_data() else { continue };
                    if parts.len() + data.remaining() > limit {
                        return Poll::Ready(Err(too_large(limit)));
                    }
                    parts.add(data);
                }
                Poll::Ready(Some(Err(_))) => {
                    return Poll::Ready(Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is not complete")));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    if waiting.is_none() {
                        waiting = Some((admission.admit_upload(options)?, Box::pin(sleep(options.body_time))));
                    }
                    let is_late = waiting.as_mut().is_some_and(|(_, time)| time.as_mut().poll(cx).is_ready());
                    if is_late {
                        let text = "the body took too long; the time is `HttpOptions::body_time`";
                        return Poll::Ready(Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text)));
                    }
                    return Poll::Pending;
                }
            }
        }
    })
    .await?;
    Ok(parts.into_bytes())
}

fn too_large(limit: usize) -> Refusal {
    let text = format!("a body must not have more than {limit} bytes; the limit is `HttpOptions::body_limit`");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

/// What has come so far.
enum Parts {
    None,
    One(Bytes),
    Many(Vec<u8>),
}

impl Parts {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn add(&mut self, mut data: impl Buf) {
        match std::mem::replace(self, Self::None) {
            Self::None => *self = Self::One(data.copy_to_bytes(data.remaining())),
            Self::One(first) => {
                let mut all = Vec::with_capacity(first.len() + data.remaining());
                all.extend_from_slice(&first);
                *self = Self::Many(all);
                self.add(data);
            }
            Self::Many(mut all) => {
                while data.has_remaining() {
                    let chunk = data.chunk();
                    all.extend_from_slice(chunk);
                    let taken = chunk.len();
                    data.advance(taken);
                }
                *self = Self::Many(all);
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.into(),
        }
    }
}
