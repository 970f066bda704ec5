//! The response body.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use mcp_kernel::observe::{Observer, StreamKind};

use super::admission::Permit;
use super::exchange::{Exchange, ResponseStart, StreamPoll};
use super::legacy_sse::SseStream;
use super::observed::ObservedStream;
use super::stateful::StreamReader;
use super::unsent::{OpenRequest, UnsentFrames, frame, message_bytes};
use crate::event_stream::encode::KEEP_ALIVE;

/// The body of a response: empty, one message, or an event stream.
///
/// Polling an event stream runs its handler, and dropping it cancels the request. The request counts as in flight until
/// the body and all frames that were read from it are dropped.
pub struct ResponseBody {
    state: BodyState,
    /// The request of an HTTP/1 connection that this responds to.
    request: Option<OpenRequest>,
}

enum BodyState {
    Empty,
    Full(Vec<u8>, Option<Permit>),
    /// The rest of a large message.
    Rest(Bytes),
    Events(Box<EventStream>),
    /// All frames were taken but not all are sent. An HTTP/2 stream can be reset as long as its body has not ended.
    Flushing(Arc<UnsentFrames>, Option<Permit>),
}

/// The maximum size of a frame: a slow client has to read as much within the stall timeout.
const MAX_FRAME_BYTES: usize = 64 << 10;

/// The maximum size of a message that ends its stream at once. Clients that read have a larger window.
const MAX_SINGLE_FRAME_BYTES: usize = 16 << 10;

struct EventStream {
    source: EventSource,
    /// The events that were there when the stream began.
    first: Vec<u8>,
    /// The rest of events that do not fit into one frame.
    rest: Bytes,
    /// Reports the end of the stream.
    _observed: Option<ObservedStream>,
}

/// Where the events of a stream come from.
#[expect(clippy::large_enum_variant, reason = "a request without a session is not boxed for the sake of others")]
pub(crate) enum EventSource {
    /// A request without a session.
    Alone(Exchange),
    /// A stream of a session.
    Session(Box<StreamReader>),
    /// The stream of an HTTP+SSE client.
    Sse(Box<SseStream>),
}

impl EventSource {
    /// Waits for the response, or for the first message before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<ResponseStart> {
        match self {
            Self::Alone(exchange) => exchange.poll_first(cx, events),
            Self::Session(reader) => reader.poll_first(cx, events),
            Self::Sse(stream) => stream.poll(cx, events).map(ResponseStart::Stream),
        }
    }

    /// Appends the events that are ready.
    fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        match self {
            Self::Alone(exchange) => exchange.poll(cx, events),
            Self::Session(reader) => reader.poll(cx, events),
            Self::Sse(stream) => stream.poll(cx, events),
        }
    }

    /// What the stream is for.
    pub(crate) fn kind(&self) -> StreamKind {
        match self {
            Self::Alone(exchange) if exchange.is_listening() => StreamKind::Listen,
            Self::Session(reader) if reader.is_standalone() => StreamKind::Standalone,
            Self::Alone(_) | Self::Session(_) => StreamKind::Response,
            Self::Sse(_) => StreamKind::Standalone,
        }
    }

    /// Whether all events have been returned.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Alone(exchange) => exchange.is_over,
            Self::Session(reader) => reader.is_over,
            Self::Sse(stream) => stream.is_over,
        }
    }

    /// Takes the permit of a request that is over, to be held until its response is sent.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        match self {
            Self::Alone(exchange) => exchange.take_permit(),
            Self::Session(reader) => reader.permit.take(),
            Self::Sse(stream) => stream.take_permit(),
        }
    }

    /// Takes the head of a request that is over.
    pub(crate) fn take_parts(&mut self) -> Option<Arc<Parts>> {
        match self {
            Self::Alone(exchange) => exchange.take_parts(),
            Self::Session(reader) => reader.parts.take(),
            Self::Sse(_) => None,
        }
    }

    /// Whether the request was aborted by a shutdown.
    pub(crate) fn is_aborted(&self) -> bool {
        match self {
            Self::Alone(exchange) => exchange.is_aborted,
            Self::Session(reader) => reader.is_aborted,
            // Its status was sent long ago.
            Self::Sse(_) => false,
        }
    }
}

/// A response of middleware.
impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::empty() } else { Self::full(bytes.into(), None) }
    }
}

impl ResponseBody {
    fn new(state: BodyState) -> Self {
        Self { state, request: None }
    }

    pub(crate) fn empty() -> Self {
        Self::new(BodyState::Empty)
    }

    /// One message, which holds the permit until it is sent.
    pub(crate) fn full(message: Vec<u8>, permit: Option<Permit>) -> Self {
        Self::new(BodyState::Full(message, permit))
    }

    /// An event stream, which is reported to an observer.
    pub(crate) fn events(source: EventSource, first: Vec<u8>, observer: Option<&Arc<dyn Observer>>) -> Self {
        let observed = observer.map(|observer| ObservedStream::open(observer, source.kind()));
        Self::new(BodyState::Events(Box::new(EventStream { source, first, rest: Bytes::new(), _observed: observed })))
    }

