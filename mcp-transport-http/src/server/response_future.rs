//! The future of a response, from the head of its request to the head of the response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use http::{Extensions, HeaderMap, Method as Verb, Response, StatusCode};
use http_body::Body;
use mcp_kernel::server::{Failure, Transmit};
use mcp_server::{BoxFuture, InsufficientScope, Observer, Server};
use mcp_types::{Era, ErrorCode};
use pin_project_lite::pin_project;

use super::body::{EventSource, ResponseBody};
use super::exchange::{ResponseStart, StreamPoll};
use super::head::RequestHead;
use super::refusal::Refusal;
use super::service::{Inner, SelectedServer, accepted, event_stream, event_stream_with_headers, json_with_headers};
use super::shutdown::{Abortable, WorkGuard};
use super::upload::Upload;
use crate::event_stream::encode::KEEP_ALIVE;
use crate::rules::status::status_of;

pin_project! {
    /// The future of an [`HttpService`](crate::HttpService) response. Dropping it cancels the request.
    pub struct ResponseFuture<B> {
        inner: Arc<Inner>,
        stage: ResponseStage,
        // Not part of the stage, as it must not move.
        #[pin]
        upload: Option<Upload<B>>,
    }
}

/// How far a request has come.
///
/// ```text
/// Preparing --> Uploading --> Running or Saving --> Finished
///     \-------------- \--------------- \--refusal------/
/// ```
pub(crate) enum ResponseStage {
    /// Waits for `HttpOptions::select_server` and the session store.
    Preparing(Abortable<SelectedServer>, RequestHead, WorkGuard),
    /// Waits for the body. Bodies of other methods than POST are not read.
    Uploading(Option<Prepared>),
    /// The handler runs, and nothing was sent yet.
    Running(EventSource, Era),
    /// The session record has to be saved before the response.
    Saving(BoxFuture<Result<Response<ResponseBody>, Refusal>>),
    /// The future is ready, or was.
    Finished(Option<Result<Response<ResponseBody>, Refusal>>),
}

/// A request that waits for its body.
pub(crate) struct Prepared {
    /// The server that `HttpOptions::select_server` returned.
    selected: Option<Server>,
    head: RequestHead,
    work_guard: WorkGuard,
}

impl<B: Body> ResponseFuture<B> {
    pub(crate) fn new(inner: Arc<Inner>, parts: Parts, body: B, work_guard: WorkGuard) -> Self {
        let stage = ResponseStage::check_head(&inner, parts, work_guard)
            .unwrap_or_else(|refusal| ResponseStage::Finished(Some(Err(refusal))));
        Self { inner, stage, upload: Some(Upload::new(body)) }
    }

    fn poll_response(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, Refusal>> {
        let mut this = self.project();
        loop {
            match this.stage {
                ResponseStage::Preparing(preparing, _, work_guard) => {
                    let Some(selected) = ready!(preparing.poll(cx, work_guard)) else {
                        drop(this.stage.take());
                        return Poll::Ready(Err(this.inner.ending()));
                    };
                    let selected = selected?;
                    if let ResponseStage::Preparing(_, head, work_guard) = this.stage.take() {
                        *this.stage = ResponseStage::Uploading(Some(Prepared { selected, head, work_guard }));
                    }
                }
                ResponseStage::Uploading(prepared) => {
                    let is_post = prepared.as_ref().is_some_and(|prepared| prepared.head.parts.method == Verb::POST);
                    let body = match this.upload.as_mut().as_pin_mut().filter(|_| is_post) {
                        Some(upload) => Some(ready!(upload.poll(cx, &this.inner.options, &this.inner.admission))?),
                        None => None,
                    };
                    this.upload.set(None);
                    // Without the head the future was polled after it was ready.
                    let Some(Prepared { selected, head, work_guard }) = prepared.take() else {
                        return Poll::Pending;
                    };
                    *this.stage = match body {
                        Some(body) => this.inner.start(selected.as_ref(), head, &body, work_guard)?,
                        None => this.inner.start_without_body(head, work_guard)?,
                    };
                }
                ResponseStage::Running(source, era) => {
                    let mut events = Vec::new();
                    let first = ready!(source.poll_first(cx, &mut events));
                    // H-29: a message before the response makes it an event stream, and so does a keep-alive interval
                    // without one; until then the status is open.
                    let response = match first {
                        ResponseStart::Message(message) => {
                            let needed = insufficient_scope(&message);
                            let status = match source.is_aborted() {
                                true => StatusCode::SERVICE_UNAVAILABLE,
                                false if needed.is_some() => StatusCode::FORBIDDEN,
                                false => status_of(*era, message.failure),
                            };
                            let (permit, parts) = (source.take_permit(), source.take_parts());
                            let (headers, extensions) = this.stage.finish(parts);
                            let mut response = json_with_headers(status, message.message, permit, headers);
                            if let Some(extensions) = extensions {
                                *response.extensions_mut() = extensions;
                            }
                            if let Some(needed) = needed {
                                // The layer that verifies tokens writes the challenge.
                                response.extensions_mut().insert(needed);
                            }
                            return Poll::Ready(Ok(response));
                        }
                        ResponseStart::Stream(StreamPoll::Events) if source.is_over() => {
                            let body = ResponseBody::full(events, source.take_permit());
                            let parts = source.take_parts();
                            let (headers, extensions) = this.stage.finish(parts);
                            let mut response = event_stream_with_headers(body, headers);
                            if let Some(extensions) = extensions {
                                *response.extensions_mut() = extensions;
                            }
                            return Poll::Ready(Ok(response));
                        }
                        ResponseStart::Stream(StreamPoll::End) => Ok(accepted()),
                        ResponseStart::Stream(news) => {
                            if news == StreamPoll::Idle {
                                events.extend_from_slice(KEEP_ALIVE);
                            }
                            Ok(event_stream(this.stage.take_events(events, this.inner.server.observer())))
                        }
                        ResponseStart::Refused(refusal) => Err(refusal),
                    };
                    *this.stage = ResponseStage::Finished(None);
                    return Poll::Ready(response);
                }
                ResponseStage::Saving(saving) => return saving.as_mut().poll(cx),
                // Without a response the future was polled after it was ready.
                ResponseStage::Finished(response) => return response.take().map_or(Poll::Pending, Poll::Ready),
            }
        }
    }
}

impl ResponseStage {
    pub(crate) fn ready(response: Response<ResponseBody>) -> Self {
        Self::Finished(Some(Ok(response)))
    }

