//! The body of a response: complete, or a stream that stays open.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::stream::Stream;

pub(crate) enum Body {
    /// Sent with its length.
    Whole(Option<Bytes>),
    /// Events, sent as a chunk: an event stream has no length.
    Events(Option<Bytes>),
    Open(Arc<Stream>),
}

impl Body {
    pub(crate) fn whole(text: Vec<u8>) -> Self {
        Self::Whole(Some(text.into()))
    }

    pub(crate) fn events(events: Vec<u8>) -> Self {
        Self::Events(Some(events.into()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) | Self::Events(bytes) => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
            Self::Open(stream) => stream.poll_event(context).map(|event| Some(Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None) | Self::Events(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) | Self::Open(_) => SizeHint::default(),
        }
    }
}