    /// Sets the request of an HTTP/1 connection that this responds to.
    #[cfg(feature = "serve")]
    pub(crate) fn set_request(&mut self, request: Option<OpenRequest>) {
        self.request = request;
    }

    /// Whether this is a message without a permit.
    pub(crate) fn needs_permit(&self) -> bool {
        matches!(&self.state, BodyState::Full(_, None))
    }

    /// Holds a permit until the message is sent.
    pub(crate) fn hold(&mut self, new: Permit) {
        if let BodyState::Full(_, permit) = &mut self.state {
            *permit = Some(new);
        }
    }

    /// Returns the counter of the connection or stream that this is sent on.
    fn unsent(&self) -> Option<Arc<UnsentFrames>> {
        match &self.request {
            Some(request) => Some(Arc::clone(request.unsent())),
            None => UnsentFrames::current(),
        }
    }

    /// Takes the next frame off a large message.
    fn next_frame(&mut self, mut rest: Bytes) -> Frame<Bytes> {
        let next = split(&mut rest);
        let unsent = self.unsent();
        self.state = if rest.is_empty() { flushing(unsent.clone(), None) } else { BodyState::Rest(rest) };
        frame(next, None, unsent)
    }
}

/// The state after the last frame: waits until the frames of an HTTP/2 stream, or those of a response with a permit, are
/// sent.
fn flushing(unsent: Option<Arc<UnsentFrames>>, permit: Option<Permit>) -> BodyState {
    match unsent.filter(|unsent| permit.is_some() || unsent.is_stream) {
        Some(unsent) => BodyState::Flushing(unsent, permit),
        None => BodyState::Empty,
    }
}

/// Takes off the bytes of one frame.
fn split(rest: &mut Bytes) -> Bytes {
    rest.split_to(rest.len().min(MAX_FRAME_BYTES))
}

/// The next step of an event stream.
enum Next {
    Events(Vec<u8>),
    /// A part of events that do not fit into one frame.
    Part(Bytes),
    /// The last events, with the permit of the finished request. The stream ends here, even if it is not polled again.
    Last(Vec<u8>, Option<Permit>),
    /// The stream has ended after the previous events.
    Nothing(Option<Permit>),
}

impl EventStream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if !self.rest.is_empty() {
            return Poll::Ready(Next::Part(split(&mut self.rest)));
        }
        let mut events = std::mem::take(&mut self.first);
        if events.is_empty() {
            match ready!(self.source.poll(cx, &mut events)) {
                StreamPoll::Events => {}
                StreamPoll::Idle => events.extend_from_slice(KEEP_ALIVE),
                StreamPoll::End => return Poll::Ready(Next::Nothing(self.source.take_permit())),
            }
        }
        Poll::Ready(if self.source.is_over() {
            Next::Last(events, self.source.take_permit())
        } else if events.len() <= MAX_FRAME_BYTES {
            Next::Events(events)
        } else {
            self.rest = events.into();
            Next::Part(split(&mut self.rest))
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let BodyState::Events(stream) = &mut self.state {
            match ready!(stream.poll(cx)) {
                Next::Events(events) => return Poll::Ready(Some(Ok(frame(events, None, self.unsent())))),
                Next::Part(events) => return Poll::Ready(Some(Ok(frame(events, None, self.unsent())))),
                Next::Last(events, permit) if events.len() <= MAX_FRAME_BYTES => {
                    let unsent = self.unsent();
                    self.state = flushing(unsent.clone(), None);
                    return Poll::Ready(Some(Ok(frame(events, permit, unsent))));
                }
                Next::Last(events, permit) => {
                    return Poll::Ready(Some(Ok(self.next_frame(message_bytes(events, permit)))));
                }
                Next::Nothing(permit) => self.state = flushing(self.unsent(), permit),
            }
        }
        let frame = match std::mem::replace(&mut self.state, BodyState::Empty) {
            BodyState::Full(message, permit) if message.len() <= MAX_SINGLE_FRAME_BYTES => {
                frame(message, permit, self.unsent())
            }
            BodyState::Full(message, permit) => self.next_frame(message_bytes(message, permit)),
            BodyState::Rest(rest) => self.next_frame(rest),
            BodyState::Flushing(unsent, permit) => {
                let sent = unsent.poll_empty(cx);
                if sent.is_pending() {
                    self.state = BodyState::Flushing(unsent, permit);
                }
                return sent.map(|()| None);
            }
            BodyState::Empty | BodyState::Events(_) => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            BodyState::Empty => true,
            BodyState::Full(message, _) => message.is_empty(),
            BodyState::Rest(_) | BodyState::Events(_) | BodyState::Flushing(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            BodyState::Empty | BodyState::Flushing(..) => SizeHint::with_exact(0),
            BodyState::Full(message, _) => SizeHint::with_exact(message.len() as u64),
            BodyState::Rest(rest) => SizeHint::with_exact(rest.len() as u64),
            BodyState::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.state {
            BodyState::Empty | BodyState::Flushing(..) => "Empty",
            BodyState::Full(..) | BodyState::Rest(_) => "Full",
            BodyState::Events(_) => "Events",
        })
    }
}
