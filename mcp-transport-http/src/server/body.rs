//! The body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mcp_types::jsonrpc::EncodedMessage;

use super::exchange::{Exchange, First, News};
use super::sessions::Reader;
use super::sse::Stream;

/// The body of a response: nothing, one message, or a stream of events.
///
/// A stream runs what it is about: whoever drops the body cancels the request.
pub struct ResponseBody(Kind);

enum Kind {
    Empty,
    Full(Bytes),
    Events(Box<EventStream>),
}

struct EventStream {
    source: Source,
    /// What there was to say when the stream began.
    first: Vec<u8>,
}

/// Where events come from.
#[expect(clippy::large_enum_variant, reason = "a request that stands alone is not to cost an allocation more")]
pub(crate) enum Source {
    /// A request that stands alone.
    Alone(Exchange),
    /// A stream of a session.
    Session(Box<Reader>),
    /// All that a client of 2024-11-05 hears.
    Sse(Box<Stream>),
}

impl Source {
    /// Waits for the answer, or for the first thing that is said before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<First> {
        match self {
            Self::Alone(exchange) => exchange.poll_first(cx, events),
            Self::Session(reader) => reader.poll_first(cx, events),
            Self::Sse(stream) => stream.poll(cx, events).map(First::News),
        }
    }

    /// Appends what there is to say.
    fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<News> {
        match self {
            Self::Alone(exchange) => exchange.poll(cx, events),
            Self::Session(reader) => reader.poll(cx, events),
            Self::Sse(stream) => stream.poll(cx, events),
        }
    }

    /// Whether everything has been said.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Alone(exchange) => exchange.is_over(),
            Self::Session(reader) => reader.is_over(),
            Self::Sse(stream) => stream.is_over(),
        }
    }

    /// Whether the service had to end before the request did.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Alone(exchange) => exchange.is_cut(),
            Self::Session(reader) => reader.is_cut(),
            // Its status was sent long ago.
            Self::Sse(_) => false,
        }
    }
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self(Kind::Empty)
    }

    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    pub(crate) fn events(source: Source, first: Vec<u8>) -> Self {
        Self(Kind::Events(Box::new(EventStream { source, first })))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.0 {
            Kind::Empty => return Poll::Ready(None),
            Kind::Full(_) => {
                let Kind::Full(bytes) = std::mem::replace(&mut self.0, Kind::Empty) else { return Poll::Ready(None) };
                bytes
            }
            Kind::Events(stream) => {
                let mut events = std::mem::take(&mut stream.first);
                if events.is_empty() {
                    match stream.source.poll(cx, &mut events) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(News::Events) => {}
                        Poll::Ready(News::Silence) => events.extend_from_slice(KEEP_ALIVE),
                        Poll::Ready(News::Over) => {
                            self.0 = Kind::Empty;
                            return Poll::Ready(None);
                        }
                    }
                }
                if stream.source.is_over() {
                    // What is left of the request ends here, even if nobody asks for more.
                    self.0 = Kind::Empty;
                }
                events.into()
            }
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Empty => "Empty",
            Kind::Full(_) => "Full",
            Kind::Events(_) => "Events",
        })
    }
}

/// A comment, which clients ignore (H-21, H-22).
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Appends a message as an event; a message is one line (AMB-14).
pub(crate) fn write_event(out: &mut Vec<u8>, message: &EncodedMessage) {
    out.reserve(message.len() + 8);
    for part in [&b"data: "[..], message, b"\n\n"] {
        out.extend_from_slice(part);
    }
}
