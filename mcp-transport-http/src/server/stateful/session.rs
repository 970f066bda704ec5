//! One session: a connection, and the streams on which its client hears from it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcp_kernel::{RequestKey, Route, Time, Transmit};
use mcp_server::{Caller, Connection, ConnectionPort};
use mcp_session::{BoxFuture, EventStore, Reason, SessionId, StoredEvent};
use mcp_types::jsonrpc::{EncodedMessage, Incoming, Limits, Message};
use mcp_types::{ErrorObject, Method, RawObject, Revision};
use tokio::time::sleep;

use super::readers::{ReaderTarget, Readers};
use super::record_sync::RecordState;
use super::runner::{Held, Runner};
use super::stream::{ResponseStream, Stream};
use crate::clock::now;
use crate::rules::era::request_id;
use crate::server::admission::Permit;
use crate::server::exchange::TEARDOWN_TIMEOUT;

/// The stream of what belongs to the session as a whole.
pub(crate) const STANDALONE: u64 = 0;

/// What the transport keeps of a session, without a task.
///
/// The connection runs in whichever response is polled; a client that has gone while its requests are at work leaves a
/// [caretaker](super::caretaker) behind. Handlers run without any lock: whoever finds them running
/// [leaves](super::runner) what it has for them, and looks after its own stream.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) revision: Revision,
    pub(crate) readers: Arc<Readers>,
    pub(crate) events: Option<EventLog>,
    /// What is known about its record, if there is one.
    pub(crate) record_state: Option<Box<RecordState>>,
    pub(crate) counters: Arc<SessionCounters>,
    /// The messages of the connection, in and out.
    pub(crate) connection: ConnectionPort,
    /// The connection, for one task at a time.
    pub(crate) runner: Runner,
    /// Held for moments, and never while a handler runs.
    state: Mutex<State>,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedError {
    /// The session has ended.
    Ended,
    /// As much waits for a handler that does not let others run as can be kept.
    Full,
}

/// Where events are kept.
#[derive(Clone)]
pub(crate) struct EventLog {
    pub(crate) store: Arc<dyn EventStore>,
    /// Whether another process may go on with a session and its streams.
    pub(crate) is_shared: bool,
}

/// What is counted for all sessions of a service.
#[derive(Default)]
pub(crate) struct SessionCounters {
    /// Events that clients came back for.
    pub(crate) replayed: AtomicU64,
    /// Messages that were said to nobody.
    pub(crate) unheard: AtomicU64,
}

