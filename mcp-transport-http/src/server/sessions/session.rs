//! One session: a connection, and the streams on which its client hears from it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcp_kernel::{RequestKey, Route, Transmit};
use mcp_server::{Caller, Connection};
use mcp_session::{BoxFuture, EventStore, Reason, Refused, SessionId, StoredEvent};
use mcp_types::jsonrpc::{EncodedMessage, Incoming, Limits};
use mcp_types::{ErrorObject, Revision};
use tokio::time::sleep;

use super::keeper::Kept;
use super::readers::Readers;
use super::stream::{ResponseStream, Stream};
use crate::server::admission::Permit;
use crate::server::exchange::{TEARDOWN, now};

/// The stream of what belongs to the session as a whole.
pub(crate) const STANDALONE: u64 = 0;

/// What the transport keeps of a session, without a task.
///
/// The connection runs in whichever response is polled; a client that has gone while its requests are at work leaves a
/// [caretaker](super::caretaker) behind.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) revision: Revision,
    pub(crate) readers: Arc<Readers>,
    pub(crate) events: Option<Events>,
    /// What is known about its record, if there is one.
    pub(crate) kept: Option<Box<Kept>>,
    pub(crate) counts: Arc<Counts>,
    state: Mutex<State>,
}

/// Where events are kept.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) store: Arc<dyn EventStore>,
    /// Whether another process may go on with a session and its streams.
    pub(crate) is_shared: bool,
}

/// What is counted for all sessions of a service.
#[derive(Default)]
pub(crate) struct Counts {
    /// Events that clients came back for.
    pub(crate) replayed: AtomicU64,
    /// Messages that were said to nobody.
    pub(crate) unheard: AtomicU64,
}

pub(crate) struct State {
    pub(crate) connection: Connection,
    pub(crate) streams: BTreeMap<u64, Stream>,
    by_request: BTreeMap<RequestKey, u64>,
    last_stream: u64,
    /// Whether the client has said something since cancelled requests were looked for.
    has_input: bool,
    pub(crate) is_ended: bool,
    /// Whether somebody looks after requests whose client is gone.
    pub(crate) has_caretaker: bool,
}

