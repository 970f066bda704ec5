//! What is answered: at once, or bit by bit.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) enum Body {
    Whole(Option<Bytes>),
    Events(UnboundedReceiver<Bytes>),
}

impl Body {
    pub(crate) fn whole(text: String) -> Self {
        Self::Whole(Some(text.into()))
    }

    /// Returns a body of events, which ends when the sender is dropped.
    pub(crate) fn events() -> (UnboundedSender<Bytes>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self::Events(receiver))
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
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
            Self::Events(events) => events.poll_recv(context).map(|event| event.map(Frame::data).map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
