//! One session: a connection and its streams.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcp_kernel::server::{Route, SessionState, Transmit};
use mcp_kernel::{RequestKey, Time};
use mcp_server::{AuthInfo, BoxFuture, Caller, Connection, ConnectionPort, NextStep};
use mcp_session::{EndReason, EventStore, SessionId, SessionLease, StoredEvent};
use mcp_types::jsonrpc::{EncodedMessage, Incoming, Limits, Message};
use mcp_types::{ErrorObject, Method, RawObject, Revision};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::readers::{Due, ReaderTarget, Readers};
use super::record_sync::RecordState;
use super::runner::{Held, Runner};
use super::session_code::SessionCode;
use super::stream::{ResponseStream, Stream};
use super::streams::Streams;
use crate::clock::now;
use crate::rules::revision::request_id;
use crate::server::admission::Permit;
use crate::server::expiry::SessionEnd;
use crate::server::service::requests;
use crate::server::teardown::TEARDOWN_TIMEOUT;

/// The number of the standalone stream, for messages that belong to no request.
pub(crate) const STANDALONE: u64 = 0;

/// A session, which has no task of its own.
///
/// The connection runs in whichever response is polled. If a client disconnects while requests are in flight, an
/// [orphaned](super::orphaned) task runs it. Handlers run without a lock: a task that finds them running
/// [leaves](super::runner) its input to the task that runs them.
pub(crate) struct Session {
    pub(crate) revision: Revision,
    pub(crate) readers: Arc<Readers>,
    pub(crate) events: Option<Arc<EventLog>>,
    /// The state of its record, if there is a session store.
    pub(crate) record_state: Option<Box<RecordState>>,
    pub(crate) counters: Arc<SessionCounters>,
    /// The input and output of the connection.
    pub(crate) connection: ConnectionPort,
    /// The connection, for one task at a time.
    pub(crate) runner: Runner,
    /// The code of the application that runs as long as the session, if there is any.
    code: OnceLock<Box<SessionCode>>,
    /// Whether the session was resumed from the store, and the application has not completed it yet.
    is_resuming: AtomicBool,
    /// When it has to end, if it is used with tokens.
    end: Mutex<Option<Box<SessionEnd>>>,
    /// Never locked while a handler runs.
    state: Mutex<State>,
}

/// The error of passing a message to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedError {
    /// The session has ended.
    Ended,
    /// Too many messages wait for a handler that blocks its thread.
    Full,
}

/// The event store of all sessions.
pub(crate) struct EventLog {
    pub(crate) store: Arc<dyn EventStore>,
    /// Whether another process may continue the session and its streams.
    pub(crate) is_shared: bool,
}

/// The counters of all sessions of a service.
#[derive(Default)]
pub(crate) struct SessionCounters {
    /// Events that were sent again to clients that resumed a stream.
    pub(crate) replayed: AtomicU64,
    /// Messages without a stream to send them on.
    pub(crate) dropped_messages: AtomicU64,
}

pub(crate) struct State {
    pub(crate) streams: Streams,
    last_stream: u64,
    /// Whether a request may have been cancelled since the last check.
    has_cancelled: bool,
    pub(crate) is_ended: bool,
    /// The reader number of the task that runs orphaned requests, if there is one.
    pub(crate) orphan_reader: Option<u64>,
}