/// Streams are numbered from somewhere else in each process, so that nobody takes those of another one for ours.
fn first_stream(id: SessionId) -> u64 {
    let random = std::hash::RandomState::new();
    std::hash::BuildHasher::hash_one(&random, id.as_bytes()) >> 16 << 16
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        connection: Connection,
        revision: Revision,
        events: Option<Events>,
        kept: Option<Kept>,
        counts: Arc<Counts>,
    ) -> Self {
        let state = State {
            connection,
            streams: BTreeMap::new(),
            by_request: BTreeMap::new(),
            last_stream: first_stream(id),
            has_input: false,
            is_ended: false,
            has_caretaker: false,
        };
        Self {
            id,
            revision,
            readers: Arc::default(),
            events,
            kept: kept.map(Box::new),
            counts,
            state: Mutex::new(state),
        }
    }

    /// The number after which the stream of the session as a whole goes on, at least. Where it may have been elsewhere
    /// before, that is greater than what it can have had there, as far as clocks agree.
    pub(crate) fn first_number(&self) -> u64 {
        if !self.events.as_ref().is_some_and(|events| events.is_shared) {
            return 0;
        }
        #[expect(clippy::disallowed_methods, reason = "this is the driver, who reads the clock for the others")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_nanos()).unwrap_or_default()
    }

    /// Whether nobody is at work on it.
    pub(crate) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a message may cost to read; which server it is was settled when the session began.
    pub(crate) fn message_limits(&self) -> Limits {
        self.lock().connection.server().config().limits.message
    }

    /// Takes a message; returns the stream on which it is answered, if it is, and its reader.
    ///
    /// Handlers find the stream in their context, if the client could come back for what it misses.
    ///
    /// # Errors
    ///
    /// Fails if the session has ended since it was found.
    pub(crate) fn feed(
        &self,
        now: Instant,
        incoming: Incoming<'_>,
        mut caller: Caller,
        permit: Permit,
    ) -> Result<Option<(u64, u64)>, Refused> {
        let mut state = self.lock();
        if state.is_ended {
            return Err(Refused::Unknown);
        }
        let mut stream = Stream::default();
        // Older clients need not know how to come back before they have seen an event.
        if self.may_be_resumed() && self.is_primed() {
            caller
                .extensions
                .insert(ResponseStream { wish: Arc::clone(&stream.wish), readers: Arc::clone(&self.readers) });
        }
        let key = state.connection.feed_parsed(now, incoming, &caller);
        state.has_input = true;
        let begun = key.map(|key| {
            state.last_stream += 1;
            let (number, reader) = (state.last_stream, self.readers.next());
            stream.reader = Some(reader);
            stream.permit = Some(permit);
            state.by_request.insert(key, number);
            state.streams.insert(number, stream);
            (number, reader)
        });
        self.pump(&mut state, now);
        Ok(begun)
    }

    /// Whether clients are told where in a stream they are before anything is said on it (B-104).
    pub(crate) fn is_primed(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }

    /// Whether streams have events that a client can come back for.
    pub(crate) fn may_be_resumed(&self) -> bool {
        self.events.is_some() && self.revision >= Revision::V2025_03_26
    }

    /// Runs the handlers, and brings what there is to say to its stream.
    pub(crate) fn pump(&self, state: &mut State, now: Instant) {
        let waker = Waker::from(Arc::clone(&self.readers));
        let mut cx = Context::from_waker(&waker);
        let mut has_news = false;
        loop {
            let polled = state.connection.poll(&mut cx, now);
            let mut moved = false;
            while let Some(transmit) = state.connection.poll_transmit() {
                moved = true;
                self.deliver(state, transmit);
            }
            has_news |= moved;
            if !moved || polled.is_pending() {
                break;
            }
        }
        has_news |= Self::end_cancelled(state);
        if has_news {
            // It may be for others.
            self.readers.wake_all();
        }
    }

    /// Ends the streams of requests that were cancelled, and are not answered; returns whether there were any.
    fn end_cancelled(state: &mut State) -> bool {
        let State { connection, streams, by_request, has_input, .. } = state;
        if !std::mem::take(has_input) {
            // Nobody but the client cancels.
            return false;
        }
        let before = by_request.len();
        by_request.retain(|key, number| {
            if connection.is_open(*key) {
                return true;
            }
            if streams.get(number).is_some_and(|stream| stream.is_blocked) {
                // The answer may be kept back.
                *has_input = true;
                return true;
            }
            streams.remove(number);
            false
        });
        by_request.len() < before
    }

    fn deliver(&self, state: &mut State, transmit: Transmit) {
        let (key, is_last) = match transmit.route {
            Route::Reply(key) => (Some(key), true),
            Route::Related(key) | Route::Listen(key) => (Some(key), false),
            Route::Standalone => (None, false),
        };
        let number = match key {
            Some(key) => state.by_request.get(&key).copied(),
            None => Some(STANDALONE),
        };
        let Some((number, stream)) = number.and_then(|number| Some((number, state.streams.get_mut(&number)?))) else {
            self.counts.unheard.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let route = transmit.route;
        if stream.reader.is_some() {
            stream.push(transmit);
            if stream.is_full() && !stream.is_blocked && !is_last {
                stream.is_blocked = true;
                state.connection.block(route);
            }
        } else if !self.keep(number, stream, transmit.message) {
            self.counts.unheard.fetch_add(1, Ordering::Relaxed);
        }
        if let (true, Some(key)) = (is_last, key) {
            state.by_request.remove(&key);
            // A stream that nobody reads is over with its last message.
            if state.streams.get(&number).is_some_and(|stream| stream.reader.is_none()) {
                state.streams.remove(&number);
            }
        }
    }

    /// Whether the request of a stream is still to be answered.
    pub(crate) fn is_open(state: &State, number: u64) -> bool {
        state.by_request.values().any(|other| *other == number)
    }

    /// Keeps an event for a client that may come back; returns whether it is kept.
    pub(crate) fn keep(&self, number: u64, stream: &mut Stream, message: EncodedMessage) -> bool {
        let Some(events) = self.events.as_ref().filter(|_| stream.is_known && self.may_be_resumed()) else {
            return false;
        };
        stream.number += 1;
        events.store.append(
            self.id,
            number,
            StoredEvent { number: stream.number, message: Bytes::from(message.into_bytes()) },
        );
        true
    }

    /// Lets a reader's stream go on after it made room.
    pub(crate) fn unblock(&self, state: &mut State, number: u64) {
        if state.streams.get(&number).is_some_and(Stream::has_room) {
            self.release(state, number);
        }
    }

    /// Lets a stream go on.
    fn release(&self, state: &mut State, number: u64) {
        let Some(stream) = state.streams.get_mut(&number).filter(|stream| stream.is_blocked) else { return };
        stream.is_blocked = false;
        let key = state.by_request.iter().find(|(_, other)| **other == number).map(|(key, _)| *key);
        let route = key.map_or(Route::Standalone, Route::Related);
        state.connection.unblock(route);
    }

    /// Gives up a request that nobody comes back for.
    pub(crate) fn abandon(&self, state: &mut State, number: u64) {
        let key = state.by_request.iter().find(|(_, other)| **other == number).map(|(key, _)| *key);
        if let Some(key) = key {
            state.by_request.remove(&key);
            state.connection.abandon(key);
        }
        state.streams.remove(&number);
    }

    /// Ends the session: what is pending is cancelled. Returns what handlers left to be done.
    ///
    /// What was said stays if the session can go on elsewhere: only its client ends it there as well.
    #[must_use]
    pub(crate) fn end(&self, reason: Reason) -> Option<BoxFuture<()>> {
        let goes_on = reason != Reason::Deleted && self.events.as_ref().is_some_and(|events| events.is_shared);
        let mut state = self.lock();
        state.is_ended = true;
        // Whoever waits for an answer gets one, and nothing else.
        for number in state.streams.keys().copied().collect::<Vec<_>>() {
            self.release(&mut state, number);
        }
        state.connection.give_up(&ErrorObject::internal_error("the session has ended before the request was done"));
        self.pump(&mut state, now());
        state.by_request.clear();
        state.streams.retain(|_, stream| {
            stream.is_known &= goes_on;
            stream.is_answered()
        });
        let teardown = state.connection.take_teardown(|| sleep(TEARDOWN));
        state.connection.handle_disconnect();
        drop(state);
        if let Some(events) = self.events.as_ref().filter(|_| !goes_on) {
            events.store.forget(self.id);
        }
        self.readers.wake_all();
        teardown
    }
}
