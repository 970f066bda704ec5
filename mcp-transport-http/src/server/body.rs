//! The response body.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::admission::Permit;
use super::exchange::{Exchange, ResponseStart, StreamPoll};
use super::legacy_sse::SseStream;
use super::stateful::StreamReader;
use super::unsent::{UnsentFrames, frame, message_bytes};
use crate::event_stream::encode::KEEP_ALIVE;

/// The body of a response: empty, one message, or an event stream.
///
/// Polling an event stream runs its handler, and dropping it cancels the request. The request counts as in flight until
/// the body and all frames that were read from it are dropped.
pub struct ResponseBody(BodyState);

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

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self(BodyState::Empty)
    }

    /// One message, which holds the permit until it is sent.
    pub(crate) fn full(message: Vec<u8>, permit: Option<Permit>) -> Self {
        Self(BodyState::Full(message, permit))
    }

    pub(crate) fn events(source: EventSource, first: Vec<u8>) -> Self {
        Self(BodyState::Events(Box::new(EventStream { source, first, rest: Bytes::new() })))
    }

    /// Whether this is a message without a permit.
    pub(crate) fn needs_permit(&self) -> bool {
        matches!(&self.0, BodyState::Full(_, None))
    }

    /// Holds a permit until the message is sent.
    pub(crate) fn hold(&mut self, new: Permit) {
        if let BodyState::Full(_, permit) = &mut self.0 {
            *permit = Some(new);
        }
    }

    /// Takes the next frame off a large message.
    fn next_frame(&mut self, mut rest: Bytes) -> Frame<Bytes> {
        let next = split(&mut rest);
        self.0 = if rest.is_empty() { BodyState::flushing(None) } else { BodyState::Rest(rest) };
        frame(next, None)
    }
}

impl BodyState {
    /// The state after the last frame: waits until the frames of an HTTP/2 stream, or those of a response with a permit, are
    /// sent.
    fn flushing(permit: Option<Permit>) -> Self {
        match UnsentFrames::current().filter(|unsent| permit.is_some() || unsent.is_stream) {
            Some(unsent) => Self::Flushing(unsent, permit),
            None => Self::Empty,
        }
    }
}

/// Takes off the bytes of one frame.
fn split(rest: &mut Bytes) -> Bytes {
    rest.split_to(rest.len().min(MAX_FRAME_BYTES))
}

/// The next step of an event stream.
enum Next {
    Frame(Frame<Bytes>),
    /// The last events, with the permit of the finished request. The stream ends here, even if it is not polled again.
    Last(Vec<u8>, Option<Permit>),
    /// The stream has ended after the previous events.
    Nothing(Option<Permit>),
}

impl EventStream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if !self.rest.is_empty() {
            return Poll::Ready(Next::Frame(frame(split(&mut self.rest), None)));
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
            Next::Frame(frame(events, None))
        } else {
            self.rest = events.into();
            Next::Frame(frame(split(&mut self.rest), None))
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let BodyState::Events(stream) = &mut self.0 {
            match ready!(stream.poll(cx)) {
                Next::Frame(frame) => return Poll::Ready(Some(Ok(frame))),
                Next::Last(events, permit) if events.len() <= MAX_FRAME_BYTES => {
                    self.0 = BodyState::flushing(None);
                    return Poll::Ready(Some(Ok(frame(events, permit))));
                }
                Next::Last(events, permit) => {
                    return Poll::Ready(Some(Ok(self.next_frame(message_bytes(events, permit)))));
                }
                Next::Nothing(permit) => self.0 = BodyState::flushing(permit),
            }
        }
        let frame = match std::mem::replace(&mut self.0, BodyState::Empty) {
            BodyState::Full(message, permit) if message.len() <= MAX_SINGLE_FRAME_BYTES => frame(message, permit),
            BodyState::Full(message, permit) => self.next_frame(message_bytes(message, permit)),
            BodyState::Rest(rest) => self.next_frame(rest),
            BodyState::Flushing(unsent, permit) => {
                let sent = unsent.poll_empty(cx);
                if sent.is_pending() {
                    self.0 = BodyState::Flushing(unsent, permit);
                }
                return sent.map(|()| None);
            }
            BodyState::Empty | BodyState::Events(_) => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyState::Empty => true,
            BodyState::Full(message, _) => message.is_empty(),
            BodyState::Rest(_) | BodyState::Events(_) | BodyState::Flushing(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyState::Empty | BodyState::Flushing(..) => SizeHint::with_exact(0),
            BodyState::Full(message, _) => SizeHint::with_exact(message.len() as u64),
            BodyState::Rest(rest) => SizeHint::with_exact(rest.len() as u64),
            BodyState::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            BodyState::Empty | BodyState::Flushing(..) => "Empty",
            BodyState::Full(..) | BodyState::Rest(_) => "Full",
            BodyState::Events(_) => "Events",
        })
    }
}