/// Returns a random first stream number, so that processes that share a session use different numbers.
fn first_stream(id: SessionId) -> u64 {
    let random = std::hash::RandomState::new();
    std::hash::BuildHasher::hash_one(&random, id) >> 16 << 16
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        connection: Connection,
        revision: Revision,
        events: Option<Arc<EventLog>>,
        record_state: Option<RecordState>,
        counters: Arc<SessionCounters>,
    ) -> Self {
        let state = State {
            streams: Streams::default(),
            last_stream: first_stream(id),
            has_cancelled: false,
            is_ended: false,
            orphan_reader: None,
        };
        let readers = Arc::new(Readers::of(id));
        let mut connection = connection.session_id(Arc::clone(&readers) as _);
        let code = connection.take_session_future();
        Self {
            revision,
            events,
            record_state: record_state.map(Box::new),
            counters,
            connection: connection.port(),
            runner: Runner::new(connection, &readers),
            readers,
            code: code.map(SessionCode::boxed).map_or_else(OnceLock::new, OnceLock::from),
            is_resuming: AtomicBool::new(false),
            end: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    /// Returns the id of the session.
    pub(crate) fn id(&self) -> SessionId {
        self.readers.session()
    }

    /// Returns the first event number of the standalone stream. If another process may have served the stream before, the
    /// number is greater than any that it used, as far as their clocks agree.
    pub(crate) fn first_number(&self) -> u64 {
        if !self.events.as_ref().is_some_and(|events| events.is_shared) {
            return 0;
        }
        #[expect(clippy::disallowed_methods, reason = "the transport reads the clock for the layers below")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_nanos()).unwrap_or_default()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the approximate memory use of an idle session in bytes.
    pub(crate) fn bytes(&self) -> usize {
        /// A session after a minimal `initialize`.
        const MIN_BYTES: usize = 2048;
        MIN_BYTES + self.connection.kept_bytes()
    }

    /// Records the token of a request of its owner.
    pub(crate) fn use_token(&self, auth: &AuthInfo) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if !end.as_ref().is_some_and(|end| end.includes(auth)) {
            *end = Some(Box::new(SessionEnd::new(auth)));
        }
    }

    /// Returns when the session has to end with its token, unless it is in use.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.deadline()
    }

    /// Returns the parameters of `initialize`, for the record.
    pub(crate) fn initialize_params(&self) -> RawObject {
        self.connection.initialize_params().unwrap_or_default()
    }

    /// Returns the message limits of the server that was selected for the session.
    pub(crate) fn message_limits(&self) -> Limits {
        self.connection.server().config().limits.message
    }

    /// Passes a message to the connection. Returns the number of its response stream and of the reader, if it has one.
    ///
    /// Handlers find a [`ResponseStream`] in their context, if the client can resume it.
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
        // Older clients cannot resume a stream before its first event.
        let can_resume = self.is_resumable() && self.sends_initial_event() && requests(&incoming) > 0;
        let handler_stream = can_resume.then(|| Arc::new(ResponseStream::new(Arc::clone(&self.readers))));
        if let Some(handler_stream) = &handler_stream {
            caller.extensions.insert_shared(Arc::clone(handler_stream));
        }
        let id = request_id(&incoming).filter(|_| self.record_state.is_some()).cloned();
        // Only the client cancels requests.
        state.has_cancelled |= match &incoming {
            Incoming::Single(Message::Notification(said)) => said.method == Method::NOTIFICATIONS_CANCELLED,
            Incoming::Single(_) => false,
            Incoming::Batch(_) => true,
        };
        let key = self.connection.feed_parsed(now, incoming, caller).map_err(|_| FeedError::Full)?;
        let begun = key.map(|key| {
            state.last_stream += 1;
            let (number, stream_reader) = (state.last_stream, self.readers.add(Some(ReaderTarget::Request(key))));
            if let Some(handler_stream) = &handler_stream {
                handler_stream.belongs_to(key);
            }
            let (reader, request, permit) = (Some(stream_reader), Some(key), Some(permit));
            let stream = Stream { reader, request, permit, id, handler_stream, ..Stream::default() };
            state.streams.push(number, Box::new(stream));
            (number, stream_reader)
        });
        drop(state);
        self.pump_at(begun.map(|(_, reader)| reader), Some(now));
        Ok(begun)
    }

    /// Whether streams begin with an empty event that has an id.
    // B-104
    pub(crate) fn sends_initial_event(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }

    /// Whether clients can resume streams.
    pub(crate) fn is_resumable(&self) -> bool {
        self.events.is_some() && self.revision >= Revision::V2025_03_26
    }

    /// Runs the handlers, and delivers messages to their streams. `own` is the reader that calls this, which checks its
    /// stream itself. If another task runs the handlers, that task does the work.
    pub(crate) fn pump(&self, own: Option<u64>) {
        self.pump_at(own, None);
    }

    /// As [`pump`](Self::pump), at a time that was read just before.
    fn pump_at(&self, own: Option<u64>, mut read: Option<Time>) {
        self.readers.take_due();
        loop {
            let Some(mut held) = self.runner.take() else {
                // Messages are delivered anyway, as handlers may wait for that.
                if self.drain(own) {
                    continue;
                }
                return;
            };
            for _ in 0..MAX_ROUNDS {
                held.with(|connection| self.run(connection, own, read.take()));
                if held.give_back() {
                    return;
                }
            }
            drop(held);
            // There is always more work: other tasks of this thread and session have their turn first.
            match own {
                // A reader without a waker checks for work before it waits.
                Some(own) => return self.readers.wake(&[own]),
                None if self.readers.wake_all() => return,
                None => {}
            }
        }
    }

    /// Does as much of [`pump`](Self::pump) as is due.
    pub(crate) fn pump_if_due(&self, own: u64) {
        match self.readers.take_due() {
            Due::Nothing => {}
            Due::Messages if self.connection.has_messages_only() => {
                self.drain(Some(own));
            }
            Due::Messages | Due::Run => self.pump(Some(own)),
        }
    }

    /// Runs the handlers, in the task that holds the connection.
    fn run(&self, connection: &mut Connection, own: Option<u64>, mut read: Option<Time>) {
        let waker = Waker::from(Arc::clone(&self.readers));
        let mut cx = Context::from_waker(&waker);
        loop {
            let polled = connection.poll(&mut cx, read.take().unwrap_or_else(now));
            if !self.drain(own) || polled.is_pending() {
                return;
            }
            // What was sent may have made room for requests that waited, but most sessions have none.
            if connection.next_step() == NextStep::Wait {
                return;
            }
        }
    }

    /// Delivers messages to their streams, and wakes the readers. Returns whether there were any.
    fn drain(&self, own: Option<u64>) -> bool {
        let (mut concerned, mut moved) = (Vec::new(), false);
        let mut state = self.lock();
        // Responses that were queued before this are among the following messages.
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

    /// Returns the requests that were closed without a response so far.
    fn closed(&self, state: &mut State) -> Vec<RequestKey> {
        if !std::mem::take(&mut state.has_cancelled) {
            return Vec::new();
        }
        let requests = state.streams.iter().filter_map(|(_, stream)| stream.request);
        requests.filter(|key| !self.connection.is_open(*key)).collect()
    }

    /// Delivers a message to its stream. Returns the reader to wake.
    fn deliver(&self, state: &mut State, transmit: Transmit) -> Option<u64> {
        let (key, is_last) = match transmit.route {
            Route::Reply(key) => (Some(key), true),
            Route::Related(key) | Route::Listen(key) => (Some(key), false),
            Route::Standalone => (None, false),
        };
        let stream = match key {
            Some(key) => state.streams.of_request(key),
            None => state.streams.get_mut(STANDALONE).map(|stream| (STANDALONE, stream)),
        };
        let Some((number, stream)) = stream else {
            self.counters.dropped_messages.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let (route, reader) = (transmit.route, stream.reader);
        // The session record is saved before a client can resume and read the response.
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
        } else {
            self.store_event(number, stream, transmit.message);
        }
        // A stream without a reader ends with its last message.
        if is_last && reader.is_none() && !is_held {
            state.streams.remove(number);
        }
        reader.or_else(|| state.orphan_reader.filter(|_| is_last))
    }

    /// Stores an event, or counts it as dropped if the client could not resume its stream.
    pub(crate) fn store_event(&self, number: u64, stream: &mut Stream, message: EncodedMessage) {
        let Some(events) = self.events.as_ref().filter(|_| stream.is_known && self.is_resumable()) else {
            self.counters.dropped_messages.fetch_add(1, Ordering::Relaxed);
            return;
        };
        stream.number += 1;
        let event = StoredEvent { number: stream.number, message: Bytes::from(message.into_bytes()) };
        events.store.append(self.id(), number, event);
    }

    /// Unblocks a stream after its reader took messages. Returns whether it was blocked.
    pub(crate) fn unblock(&self, state: &mut State, number: u64) -> bool {
        state.streams.get_mut(number).is_some_and(|stream| stream.has_room() && self.release(stream))
    }

    /// Unblocks a stream. Returns whether it was blocked.
    fn release(&self, stream: &mut Stream) -> bool {
        let was_blocked = std::mem::take(&mut stream.is_blocked);
        if was_blocked {
            self.connection.unblock(stream.request.map_or(Route::Standalone, Route::Related));
        }
        was_blocked
    }

    /// Cancels a request without a reader. Its handler is dropped when the session runs next.
    pub(crate) fn abandon(&self, state: &mut State, number: u64) {
        if let Some(key) = state.streams.remove(number).and_then(|stream| stream.request) {
            self.connection.abandon(key);
        }
    }

    /// Aborts all requests, as soon as no other task runs the session.
    pub(crate) fn poll_abort(&self, cx: &Context<'_>, why: &ErrorObject) -> Poll<()> {
        self.runner.poll_take(cx).map(|mut held| {
            held.with(|connection| connection.abort_requests(why));
        })
    }

    /// Ends the session and cancels its requests. Returns the teardown that is left to do, which includes cancelling if
    /// another task runs a handler.
    ///
    /// Stored events are kept if another process can continue the session, unless the client deleted it.
    #[must_use]
    pub(crate) fn end(self: Arc<Self>, reason: EndReason) -> Option<BoxFuture<()>> {
        self.lock().is_ended = true;
        let code = self.code.get().and_then(|code| code.stop());
        if let Some(held) = self.runner.take() {
            return self.tear_down(held, reason, code);
        }
        Some(Box::pin(async move {
            // A handler of the session itself may end it, and still be running.
            let held = poll_fn(|cx| self.runner.poll_take(cx)).await;
            if let Some(teardown) = self.tear_down(held, reason, code) {
                teardown.await;
            }
        }))
    }

    fn tear_down(
        self: &Arc<Self>,
        mut held: Held<'_>,
        reason: EndReason,
        code: Option<JoinHandle<()>>,
    ) -> Option<BoxFuture<()>> {
        let goes_on = reason != EndReason::Deleted && self.events.as_ref().is_some_and(|events| events.is_shared);
        // Readers that wait for a response receive an error.
        for stream in self.lock().streams.iter_mut() {
            self.release(stream);
        }
        let teardown = held.with(|connection| {
            if let EndReason::Evicted | EndReason::Expired = reason {
                connection.set_error(reason.as_str());
            }
            connection
                .abort_requests(&ErrorObject::internal_error("the session has ended before the request finished"));
            self.run(connection, None, None);
            let mut state = self.lock();
            state.streams.retain(|stream| {
                stream.is_known &= goes_on;
                stream.has_response()
            });
            drop(state);
            let teardown = code.is_none().then(|| connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT)));
            connection.handle_disconnect();
            teardown.flatten()
        });
        drop(held);
        if let Some(events) = self.events.as_ref().filter(|_| !goes_on) {
            events.store.forget(self.id());
        }
        self.readers.wake_all();
        match code {
            None => teardown.flatten(),
            Some(code) => Some(Box::pin(Arc::clone(self).tear_down_after(code))),
        }
    }
}