    /// Checks the head of a request.
    fn check_head(inner: &Inner, parts: Parts, work_guard: WorkGuard) -> Result<Self, Refusal> {
        let head = RequestHead::new(parts, inner.has_sessions(), |parts, headers| inner.check(parts, headers))?;
        Ok(match inner.prepare(&head)? {
            Some(preparing) => Self::Preparing(Abortable::new(preparing), head, work_guard),
            None => Self::Uploading(Some(Prepared { selected: None, head, work_guard })),
        })
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Finished(None))
    }

    /// Takes the source of an event stream, whose first events are there.
    fn take_events(&mut self, first: Vec<u8>, observer: Option<&Arc<dyn Observer>>) -> ResponseBody {
        match self.take() {
            Self::Running(source, _) => ResponseBody::events(source, first, observer),
            // There are only events while the handler runs.
            Self::Preparing(..) | Self::Uploading(..) | Self::Saving(_) | Self::Finished(_) => ResponseBody::empty(),
        }
    }

    /// Drops a request that is over, with all that its handler used; returns headers and extensions for its response.
    fn finish(&mut self, parts: Option<Arc<Parts>>) -> (HeaderMap, Option<Extensions>) {
        *self = Self::Finished(None);
        reused_maps(parts)
    }
}

impl<B: Body> Future for ResponseFuture<B> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.as_mut().poll_response(cx)) {
            Ok(mut response) => {
                self.inner.count_unsent(&mut response);
                Poll::Ready(Ok(response))
            }
            Err(refusal) => Poll::Ready(Ok(self.inner.finish(Err(refusal)))),
        }
    }
}

impl<B> std::fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Returns the scopes that a response demands, if it does.
// AU-8
fn insufficient_scope(response: &Transmit) -> Option<InsufficientScope> {
    // Only this error can be one, so that nearly all responses are not looked at.
    response.failure.filter(|failure| *failure == Failure::Failed(ErrorCode::INVALID_REQUEST))?;
    InsufficientScope::from_response(response.message.as_bytes())
}

/// Takes the headers and the extensions of a request, if nothing else uses them, and empties them, so that those of the response
/// need no allocation. Hyper uses the headers in turn for the next request of a connection, and layers can use the extensions
/// for theirs.
fn reused_maps(mut parts: Option<Arc<Parts>>) -> (HeaderMap, Option<Extensions>) {
    let Some(parts) = parts.as_mut().and_then(Arc::get_mut) else { return (HeaderMap::new(), None) };
    // Without a layer there are none.
    let extensions = (!parts.extensions.is_empty()).then(|| {
        let mut extensions = std::mem::take(&mut parts.extensions);
        extensions.clear();
        extensions
    });
    if parts.headers.capacity() > MAX_REUSED_HEADERS {
        return (HeaderMap::new(), extensions);
    }
    let mut headers = std::mem::take(&mut parts.headers);
    headers.clear();
    (headers, extensions)
}

/// The maximum capacity of headers that are used again: a connection keeps them while it is idle.
const MAX_REUSED_HEADERS: usize = 32;

#[cfg(test)]
mod tests {
    use http::header::HOST;
    use http::{HeaderValue, Request};

    use super::*;
    use crate::server::exchange::Exchange;

    /// Each request moves these a few times.
    #[test]
    fn requests_stay_small() {
        for (name, size, most) in [
            ("ResponseFuture", size_of::<ResponseFuture<()>>(), 432),
            ("ResponseStage", size_of::<ResponseStage>(), 360),
            ("Exchange", size_of::<Exchange>(), 352),
            ("RequestHead", size_of::<RequestHead>(), 112),
            ("Response", size_of::<Response<ResponseBody>>(), 200),
        ] {
            assert!(size <= most, "`{name}` has {size} bytes instead of {most}");
        }
    }

    /// Headers and extensions are used again if nothing else uses them, and are empty then.
    #[test]
    fn headers_and_extensions_are_used_again() {
        let parts = |count: usize| {
            let mut parts = Request::new(()).into_parts().0;
            parts.headers.insert(HOST, HeaderValue::from_static("localhost"));
            parts.headers.reserve(count);
            parts.extensions.insert("secret");
            Arc::new(parts)
        };
        let (headers, extensions) = reused_maps(Some(parts(8)));
        assert!(headers.is_empty() && headers.capacity() >= 8 && extensions.is_some_and(|all| all.is_empty()));
        let shared = parts(8);
        let (headers, extensions) = reused_maps(Some(Arc::clone(&shared)));
        assert!(headers.capacity() == 0 && extensions.is_none());
        assert_eq!((shared.headers.len(), shared.extensions.len()), (1, 1));
        assert_eq!(reused_maps(Some(parts(100))).0.capacity(), 0, "that is too much for an idle connection");
        assert_eq!(reused_maps(None).0.capacity(), 0);
    }
}