pub(crate) struct State {
    pub(crate) streams: BTreeMap<u64, Stream>,
    by_request: BTreeMap<RequestKey, u64>,
    last_stream: u64,
    /// Whether the client may have cancelled something since cancelled requests were looked for.
    has_cancelled: bool,
    pub(crate) is_ended: bool,
    /// The reader who looks after requests whose client is gone, if there is one.
    pub(crate) orphan_reader: Option<u64>,
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
        events: Option<EventLog>,
        record_state: Option<RecordState>,
        counters: Arc<SessionCounters>,
    ) -> Self {
        let state = State {
            streams: BTreeMap::new(),
            by_request: BTreeMap::new(),
            last_stream: first_stream(id),
            has_cancelled: false,
            is_ended: false,
            orphan_reader: None,
        };
        let readers = Arc::default();
        Self {
            id,
            revision,
            events,
            record_state: record_state.map(Box::new),
            counters,
            connection: connection.port(),
            runner: Runner::new(connection, &readers),
            readers,
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

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes it keeps while nobody uses it.
    pub(crate) fn bytes(&self) -> usize {
        /// A session whose client said next to nothing.
        const LEAST: usize = 2048;
        LEAST + self.connection.kept_bytes()
    }

    /// The parameters of `initialize`, for the record.
    pub(crate) fn initialize_params(&self) -> RawObject {
        self.connection.initialize_params().unwrap_or_default()
    }

    /// What a message may cost to read; which server it is was settled when the session began.
    pub(crate) fn message_limits(&self) -> Limits {
        self.connection.server().config().limits.message
    }

    /// Takes a message; returns the stream on which it is answered, if it is, and its reader.
    ///
    /// Handlers find the stream in their context, if the client could come back for what it misses.
    ///
    /// # Errors
    ///
    /// Fails if the session has ended since it was found, or if too much waits for its handlers.
    pub(crate) fn feed(
        &self,
        now: Time,
        incoming: Incoming<'_>,
        mut caller: Caller,
        permit: Permit,
    ) -> Result<Option<(u64, u64)>, FeedError> {
        let mut state = self.lock();
        if state.is_ended {
            return Err(FeedError::Ended);
        }
        let mut stream = Stream::default();
        // Older clients need not know how to come back before they have seen an event.
        if self.is_resumable() && self.sends_initial_event() {
            caller.extensions.insert(ResponseStream {
                close_request: Arc::clone(&stream.close_request),
                readers: Arc::clone(&self.readers),
            });
        }
        let id = request_id(&incoming).filter(|_| self.record_state.is_some()).cloned();
        // Nobody but the client cancels.
        state.has_cancelled |= match &incoming {
            Incoming::Single(Message::Notification(said)) => said.method == Method::NOTIFICATIONS_CANCELLED,
            Incoming::Single(_) => false,
            Incoming::Batch(_) => true,
        };
        let key = self.connection.feed_parsed(now, incoming, &caller).map_err(|_| FeedError::Full)?;
        let begun = key.map(|key| {
            state.last_stream += 1;
            let (number, reader) = (state.last_stream, self.readers.add(Some(ReaderTarget::Request(key))));
            stream.reader = Some(reader);
            stream.request = Some(key);
            stream.close_request.belongs_to(key);
            stream.id = id;
            stream.permit = Some(permit);
            state.by_request.insert(key, number);
            state.streams.insert(number, stream);
            (number, reader)
        });
        drop(state);
        self.pump(begun.map(|(_, reader)| reader));
        Ok(begun)
    }

    /// Whether clients are told where in a stream they are before anything is said on it.
    // B-104
    pub(crate) fn sends_initial_event(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }

    /// Whether streams have events that a client can come back for.
    pub(crate) fn is_resumable(&self) -> bool {
        self.events.is_some() && self.revision >= Revision::V2025_03_26
    }

    /// Runs the handlers, and brings what there is to say to its stream; `own` is the reader who does so, and looks at its
    /// stream itself. If another task runs them, that one goes on with what there is to do.
    pub(crate) fn pump(&self, own: Option<u64>) {
        loop {
            let Some(mut held) = self.runner.take() else {
                // What there is to say need not wait for the handlers; but they may wait for that to be said.
                if self.drain(own) {
                    continue;
                }
                return;
            };
            for _ in 0..MAX_ROUNDS {
                held.with(|connection| self.run(connection, own));
                if held.give_back() {
                    return;
                }
            }
            drop(held);
            // There is always more to do: others have their turn first, on this thread and for this session.
            match own {
                // One who does not wait yet looks before it does.
                Some(own) => return self.readers.wake(&[own]),
                None if self.readers.wake_all() => return,
                None => {}
            }
        }
    }

    /// Runs the handlers, for the task that may.
    fn run(&self, connection: &mut Connection, own: Option<u64>) {
        let waker = Waker::from(Arc::clone(&self.readers));
        let mut cx = Context::from_waker(&waker);
        loop {
            let polled = connection.poll(&mut cx, now());
            if !self.drain(own) || polled.is_pending() {
                return;
            }
        }
    }

    /// Brings what there is to say to its stream, and wakes whoever reads it; returns whether there was anything.
    fn drain(&self, own: Option<u64>) -> bool {
        let (mut concerned, mut moved) = (Vec::new(), false);
        let mut state = self.lock();
        // What was answered before this has its answer among what follows.
        let closed = self.closed(&mut state);
        while let Some(transmit) = self.connection.poll_transmit() {
            moved = true;
            let reader = self.deliver(&mut state, transmit);
            if let Some(reader) = reader.filter(|reader| own != Some(*reader) && concerned.last() != Some(reader)) {
                concerned.push(reader);
            }
        }
        for key in closed {
            concerned.extend(state.end_cancelled(key));
        }
        drop(state);
        self.readers.wake(&concerned);
        moved
    }

    /// The requests that are not open any more, and not known to be answered.
    fn closed(&self, state: &mut State) -> Vec<RequestKey> {
        if !std::mem::take(&mut state.has_cancelled) {
            return Vec::new();
        }
        state.by_request.keys().copied().filter(|key| !self.connection.is_open(*key)).collect()
    }

    /// Brings a message to its stream; returns who reads that, or has to know that it is over.
    fn deliver(&self, state: &mut State, transmit: Transmit) -> Option<u64> {
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
            self.counters.unheard.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let (route, reader) = (transmit.route, stream.reader);
        // What an answer says is kept before anybody can come back for it.
        let is_held = is_last && reader.is_none() && self.record_state.is_some();
        if is_last {
            stream.request = None;
        }
        if reader.is_some() || is_held {
            stream.push(transmit);
            if stream.is_full() && !stream.is_blocked && !is_last {
                stream.is_blocked = true;
                self.connection.block(route);
            }
        } else if !self.keep(number, stream, transmit.message) {
            self.counters.unheard.fetch_add(1, Ordering::Relaxed);
        }
        if let (true, Some(key)) = (is_last, key) {
            state.by_request.remove(&key);
            // A stream that nobody reads is over with its last message.
            if reader.is_none() && !is_held {
                state.streams.remove(&number);
            }
        }
        reader.or_else(|| state.orphan_reader.filter(|_| is_last))
    }

    /// Keeps an event for a client that may come back; returns whether it is kept.
    pub(crate) fn keep(&self, number: u64, stream: &mut Stream, message: EncodedMessage) -> bool {
        let Some(events) = self.events.as_ref().filter(|_| stream.is_known && self.is_resumable()) else {
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

    /// Lets a reader's stream go on after it made room; returns whether it had to wait.
    pub(crate) fn unblock(&self, state: &mut State, number: u64) -> bool {
        state.streams.get_mut(&number).is_some_and(|stream| stream.has_room() && self.release(stream))
    }

    /// Lets a stream go on; returns whether it had to wait.
    fn release(&self, stream: &mut Stream) -> bool {
        let was_blocked = std::mem::take(&mut stream.is_blocked);
        if was_blocked {
            self.connection.unblock(stream.request.map_or(Route::Standalone, Route::Related));
        }
        was_blocked
    }

    /// Gives up a request that nobody comes back for; its handler is dropped when the session is run next.
    pub(crate) fn abandon(&self, state: &mut State, number: u64) {
        if let Some(key) = state.streams.remove(&number).and_then(|stream| stream.request) {
            state.by_request.remove(&key);
            self.connection.abandon(key);
        }
    }

    /// Gives up what is at work, as soon as no other task runs it.
    pub(crate) fn poll_give_up(&self, cx: &Context<'_>, why: &ErrorObject) -> Poll<()> {
        self.runner.poll_take(cx).map(|mut held| {
            held.with(|connection| connection.abort_requests(why));
        })
    }

    /// Ends the session: what is pending is cancelled. Returns what is left to be done, such as what handlers left to be
    /// done; and if another task runs a handler, that includes the end of what is pending.
    ///
    /// What was said stays if the session can go on elsewhere: only its client ends it there as well.
    #[must_use]
    pub(crate) fn end(self: Arc<Self>, reason: Reason) -> Option<BoxFuture<()>> {
        self.lock().is_ended = true;
        if let Some(held) = self.runner.take() {
            return self.tear_down(held, reason);
        }
        Some(Box::pin(async move {
            // It may be one of its own handlers that ends it, and goes on here.
            let teardown = poll_fn(|cx| self.runner.poll_take(cx).map(|held| self.tear_down(held, reason))).await;
            if let Some(teardown) = teardown {
                teardown.await;
            }
        }))
    }

    fn tear_down(&self, mut held: Held<'_>, reason: Reason) -> Option<BoxFuture<()>> {
        let goes_on = reason != Reason::Deleted && self.events.as_ref().is_some_and(|events| events.is_shared);
        // Whoever waits for an answer gets one, and nothing else.
        for stream in self.lock().streams.values_mut() {
            self.release(stream);
        }
        let teardown = held.with(|connection| {
            connection
                .abort_requests(&ErrorObject::internal_error("the session has ended before the request was done"));
            self.run(connection, None);
            let mut state = self.lock();
            state.by_request.clear();
            state.streams.retain(|_, stream| {
                stream.is_known &= goes_on;
                stream.is_answered()
            });
            drop(state);
            let teardown = connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT));
            connection.handle_disconnect();
            teardown
        });
        drop(held);
        if let Some(events) = self.events.as_ref().filter(|_| !goes_on) {
            events.store.forget(self.id);
        }
        self.readers.wake_all();
        teardown.flatten()
    }
}

impl State {
    /// Ends the stream of a request that was cancelled, and is not answered; returns who reads it.
    fn end_cancelled(&mut self, key: RequestKey) -> Option<u64> {
        let number = *self.by_request.get(&key)?;
        if self.streams.get(&number).is_some_and(|stream| stream.is_blocked) {
            // The answer may be kept back.
            self.has_cancelled = true;
            return None;
        }
        self.by_request.remove(&key);
        let stream = self.streams.get_mut(&number)?;
        if stream.reader.is_some() {
            // It takes room until its reader ends it, after what was said before.
            stream.cancel();
            return stream.reader;
        }
        self.streams.remove(&number);
        self.orphan_reader
    }
}

/// How often a task runs the handlers of a session for others, before it looks after its own affairs.
const MAX_ROUNDS: usize = 16;