impl Session {
    /// Starts the code that runs as long as the session, unless that was done before.
    pub(crate) fn start(session: &SessionLease<Self>) {
        if let Some(code) = session.code.get() {
            code.start(session);
        }
    }

    /// Creates a session of another process, which is complete after [`set_resumed`](Self::set_resumed).
    pub(crate) fn resumed(
        id: SessionId,
        connection: Connection,
        revision: Revision,
        events: Option<Arc<EventLog>>,
        record_state: RecordState,
        counters: Arc<SessionCounters>,
    ) -> Self {
        let session = Self::new(id, connection, revision, events, Some(record_state), counters);
        session.is_resuming.store(true, Ordering::Relaxed);
        session
    }

    /// Returns whether the session may not be used yet.
    pub(crate) fn is_resuming(&self) -> bool {
        self.is_resuming.load(Ordering::Acquire)
    }

    pub(crate) fn set_resumed(&self) {
        self.is_resuming.store(false, Ordering::Release);
    }

    /// Completes a session that the application has not refused: it is notified of the subscriptions, and the code that runs
    /// as long as the session starts.
    pub(crate) async fn complete_resume(session: &SessionLease<Self>, state: SessionState, caller: Caller) {
        let mut held = poll_fn(|cx| session.runner.poll_take(cx)).await;
        let code = held.with(|connection| {
            connection.refresh(state);
            connection.resume_session(caller);
            connection.take_session_future()
        });
        drop(held);
        session.pump(None);
        if let Some(code) = code.flatten() {
            // It was not set before, as one request resumes the session.
            let _ = session.code.set(SessionCode::boxed(code));
            Self::start(session);
        }
    }

    /// Runs the callbacks at the end of the connection after the code of the session was dropped, which may add some.
    async fn tear_down_after(self: Arc<Self>, code: JoinHandle<()>) {
        // The task was cancelled, or has ended before.
        let _ = code.await;
        let mut held = poll_fn(|cx| self.runner.poll_take(cx)).await;
        let teardown = held.with(|connection| connection.take_teardown(|| sleep(TEARDOWN_TIMEOUT)));
        drop(held);
        if let Some(teardown) = teardown.flatten() {
            teardown.await;
        }
    }
}

impl State {
    /// Ends the stream of a cancelled request. Returns the reader to wake.
    fn end_cancelled(&mut self, key: RequestKey) -> Option<u64> {
        let (number, stream) = self.streams.of_request(key)?;
        if stream.is_blocked {
            // The kernel may hold the response back.
            self.has_cancelled = true;
            return None;
        }
        if stream.reader.is_some() {
            // It holds its permit until the reader has sent the previous messages and ended the response.
            stream.cancel();
            return stream.reader;
        }
        self.streams.remove(number);
        self.orphan_reader
    }
}

/// How many times in a row a task runs the handlers of a session for others.
const MAX_ROUNDS: usize = 16;
